package dispatch

import (
	"context"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// shownParked bounds how many parked queues a peer is shown with.
const shownParked = 20

// RelayState is what waits for a peer and which queues do not flow, in either
// direction. Items of a Dispatch that its home does not know are among them: they
// are parked and never dropped.
func (s *Service) RelayState(ctx context.Context, id hub.PeerID) (out hub.RelayState, err error) {
	err = s.Store.View(ctx, func(rx store.Rx) error {
		out, err = relayState(rx, id)
		return err
	})
	return out, err
}

func relayState(rx store.Rx, id hub.PeerID) (out hub.RelayState, err error) {
	p, err := rx.Peer(id)
	if err != nil {
		return out, err
	}
	for _, dir := range []hub.Direction{hub.ToHome, hub.ToWorker} {
		items, bytes, err := rx.Backlog(id, dir)
		if err != nil {
			return out, err
		}
		out.Items, out.Bytes = out.Items+items, out.Bytes+bytes
	}
	queues, n, err := rx.ParkedQueues(id, shownParked)
	if err != nil {
		return out, err
	}
	out.ParkedCount = n
	for _, q := range queues {
		out.Parked = append(out.Parked, hub.ParkedQueue{Dispatch: q.Dispatch, Sending: true, Waiting: q.Pending, Reason: q.Reason})
	}
	cursors, n, err := rx.ParkedCursors(p.Lineage, p.StoreID, p.StoreEpoch, shownParked)
	if err != nil {
		return out, err
	}
	out.ParkedCount += n
	for _, c := range cursors[:min(len(cursors), shownParked-len(out.Parked))] {
		out.Parked = append(out.Parked, hub.ParkedQueue{Dispatch: c.Dispatch, Reason: c.Parked})
	}
	return out, nil
}

// Parked is why nothing more comes from the hub that a Dispatch is on, or goes
// there; "" if it flows.
func Parked(rx store.Rx, d hub.Dispatch) (string, error) {
	if d.Local() {
		return "", nil
	}
	p, err := rx.Peer(d.Server.PeerID)
	if err != nil {
		return "", err
	}
	c, err := rx.Cursor(store.CursorKey{Lineage: p.Lineage, StoreID: p.StoreID, Epoch: p.StoreEpoch, Dispatch: d.ID})
	if err != nil || c.Parked != "" {
		return c.Parked, err
	}
	q, err := rx.Queue(toWorker(d))
	return q.Parked, err
}
