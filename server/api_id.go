package server

import (
	"net/http"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/openapi/api"
)

// ExpandId shows the ids that an abbreviation can stand for.
func (s apiHandlers) ExpandId(w http.ResponseWriter, r *http.Request, text string) {
	kind, ok := hub.Abbreviation(text)
	if !ok {
		s.fail(w, r, hub.Invalid("text", "%q is no abbreviation: at least %d characters from the beginning, or the last %d", text, hub.MinIDStart, hub.IDEnd))
		return
	}
	ids := []string{}
	err := s.cfg.Store.View(r.Context(), func(rx store.Rx) error {
		found, err := matches(rx, kind, text)
		ids = append(ids, found...)
		return err
	})
	s.reply(w, r, http.StatusOK, api.IdMatches{Ids: ids}, err)
}

func matches(rx store.Rx, kind, text string) ([]string, error) {
	if kind == "" {
		return rx.IDsEnding(text)
	}
	return rx.IDsFrom(kind, text)
}
