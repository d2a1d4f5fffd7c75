package dispatch

import (
	"encoding/json"
	"errors"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// commitHeld takes a report into what is held of its Dispatch, if it belongs
// there: a success that has to be looked into first, or anything that comes
// behind one. first says that the capability was good for it.
func commitHeld(tx store.Tx, a hub.Attachment, r hub.Report, m hub.Message, first bool) (out Sent, held bool, err error) {
	h, open, err := tx.Hold(a.Home, a.Dispatch)
	switch {
	case err != nil:
		return out, false, err
	case open && !h.Fenced():
		out, err = behind(tx, a, h, r, m)
	case first && r.Outcome == hub.OutcomeSucceeded && a.Checks.Hold():
		out, err = hold(tx, a, m)
	default:
		return out, false, nil
	}
	return out, true, err
}

// hold takes a success and lets nobody know of it but its sender.
func hold(tx store.Tx, a hub.Attachment, m hub.Message) (Sent, error) {
	if m.Bytes() > hub.MaxMessageBytes-hub.FindingsRoom {
		e := hub.Errorf(hub.CodeTooLarge, "the report has %d bytes; with what is found out about it, at most %d are taken", m.Bytes(), hub.MaxMessageBytes-hub.FindingsRoom)
		e.Field = "payload"
		return Sent{}, e
	}
	if err := tx.Record(m); err != nil {
		return Sent{}, err
	}
	signalHold(tx, a.Dispatch)
	return sentHeld(a, m), tx.PutHold(hub.Hold{Home: a.Home, Dispatch: a.Dispatch, Reports: []hub.MessageID{m.ID}})
}

// behind keeps a report until the held one has gone: its home judges both, in
// their order. One that repeats the held one is that.
func behind(tx store.Tx, a hub.Attachment, h hub.Hold, r hub.Report, m hub.Message) (Sent, error) {
	if r.Sum(m.Body) == a.ReportSum {
		return sentBefore(tx, h.Reports[0], a.Home == "")
	}
	if err := tx.Record(m); err != nil {
		return Sent{}, err
	}
	h.Reports = append(h.Reports, m.ID) // bounded by the quota of late reports
	return sentHeld(a, m), tx.SaveHold(h)
}

func sentHeld(a hub.Attachment, m hub.Message) Sent {
	out := sentOf(m)
	if a.Home != "" {
		out.State = SentQueued
	}
	return out
}

func signalHold(tx store.Tx, id hub.DispatchID) {
	tx.Signal(hub.Signal{Topic: hub.TopicHold, Key: string(id)})
}

// holdExit keeps the worker's end behind its held report, and reports whether
// there is one.
func holdExit(tx store.Tx, a hub.Attachment, exit hub.ExitItem) (bool, error) {
	h, open, err := tx.Hold(a.Home, a.Dispatch)
	if err != nil || !open || h.Fenced() {
		return false, err
	}
	h.Exit = &exit
	return true, tx.SaveHold(h)
}

// Progress commits how far looking into a held report has come, and returns it
// as it is then. A fenced one, or one that has gone, stays as it is.
func Progress(tx store.Tx, home hub.PeerID, id hub.DispatchID, change func(*hub.Hold)) (h hub.Hold, open bool, err error) {
	h, open, err = tx.Hold(home, id)
	if err != nil || !open || h.Fenced() {
		return h, open, err
	}
	change(&h)
	return h, true, tx.SaveHold(h)
}

// Release lets a held report go with what was found out about it, then what
// came behind it: to the home here, or into its queue. It happens once; one that
// has gone or was fenced is left alone.
func Release(tx store.Tx, home hub.PeerID, id hub.DispatchID, found hub.Findings) error {
	h, open, err := tx.Hold(home, id)
	if err != nil || !open || h.Fenced() {
		return err
	}
	if err := tx.DropHold(home, id); err != nil {
		return err
	}
	return letGo(tx, h, &found, h.Exit)
}

// Unhold ends what is left of a fenced hold: its verification has ended.
func Unhold(tx store.Tx, home hub.PeerID, id hub.DispatchID) error {
	h, open, err := tx.Hold(home, id)
	if err != nil || !open || !h.Fenced() {
		return err
	}
	return tx.DropHold(home, id)
}

// fenceHold lets a held report go as it is, for its home to find it stale. What
// remains is the order to end its verification. The home of a Dispatch of its
// own learns of the end of the process by the stop itself.
func fenceHold(tx store.Tx, home hub.PeerID, id hub.DispatchID) error {
	h, open, err := tx.Hold(home, id)
	if err != nil || !open || h.Fenced() {
		return err
	}
	left := h
	left.Reports, left.Exit = nil, nil
	err = tx.DropHold(home, id)
	if h.Terminal != "" {
		err = errors.Join(err, tx.PutHold(left))
		signalHold(tx, id)
	}
	if err != nil {
		return err
	}
	exit := h.Exit
	if home == "" {
		exit = nil
	}
	return letGo(tx, h, nil, exit)
}

// letGo sends the reports of a hold home, the first with its findings, and the
// worker's end behind them. It asks no quota: what they were was taken already.
func letGo(tx store.Tx, h hub.Hold, found *hub.Findings, exit *hub.ExitItem) error {
	a, ok, err := tx.Attachment(h.Home, h.Dispatch)
	if err != nil || !ok {
		return err
	}
	for _, id := range h.Reports {
		if err := letOne(tx, a, id, found); err != nil {
			return err
		}
		found = nil
	}
	if exit == nil {
		return nil
	}
	return commitExit(tx, a, *exit)
}

func letOne(tx store.Tx, a hub.Attachment, id hub.MessageID, found *hub.Findings) error {
	m, err := tx.Message(id)
	if err != nil {
		return err
	}
	var r hub.Report
	if err := json.Unmarshal(m.Payload, &r); err != nil {
		return err
	}
	if found != nil {
		r.Findings = *found
	}
	if r, m, err = fitting(r, m); err != nil {
		return err
	}
	if a.Home != "" {
		return enqueueTaken(tx, toHome(a), m)
	}
	d, err := tx.Dispatch(a.Dispatch)
	if err != nil {
		return err
	}
	if _, _, _, err = settleReport(tx, d, r, m); err == nil {
		tx.Signal(hub.Signal{Topic: hub.TopicVerdict, Key: string(m.ID)})
	}
	return err
}

// fitting leaves findings out until the report fits a message.
func fitting(r hub.Report, m hub.Message) (hub.Report, hub.Message, error) {
	for {
		var err error
		if m.Payload, err = encode(r); err != nil || m.Bytes() <= hub.MaxMessageBytes {
			return r, m, err
		}
		smaller, ok := r.Findings.Smaller()
		if !ok {
			return r, m, hub.CheckMessage(m)
		}
		r.Findings = smaller
	}
}

// noticeScope is the kind of a notice about changes outside of a Task's scope.
const noticeScope = "scope_violation"

// scopeNotice is the payload of a scope_violation notice.
type scopeNotice struct {
	Kind       string         `json:"kind"`
	Task       hub.TaskID     `json:"task_id"`
	Dispatch   hub.DispatchID `json:"dispatch_id"`
	Count      int            `json:"scope_violation_count"`
	Violations []string       `json:"scope_violations"`
	Shared     bool           `json:"scope_shared,omitempty"`
}

// noteScope tells the Run of a success that changed more than it was to.
func noteScope(tx store.Tx, d hub.Dispatch, r hub.Report) error {
	if d.State != hub.Succeeded || r.ScopeCheck != hub.ScopeViolated {
		return nil
	}
	return postNotice(tx, d.Run, notice{
		subject: "changes outside of the scope: " + string(d.ID), history: d.Quiet,
		body: "The worker changed paths that the Task's write_scope does not cover. The scope is advisory: the Task is completed all the same.",
		payload: scopeNotice{
			Kind: noticeScope, Task: d.Task, Dispatch: d.ID, Count: r.ViolationCount, Violations: r.Violations, Shared: r.ScopeShared,
		},
	})
}
