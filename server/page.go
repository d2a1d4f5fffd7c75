package server

import (
	"net/http"

	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/openapi/api"
)

// page answers with one page of a list: read returns a pointer to the page's
// document and the position of the next one.
func page(s *Server, w http.ResponseWriter, r *http.Request, l list, cursor string, limit int, read func(store.Rx, store.Page) (any, int64, error)) {
	before, err := s.position(l, cursor)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	var body any
	err = s.cfg.Store.View(r.Context(), func(rx store.Rx) error {
		out, next, err := read(rx, store.Page{Before: before, Limit: pageSize(limit)})
		if err != nil {
			return err
		}
		setNext(out, s.cursor(l, next))
		body = out
		return nil
	})
	s.reply(w, r, http.StatusOK, body, err)
}

func setNext(body any, next *string) {
	switch b := body.(type) {
	case *api.RunPage:
		b.NextCursor = next
	case *api.TaskPage:
		b.NextCursor = next
	case *api.DispatchPage:
		b.NextCursor = next
	case *api.RepoPage:
		b.NextCursor = next
	case *api.WorktreePage:
		b.NextCursor = next
	}
}
