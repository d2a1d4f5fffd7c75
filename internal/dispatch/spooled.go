package dispatch

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// spoolRejected is the payload of a spool_rejected notice.
type spoolRejected struct {
	Kind     string         `json:"kind"`
	Dispatch hub.DispatchID `json:"dispatch_id"`
	Task     hub.TaskID     `json:"task_id"`
	hub.SpoolRefusal
}

// SpoolRejected tells a Dispatch's home that a line of its worker's spool was
// refused: in its own record if that is here, else as a message of the owner's,
// from which the home writes the notice at import. A notice of that id is made
// once.
func (s *Service) SpoolRejected(ctx context.Context, home hub.PeerID, id hub.DispatchID, n hub.MessageID, why hub.SpoolRefusal) error {
	why.Detail = hub.Cut(hub.PlainText([]byte(why.Detail)), hub.MaxSubjectBytes)
	if err := why.Check(); err != nil {
		return err
	}
	return s.Store.Update(ctx, store.Settle, func(tx store.Tx) error {
		known, err := tx.HasMessage(n)
		if err != nil || known {
			return err
		}
		if home == "" {
			d, err := tx.Dispatch(id)
			if err != nil {
				return err
			}
			return postNotice(tx, d.Run, rejectedNotice(d, n, why))
		}
		return tellRejected(tx, home, id, n, why)
	})
}

// tellRejected queues the owner's word for another home, and records that it did.
func tellRejected(tx store.Tx, home hub.PeerID, id hub.DispatchID, n hub.MessageID, why hub.SpoolRefusal) error {
	a, ok, err := tx.Attachment(home, id)
	if err != nil || !ok {
		return err
	}
	payload, err := encode(spoolRejected{noticeSpoolRejected, id, a.Task, why})
	if err != nil {
		return err
	}
	m := hub.Message{ID: n, Run: a.Run, From: hubName, To: a.Run.Box(), Type: hub.TypeNotice, Payload: payload, CreatedAt: tx.Now()}
	return errors.Join(enqueue(tx, toHome(a), hub.ItemMessage, n, m), tx.Record(m))
}

func rejectedNotice(d hub.Dispatch, n hub.MessageID, why hub.SpoolRefusal) notice {
	kept := "It is not kept: too many were refused."
	if why.File != "" {
		kept = "The worker's hub keeps it as rejected/" + why.File + " in the private folder of " + string(why.Terminal) + "."
	}
	return notice{
		id:      n,
		subject: "A message of " + string(d.ID) + " was refused",
		body:    "It was written while no hub answered, and changes nothing: " + why.Detail + "\n" + kept,
		history: d.Quiet, payload: spoolRejected{noticeSpoolRejected, d.ID, d.Task, why},
	}
}

// arriveNotice takes an owner's own word: on a setup, or on its worker's spool.
func arriveNotice(d hub.Dispatch, m hub.Message, by string) (arrival, error) {
	var s spoolRejected
	if json.Unmarshal(m.Payload, &s) != nil || s.Kind != noticeSpoolRejected {
		return arriveSetup(d, m, by)
	}
	if by != hubName {
		return arrival{}, refusef("a worker cannot send a %s", m.Type)
	}
	if err := s.Check(); err != nil {
		return arrival{}, refusef("malformed refusal: %v", err)
	}
	return arrival{apply: func(tx store.Tx) (*hub.ItemVerdict, error) {
		return nil, postNotice(tx, d.Run, rejectedNotice(d, m.ID, s.SpoolRefusal))
	}}, nil
}
