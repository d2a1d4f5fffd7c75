package server

import (
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/openapi/api"
)

type deliveryRx interface {
	store.MailReader
	store.DispatchReader
	store.AttachmentReader
	store.RelayReader
	PeerList() ([]hub.Peer, error)
}

// deliveryOf tells how far a message has come. One with a sequence is in a
// mailbox of this hub; one without is on its way to another hub, or there.
func deliveryOf(rx deliveryRx, m hub.Message) (api.MessageOnlyDelivery, error) {
	if m.Seq == 0 {
		return onItsWay(rx, m)
	}
	if m.Stale {
		return api.MessageOnlyDeliveryUndelivered, nil // history, which no check delivers
	}
	mb, err := rx.Mailbox(m.To)
	if err != nil {
		return "", err
	}
	if m.Seq <= mb.AckedSeq {
		return api.MessageOnlyDeliveryAcknowledged, nil
	}
	if mb.Outstanding != "" {
		d, ok, err := rx.Delivery(mb.Outstanding)
		if err != nil || ok && m.Seq <= d.LastSeq {
			return api.MessageOnlyDeliveryDelivered, err
		}
	}
	return waiting(rx, m)
}

// waiting is queued, unless the recipient is a Dispatch that has ended.
func waiting(rx deliveryRx, m hub.Message) (api.MessageOnlyDelivery, error) {
	id, ok := m.To.Dispatch()
	if !ok {
		return api.MessageOnlyDeliveryQueued, nil
	}
	a, ok, err := attachmentOf(rx, id)
	if err == nil && ok && (a.Capability == hub.CapSettled || a.Capability == hub.CapFenced) {
		return api.MessageOnlyDeliveryUndelivered, nil
	}
	return api.MessageOnlyDeliveryQueued, err
}

// attachmentOf finds a Dispatch's attachment whatever hub its home is.
func attachmentOf(rx deliveryRx, id hub.DispatchID) (hub.Attachment, bool, error) {
	a, ok, err := rx.Attachment("", id)
	if ok || err != nil {
		return a, ok, err
	}
	peers, err := rx.PeerList()
	for _, p := range peers {
		if a, ok, err = rx.Attachment(p.ID, id); ok || err != nil {
			return a, ok, err
		}
	}
	return a, false, err
}

// onItsWay looks for the message among what its relay queue still has to
// bring over.
func onItsWay(rx deliveryRx, m hub.Message) (api.MessageOnlyDelivery, error) {
	key, ended, ok, err := queueOf(rx, m)
	if err != nil || !ok {
		return api.MessageOnlyDeliveryQueued, err
	}
	pending, err := isPending(rx, key, m.ID)
	switch {
	case err != nil:
		return "", err
	case !pending:
		return api.MessageOnlyDeliveryAtOwner, nil
	case ended:
		return api.MessageOnlyDeliveryUndelivered, nil
	}
	return api.MessageOnlyDeliveryQueued, nil
}

// queueOf is the queue of a message to or from another hub's Dispatch; ended
// says that its recipient takes no more mail.
func queueOf(rx deliveryRx, m hub.Message) (key store.QueueKey, ended, ok bool, err error) {
	if id, to := m.To.Dispatch(); to {
		d, err := rx.Dispatch(id)
		key = store.QueueKey{Peer: d.Server.PeerID, Dispatch: id, Direction: hub.ToWorker}
		return key, !d.State.TakesMail(), err == nil, err
	}
	id, from := hub.Box(m.From).Dispatch()
	if !from {
		return key, false, false, nil
	}
	a, ok, err := attachmentOf(rx, id)
	return store.QueueKey{Peer: a.Home, Dispatch: id, Direction: hub.ToHome}, false, ok, err
}

const scanBytes = 1 << 20

func isPending(rx store.RelayReader, key store.QueueKey, id hub.MessageID) (bool, error) {
	q, err := rx.Queue(key)
	if err != nil {
		return false, err
	}
	for from := q.AckedSeq + 1; from <= q.LastSeq; {
		items, err := rx.QueueItems(key, from, scanBytes)
		if err != nil || len(items) == 0 {
			return false, err
		}
		for _, it := range items {
			if it.ID == id {
				return true, nil
			}
			from = it.Seq + 1
		}
	}
	return false, nil
}
