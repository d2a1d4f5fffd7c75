package dispatch

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
)

// boxOf is the mailbox that holds the mail of an attachment's worker.
func boxOf(a hub.Attachment) hub.Box {
	if a.Attached() {
		return a.Worker.Box()
	}
	return a.Dispatch.Box()
}

// appendLocal puts a message to a Dispatch of this hub into its worker's mailbox.
func appendLocal(tx store.Tx, id hub.DispatchID, m hub.Message) (int64, error) {
	a, ok, err := tx.Attachment("", id)
	if err != nil {
		return 0, err
	}
	if !ok {
		return tx.Append(m)
	}
	return tx.AppendTo(boxOf(a), m)
}

// AttachWorker records the owner's side of a Dispatch that is given to an
// attached worker, and commits its session_start to the worker's mailbox. There
// is one per Dispatch; a redelivery keeps its message id.
func AttachWorker(tx store.Tx, a hub.Attachment, start hub.SessionStart) error {
	if err := Attach(tx, a, ""); err != nil {
		return err
	}
	payload, err := encode(start)
	if err != nil {
		return err
	}
	_, err = tx.Append(hub.Message{
		ID: a.StartMail, Run: a.Run, From: hubName, To: a.Worker.Box(), Type: hub.TypeSessionStart,
		Subject: start.Title, Payload: payload, CreatedAt: tx.Now(),
	})
	return err
}

// tellWorker writes a control or a session_close to an attached worker.
func tellWorker(tx store.Tx, a hub.Attachment, t hub.MessageType, c hub.SessionControl) error {
	c.Session, c.Dispatch, c.Task, c.WaveMark = a.Session, a.Dispatch, a.Task, a.Spec.Wave.Mark()
	payload, err := encode(c)
	if err != nil {
		return err
	}
	_, err = tx.Append(hub.Message{
		ID: hub.NewMessageID(), Run: a.Run, From: hubName, To: a.Worker.Box(), Type: t,
		Subject: c.Action + " " + string(a.Dispatch), Payload: payload, CreatedAt: tx.Now(),
	})
	return err
}

// reached reports whether the worker may have seen the session_start: from then
// on only its own word proves that it does not work on it.
func reached(tx store.MailReader, a hub.Attachment) (bool, error) {
	if a.TakenUp {
		return true, nil
	}
	m, err := tx.Message(a.StartMail)
	if err != nil {
		return true, err
	}
	mb, err := tx.Mailbox(a.Worker.Box())
	return m.Live() && m.Seq <= mb.HandedSeq, err
}

// cancelWorker tells an attached worker to give the Dispatch up. What it has not
// been handed is taken back: it never starts.
func cancelWorker(tx store.Tx, a hub.Attachment) error {
	seen, err := reached(tx, a)
	if err != nil {
		return err
	}
	if !seen {
		return tx.Withdraw(a.Worker.Box(), a.StartMail)
	}
	return tellWorker(tx, a, hub.TypeControl, hub.SessionControl{Action: hub.ActionCancel})
}

// NeverBegun reports whether the session_start of an attached worker's Dispatch
// was taken back before any Delivery held it.
func NeverBegun(rx store.MailReader, a hub.Attachment) (bool, error) {
	m, err := rx.Message(a.StartMail)
	return err == nil && m.History, err
}

// takeUp notes that the attached worker has begun: the start is ready.
func takeUp(tx store.Tx, a hub.Attachment) (hub.Attachment, error) {
	if !a.Attached() || a.TakenUp || a.Capability != hub.CapActive {
		return a, nil
	}
	a.TakenUp = true
	r := begun(a.Receipt)
	a.Receipt = r
	if err := tx.SaveAttachment(a); err != nil {
		return a, err
	}
	if a.Home == "" {
		_, err := EndStart(tx, a.Dispatch, Start{Event: hub.EvStarted, Receipt: r})
		return a, err
	}
	home, err := tx.Peer(a.Home)
	if err != nil {
		return a, err
	}
	if err := CloseStart(tx, hub.Principal{Kind: hub.PeerKey, ID: home.Lineage}, a.Request, r); err != nil {
		return a, err
	}
	return a, enqueue(tx, toHome(a), hub.ItemStarted, hub.NewMessageID(), struct{}{})
}

// begun is the receipt of a start that an attached worker has taken up.
func begun(r hub.Receipt) hub.Receipt {
	r.State, r.Stage, r.ReadinessSource = hub.StartReady, hub.StageInputAccepted, "worker"
	r.FailedStage, r.LastError, r.NextCommands = "", "", [][]string{}
	r.Effects = slices.Clone(r.Effects)
	for i := range r.Effects {
		if r.Effects[i].Kind == "dispatch_input" {
			r.Effects[i].State = "accepted"
		}
	}
	return r
}

// startedAtHome records that the owner's worker has taken the Dispatch up.
func startedAtHome(tx store.Tx, id hub.DispatchID) error {
	r, err := tx.StartReceipt(id)
	if err != nil {
		return err
	}
	_, err = EndStart(tx, id, Start{Event: hub.EvStarted, Receipt: begun(r)})
	return err
}

