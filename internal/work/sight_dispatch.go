package work

import (
	"context"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// OwnFilter selects a home's Dispatches here; empty fields do not filter.
type OwnFilter struct {
	Run  hub.RunID
	Task hub.TaskID
	Live bool
}

func (f OwnFilter) keeps(a hub.Attachment) (bool, error) {
	return !a.Tombstone && (f.Run == "" || a.Run == f.Run) && (f.Task == "" || a.Task == f.Task) && (!f.Live || a.Lives()), nil
}

// OwnDispatches reads the Dispatches that a peer, as their home, has on this hub,
// newest first, as this hub knows them.
func (s *Service) OwnDispatches(rx store.Rx, who hub.Principal, f OwnFilter, p store.Page) (ds []hub.Dispatch, next int64, err error) {
	sight, err := SightOf(rx, who)
	if err != nil {
		return nil, 0, err
	}
	of := func(p store.Page) ([]hub.Attachment, int64, error) { return rx.AttachmentsOf(sight.peer.ID, p) }
	as, next, err := Visible(p, of, f.keeps)
	ds = make([]hub.Dispatch, len(as))
	for i, a := range as {
		ds[i] = a.AsDispatch(hub.Server{Name: s.Name})
	}
	return ds, next, err
}

// ShowOwn is one Dispatch of a peer's on this hub, and what is observed of it.
func (s *Service) ShowOwn(ctx context.Context, who hub.Principal, id hub.DispatchID) (Shown, error) {
	var sight Sight
	err := s.Store.View(ctx, func(rx store.Rx) (err error) {
		sight, err = SightOf(rx, who)
		return err
	})
	if err != nil {
		return Shown{}, err
	}
	shown, err := s.ShowFor(ctx, sight.peer, id)
	if err == nil {
		err = missing(id, shown.Attached)
	}
	if err != nil {
		return Shown{}, err
	}
	a, err := s.attachment(ctx, sight.peer.ID, id)
	return Shown{Dispatch: a.AsDispatch(hub.Server{Name: s.Name}), Observation: shown.Observation, Receipt: shown.Receipt}, err
}
