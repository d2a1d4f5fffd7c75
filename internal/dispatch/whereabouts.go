package dispatch

import (
	"context"
	"slices"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
)

// Whereabouts is how far a message has come.
type Whereabouts string

// The whereabouts of a message. It is at_owner when the hub of its mailbox has
// it and this one learns no more; undelivered when no check will bring it.
const (
	Queued       Whereabouts = "queued"
	AtOwner      Whereabouts = "at_owner"
	Delivered    Whereabouts = "delivered"
	Acknowledged Whereabouts = "acknowledged"
	Undelivered  Whereabouts = "undelivered"
)

// Posted is a message, how far it has come, and the verdict if it is a report
// or came too late.
type Posted struct {
	Message  hub.Message
	Delivery Whereabouts
	Verdict  hub.Verdict
	Reason   string
}

// Message reads one message. A Dispatch sees only what it sent or what was sent
// to it, and what is of the Run that it coordinates.
func (s *Service) Message(ctx context.Context, p hub.Principal, id hub.MessageID) (out Posted, err error) {
	err = s.Store.View(ctx, func(rx store.Rx) (err error) {
		if out.Message, err = rx.Message(id); err != nil {
			return err
		}
		m := out.Message
		if err := mayRead(rx, p, m); err != nil {
			return err
		}
		if out.Verdict, out.Reason, err = rx.VerdictOf(id); err != nil {
			return err
		}
		out.Delivery, err = whereabouts(rx, m, out.Verdict)
		return err
	})
	return out, err
}

// mayRead lets workers read what they sent and what was sent to them, and a
// worker that coordinates what is of its Run.
func mayRead(rx store.Rx, p hub.Principal, m hub.Message) (err error) {
	switch p.Kind {
	case hub.DispatchCap:
		if box := hub.DispatchID(p.ID).Box(); m.From != string(box) && m.To != box {
			err = run.Operates(rx, p, m.Run)
		}
	case hub.AttachedWorker:
		err = ofWorker(rx, hub.WorkerID(p.ID), m)
	case hub.Operator, hub.Reader, hub.PeerKey, hub.Engine, hub.SystemPrincipal:
	}
	if hub.IsCode(err, hub.CodeOutOfScope) {
		err = hub.Errorf(hub.CodeMessageNotFound, "there is no message %s", m.ID)
	}
	return err
}

// ofWorker refuses a message that is no attached worker's own mail.
func ofWorker(rx store.WorkerReader, w hub.WorkerID, m hub.Message) error {
	if m.To == w.Box() {
		return nil
	}
	for _, box := range []hub.Box{hub.Box(m.From), m.To} {
		if id, ok := box.Dispatch(); ok {
			_, assigned, err := rx.WorkerAttachment(w, id)
			if err != nil || assigned {
				return err
			}
		}
	}
	return notYours(m.To)
}

// whereabouts tells apart what is in a mailbox of this hub, which has a
// sequence, and what is on its way to another hub, or there.
func whereabouts(rx store.Rx, m hub.Message, v hub.Verdict) (Whereabouts, error) {
	switch {
	case m.Stale || v == hub.VerdictStale || v == hub.VerdictDuplicate || v == hub.VerdictRejected:
		return Undelivered, nil
	case m.History:
		return Delivered, nil // to the history, as was asked
	case m.Seq == 0:
		held, err := isHeld(rx, m)
		if err != nil || held {
			return Queued, err
		}
		return onItsWay(rx, m)
	}
	return inMailbox(rx, m)
}

// isHeld reports whether its owner looks into the report before it goes.
func isHeld(rx store.Rx, m hub.Message) (bool, error) {
	id, from := hub.Box(m.From).Dispatch()
	if !from || m.Type != hub.TypeWorkerDone {
		return false, nil
	}
	a, ok, err := anyAttachment(rx, id)
	if err != nil || !ok {
		return false, err
	}
	h, _, err := rx.Hold(a.Home, id)
	return slices.Contains(h.Reports, m.ID), err
}

func inMailbox(rx store.Rx, m hub.Message) (Whereabouts, error) {
	box, err := heldBy(rx, m)
	if err != nil {
		return "", err
	}
	mb, err := rx.Mailbox(box)
	if err != nil {
		return "", err
	}
	if m.Seq <= mb.AckedSeq {
		return Acknowledged, nil
	}
	if mb.Outstanding != "" {
		d, ok, err := rx.Delivery(mb.Outstanding)
		if err != nil || ok && m.Seq <= d.LastSeq {
			return Delivered, err
		}
	}
	return waiting(rx, box)
}

// heldBy is the mailbox that a message lies in: that of an attached worker for its
// Dispatches.
func heldBy(rx store.Rx, m hub.Message) (hub.Box, error) {
	id, ok := m.To.Dispatch()
	if !ok {
		return m.To, nil
	}
	a, ok, err := anyAttachment(rx, id)
	if err != nil || !ok {
		return m.To, err
	}
	return boxOf(a), nil
}

// waiting is queued, unless the recipient is a Dispatch that has ended.
func waiting(rx store.Rx, box hub.Box) (Whereabouts, error) {
	id, ok := box.Dispatch()
	if !ok {
		return Queued, nil
	}
	a, ok, err := anyAttachment(rx, id)
	if err == nil && ok && a.Capability.Ended() {
		return Undelivered, nil
	}
	return Queued, err
}

// anyAttachment finds a Dispatch's attachment whatever hub its home is.
func anyAttachment(rx store.Rx, id hub.DispatchID) (hub.Attachment, bool, error) {
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

// onItsWay looks for the message among what its relay queue still has to bring
// over.
func onItsWay(rx store.Rx, m hub.Message) (Whereabouts, error) {
	key, ended, ok, err := queueOf(rx, m)
	if err != nil || !ok {
		return Queued, err
	}
	pending, err := isPending(rx, key, m.ID)
	switch {
	case err != nil:
		return "", err
	case !pending:
		return AtOwner, nil
	case ended:
		return Undelivered, nil
	}
	return Queued, nil
}

// queueOf is the queue of a message to or from another hub's Dispatch; ended
// says that its recipient takes no more mail.
func queueOf(rx store.Rx, m hub.Message) (key store.QueueKey, ended, ok bool, err error) {
	if id, to := m.To.Dispatch(); to {
		d, err := rx.Dispatch(id)
		return toWorker(d), !d.State.TakesMail(), err == nil, err
	}
	id, from := hub.Box(m.From).Dispatch()
	if !from {
		return key, false, false, nil
	}
	a, ok, err := anyAttachment(rx, id)
	return toHome(a), false, ok, err
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
