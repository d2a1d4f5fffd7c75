package server

import (
	"net/http"

	"github.com/wavehub/wavehub/openapi/api"
)

func (s apiHandlers) StreamEvents(w http.ResponseWriter, r *http.Request, params api.StreamEventsParams) {
	http.NotFound(w, r)
}
