package work

import (
	"context"
	"reflect"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// reconcile applies what an owner shows of a start whose receipt is unknown, also
// when a report has settled the Dispatch meanwhile. An absent attachment proves
// nothing: the request may still arrive. That the start has failed waits for what
// the owner had queued before it said so: a report among that wins.
func (s *Service) reconcile(ctx context.Context, d hub.Dispatch, shown hub.PeerShow) error {
	if !shown.Attached || shown.Receipt.Dispatch != d.ID {
		return nil
	}
	if err := s.hearSetup(ctx, d, shown.Receipt.Setup); err != nil {
		return err
	}
	var begun hub.Receipt
	var behind bool
	err := s.Store.View(ctx, func(rx store.Rx) (err error) {
		if begun, err = rx.StartReceipt(d.ID); err == nil {
			behind, err = isBehind(rx, d, shown.Observation.LastSeq)
		}
		return err
	})
	if err != nil || begun.State != hub.StartOutcomeUnknown {
		return err
	}
	switch eventOf(shown.Receipt) {
	case hub.EvStartLost:
		return s.noteOpen(ctx, d, begun, shown.Receipt)
	case hub.EvStartFailed:
		if behind {
			s.pursue("", d.ID)
			return nil
		}
	}
	_, err = s.endRemote(ctx, d, begun, shown.Receipt, nil, sending{})
	return err
}

type behindRx interface {
	store.PeerReader
	store.RelayReader
}

// isBehind reports whether this home has not imported the owner's queue up to a
// sequence.
func isBehind(rx behindRx, d hub.Dispatch, lastSeq int64) (bool, error) {
	p, err := rx.Peer(d.Server.PeerID)
	if err != nil {
		return false, err
	}
	cursor, err := rx.Cursor(store.CursorKey{Lineage: p.Lineage, StoreID: p.StoreID, Epoch: p.StoreEpoch, Dispatch: d.ID})
	return cursor.Seq < lastSeq, err
}

// noteOpen keeps what the owner of a start that is open there too has made so far:
// so a stop or an abandon can name it. From now on it is known that the request
// arrived.
func (s *Service) noteOpen(ctx context.Context, d hub.Dispatch, begun, got hub.Receipt) error {
	r := ownersReceipt(got, begun, d)
	r.Residuals = mayBeLeft(r)
	r.State, r.FailedStage, r.LastError, r.Mutation = begun.State, begun.FailedStage, begun.LastError, begun.Mutation
	r.DispatchState, r.NextCommands = begun.DispatchState, begun.NextCommands
	if r.Stage == begun.Stage && reflect.DeepEqual(r.Effects, begun.Effects) && reflect.DeepEqual(r.Residuals, begun.Residuals) {
		return nil
	}
	return s.Store.Update(ctx, store.Settle, func(tx store.Tx) error { return dispatch.NoteOpen(tx, d.ID, r) })
}

// hearSetup records the end of a setup that its owner shows.
func (s *Service) hearSetup(ctx context.Context, d hub.Dispatch, setup hub.SetupReport) error {
	if !setup.Over() {
		return nil
	}
	var known hub.Receipt
	err := s.Store.View(ctx, func(rx store.Rx) (err error) {
		known, err = rx.StartReceipt(d.ID)
		return err
	})
	if err != nil || known.Setup.Over() {
		return err
	}
	return s.Store.Update(ctx, store.Import, func(tx store.Tx) error { return dispatch.HearSetup(tx, d.ID, setup) })
}

// Reconcile inspects every Dispatch of a peer whose state is unknown; it is
// called when the link comes up.
func (s *Service) Reconcile(ctx context.Context, peer hub.PeerID) error {
	var unknown []hub.Dispatch
	err := s.Store.View(ctx, func(rx store.Rx) error {
		ds, _, err := rx.DispatchList(store.DispatchFilter{Peer: peer, Live: true}, store.Page{Limit: maxReconcile})
		for _, d := range ds {
			if d.State == hub.StartUnknown {
				unknown = append(unknown, d)
			}
		}
		return err
	})
	for _, d := range unknown {
		if err == nil {
			_, err = s.inspect(ctx, d)
		}
	}
	return err
}

// maxReconcile bounds what one link-up inspects.
const maxReconcile = 10_000
