package server

import (
	"net/http"

	"github.com/wavehub/wavehub/internal/store"
)

// paged makes a page's document of the cursor of the next one.
type paged func(next *string) any

// page answers with one page of a list: read returns its document and the
// position of the next one.
func page(s *Server, w http.ResponseWriter, r *http.Request, l list, cursor string, limit int, read func(store.Rx, store.Page) (paged, int64, error)) {
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
		body = out(s.cursor(l, next))
		return nil
	})
	s.reply(w, r, http.StatusOK, body, err)
}
