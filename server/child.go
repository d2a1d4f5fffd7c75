package server

import (
	"net/http"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
)

// operates refuses a worker that looks at a Dispatch which is not of the child
// Run that it coordinates. Changes are decided in their own transactions.
func (s *Server) operates(r *http.Request, id hub.DispatchID) error {
	p := callOf(r).principal
	if p.Kind != hub.DispatchCap {
		return nil
	}
	return s.cfg.Store.View(r.Context(), func(rx store.Rx) error {
		d, err := rx.Dispatch(id)
		if err != nil {
			return err
		}
		return run.Operates(rx, p, d.Run)
	})
}

// ownRun narrows a worker's filter by Run to the child Run that it coordinates,
// and refuses another one.
func ownRun(rx store.Rx, p hub.Principal, id *hub.RunID) (err error) {
	if p.Kind != hub.DispatchCap {
		return nil
	}
	if *id == "" {
		*id, err = run.Child(rx, p)
		return err
	}
	return run.Operates(rx, p, *id)
}