// Consumed takes up the Dispatches whose session_start was acknowledged; it
// implements mail.Access.
func (Access) Consumed(tx store.Tx, d hub.Delivery) error {
	w, ok := d.Box.Worker()
	if !ok {
		return nil
	}
	ms, err := tx.Between(d.Box, d.FirstSeq, d.LastSeq)
	if err != nil {
		return err
	}
	for _, m := range ms {
		if m.Type != hub.TypeSessionStart {
			continue
		}
		var start hub.SessionControl
		if err := json.Unmarshal(m.Payload, &start); err != nil {
			return fmt.Errorf("reading %s: %w", m.ID, err)
		}
		if err := takeUpAll(tx, w, []hub.DispatchID{start.Dispatch}); err != nil {
			return err
		}
	}
	return nil
}

const shownAssigned = 20

// senderOf is the Dispatch that a worker's message is of: the capability's own,
// or, of those that an attached worker has, the one that it names or the only one.
func senderOf(tx store.Tx, p hub.Principal, in SendInput) (hub.Attachment, error) {
	if p.Kind != hub.AttachedWorker {
		return run.AttachmentOf(tx, p)
	}
	id := in.Report.Dispatch
	if id == "" && in.Type != hub.TypeWorkerDone {
		var err error
		if id, err = onlyOne(tx, hub.WorkerID(p.ID)); err != nil {
			return hub.Attachment{}, err
		}
	}
	a, ok, err := tx.WorkerAttachment(hub.WorkerID(p.ID), id)
	switch {
	case err != nil:
		return a, err
	case !ok:
		return a, notAssigned(id, in.Type)
	}
	if err := receipt.Paired(tx, a.Home); err != nil {
		return a, err
	}
	return takeUp(tx, a)
}

func notAssigned(id hub.DispatchID, t hub.MessageType) error {
	if t != hub.TypeWorkerDone {
		return hub.Errorf(hub.CodeDispatchNotFound, "%s is not assigned to this worker", id)
	}
	e := hub.Errorf(hub.CodeLifecycleInvalid, "dispatch_id is no Dispatch of this worker")
	if id == "" {
		e = hub.Errorf(hub.CodeLifecycleInvalid, "dispatch_id is missing")
	}
	e.Field = "dispatch_id"
	return e
}

func onlyOne(tx store.WorkerReader, w hub.WorkerID) (hub.DispatchID, error) {
	var ids []hub.DispatchID
	err := eachAssigned(tx, w, func(a hub.Attachment) bool {
		if !a.Capability.Ended() {
			ids = append(ids, a.Dispatch)
		}
		return len(ids) < shownAssigned
	})
	switch {
	case err != nil:
		return "", err
	case len(ids) == 0:
		return "", hub.Errorf(hub.CodeDispatchInactive, "no Dispatch is assigned to this worker now")
	case len(ids) > 1:
		return "", hub.Invalid("dispatch_id", "this worker has several Dispatches; name one of %v", ids)
	}
	return ids[0], nil
}

const assignedPage = 200

// eachAssigned calls fn for what the worker has, oldest first, until it returns
// false.
func eachAssigned(rx store.WorkerReader, w hub.WorkerID, fn func(hub.Attachment) bool) error {
	p := store.Page{Limit: assignedPage}
	for {
		as, next, err := rx.WorkerAttachments(w, p)
		if err != nil {
			return err
		}
		for _, a := range as {
			if !fn(a) {
				return nil
			}
		}
		if p.Before = next; next == 0 {
			return nil
		}
	}
}

// Assignment is a Dispatch that an attached worker has. Start is its session_start,
// BackendCtx what the worker keeps with the session. One that was not Handed over
// comes by mail: it is not to be begun before.
type Assignment struct {
	hub.Attachment
	Start      json.RawMessage
	BackendCtx json.RawMessage
	Handed     bool
}

// maxAssigned bounds the session_starts of one page, in bytes.
const maxAssigned = 8 << 20

type assignedRx interface {
	store.WorkerReader
	store.SessionReader
	store.MailReader
}

// Assigned is one page of what the worker has, oldest first, behind after; next
// is the after of the page behind it, 0 at the end.
func Assigned(rx assignedRx, w hub.WorkerID, after int64, limit int) (out []Assignment, next int64, err error) {
	for size := 0; len(out) < limit && size < maxAssigned; {
		as, more, err := rx.WorkerAttachments(w, store.Page{Before: after, Limit: 1})
		if err != nil || len(as) == 0 {
			return out, 0, err
		}
		one, err := assignment(rx, as[0])
		if err != nil {
			return out, 0, err
		}
		out, size, after = append(out, one), size+len(one.Start)+len(one.BackendCtx), more
		if more == 0 {
			return out, 0, nil
		}
	}
	return out, after, nil
}

func assignment(rx assignedRx, a hub.Attachment) (Assignment, error) {
	m, err := rx.Message(a.StartMail)
	if err != nil {
		return Assignment{}, err
	}
	s, _, err := rx.Session(a.Home, a.Session)
	if err != nil {
		return Assignment{}, err
	}
	handed, err := reached(rx, a)
	return Assignment{Attachment: a, Start: m.Payload, BackendCtx: s.BackendCtx, Handed: handed}, err
}
