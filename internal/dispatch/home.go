package dispatch

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/mail"
	"github.com/wavehub/wavehub/internal/store"
)

// arrival is one relay item at its destination, decoded and checked, with what
// to do about it. Everything that can be refused is refused before apply.
type arrival struct {
	apply func(store.Tx) (*hub.ItemVerdict, error)
	// mail says that apply does no more than keep the item's message, by its id:
	// the Dispatch stays as it is.
	mail bool
}

// refusal parks a queue: the item cannot be imported, the others can.
type refusal struct{ reason string }

func (r refusal) Error() string { return r.reason }

func refusef(format string, args ...any) error { return refusal{fmt.Sprintf(format, args...)} }

// arriveHome checks an item of a worker's queue against the home's own record d,
// or against err, why there is none.
func arriveHome(tx store.Tx, peer hub.Peer, feed hub.FeedState, it hub.Item, d hub.Dispatch, err error) (arrival, error) {
	switch {
	case hub.IsCode(err, hub.CodeDispatchNotFound):
		return arrival{}, refusef(hub.ParkedUnknown)
	case err != nil:
		return arrival{}, err
	case d.Pin.Lineage != peer.Lineage:
		return arrival{}, refusef(hub.ParkedUnknown) // another hub's
	case d.Pin.StoreID != feed.StoreID || d.Server.PeerID != peer.ID:
		return arrival{}, refusef("peer_store_changed")
	case !peer.Role.CanBe(hub.RoleWorker):
		return arrival{}, refusef("not paired as a worker hub")
	}
	switch it.Kind {
	case hub.ItemMessage:
		return arriveMessage(tx, d, it)
	case hub.ItemExit:
		var exit hub.ExitItem
		if err := json.Unmarshal(it.Payload, &exit); err != nil {
			return arrival{}, refusef("malformed exit: %v", err)
		}
		if n := len(it.Payload); n > hub.ReservedExitBytes {
			return arrival{}, refusef("an exit of %d bytes, at most %d are taken", n, hub.ReservedExitBytes)
		}
		if err := hub.CheckText("signal", exit.Signal, hub.MaxSubjectBytes); err != nil {
			return arrival{}, refusef("exit refused: %v", err)
		}
		return arrival{apply: func(tx store.Tx) (*hub.ItemVerdict, error) { return nil, settleExit(tx, d, exit) }}, nil
	case hub.ItemStopped:
		var stop hub.StopItem
		if err := json.Unmarshal(it.Payload, &stop); err != nil {
			return arrival{}, refusef("malformed stop: %v", err)
		}
		if err := hub.CheckText("reason", stop.Reason, hub.MaxBodyBytes); err != nil {
			return arrival{}, refusef("stop refused: %v", err)
		}
		return arrival{apply: func(tx store.Tx) (*hub.ItemVerdict, error) {
			_, err := EndStop(tx, d.ID, evidenceOf(stop, feed.Epoch == d.Pin.Epoch))
			return nil, err
		}}, nil
	case hub.ItemWaiting:
		return arriveWaiting(d, it)
	case hub.ItemStarted:
		return arrival{apply: func(tx store.Tx) (*hub.ItemVerdict, error) { return nil, startedAtHome(tx, d.ID) }}, nil
	case hub.ItemAnswer, hub.ItemQuestionClosed, hub.ItemFence:
	}
	return arrival{}, refusef("a worker's hub cannot send a %s", it.Kind)
}

// evidenceOf reads an owner's item about a stop. That nothing ever started is no
// proof once the owner's store has been restored since the start.
func evidenceOf(stop hub.StopItem, sameEpoch bool) hub.StopEvidence {
	never := stop.Reason == hub.ReasonNeverAttached
	return hub.StopEvidence{
		Proved: stop.Proved && (!never || sameEpoch), NeverAttached: never, Action: stop.Action, LastError: stop.Reason, Usage: stop.Usage,
	}
}

// arriveMessage checks a worker's message: its origin is what the Dispatch says
// it is, whatever the peer wrote.
func arriveMessage(tx store.Tx, d hub.Dispatch, it hub.Item) (arrival, error) {
	var m hub.Message
	if err := json.Unmarshal(it.Payload, &m); err != nil {
		return arrival{}, refusef("malformed message: %v", err)
	}
	if err := hub.CheckMessage(m); err != nil || m.ID != it.ID || !hub.ValidID(hub.PrefixMessage, string(m.ID)) {
		return arrival{}, refusef("message refused: %v", err)
	}
	by := m.From
	m.Run, m.From, m.To, m.Stale, m.CreatedAt = d.Run, string(d.ID.Box()), d.Run.Box(), false, tx.Now()
	known, err := tx.HasMessage(m.ID)
	if err != nil {
		return arrival{}, err
	}
	if known {
		return arriveKnown(tx, it, m)
	}
	switch m.Type {
	case hub.TypeWorkerDone:
		return arriveReport(d, it, m)
	case hub.TypeQuestion:
		return arrival{apply: func(tx store.Tx) (*hub.ItemVerdict, error) { return lateFor(d, it), postQuestion(tx, d, m) }}, nil
	case hub.TypeStatus, hub.TypeEscalation, hub.TypeHandoff, hub.TypeGuidance:
		return arrival{apply: func(tx store.Tx) (*hub.ItemVerdict, error) { return lateFor(d, it), postMail(tx, d, m) }, mail: true}, nil
	case hub.TypeNotice:
		return arriveNotice(d, m, by)
	case hub.TypeAnswer, hub.TypeSessionStart, hub.TypeControl, hub.TypeSessionClose:
	}
	return arrival{}, refusef("a worker cannot send a %s", m.Type)
}

// lateFor is the verdict on a message of a Dispatch that has ended, else nil. Its
// owner learns from it that the Dispatch is fenced.
func lateFor(d hub.Dispatch, it hub.Item) *hub.ItemVerdict {
	if d.State.TakesMail() {
		return nil
	}
	return tooLate(it, string(d.State))
}

// arriveKnown dedupes by message id; another Dispatch's id is refused. A report
// is told its verdict again: it comes anew after its hub was restored.
func arriveKnown(tx store.Tx, it hub.Item, m hub.Message) (arrival, error) {
	old, err := tx.Message(m.ID)
	if err != nil {
		return arrival{}, err
	}
	if old.From != m.From && old.From != hubName || old.Run != m.Run {
		return arrival{}, refusef("message id in use")
	}
	return arrival{apply: func(tx store.Tx) (*hub.ItemVerdict, error) { return verdictAgain(tx, it) }}, nil
}

// verdictAgain is the verdict on a message that was imported before, or nil.
func verdictAgain(tx store.Tx, it hub.Item) (*hub.ItemVerdict, error) {
	v, reason, err := tx.VerdictOf(it.ID)
	switch {
	case hub.IsCode(err, hub.CodeMessageNotFound):
		return nil, nil
	case err != nil || v == hub.VerdictNone:
		return nil, err
	}
	return &hub.ItemVerdict{Seq: it.Seq, Verdict: v, Reason: reason}, nil
}

func arriveReport(d hub.Dispatch, it hub.Item, m hub.Message) (arrival, error) {
	var r hub.Report
	if err := json.Unmarshal(m.Payload, &r); err != nil {
		return arrival{}, refusef("malformed report: %v", err)
	}
	if r.Dispatch != d.ID || r.Task != d.Task {
		return arrival{}, refusef("a report on another Dispatch or Task")
	}
	if err := r.Check(d.Task, d.ID); err != nil {
		return rejectReport(it, m, err.Error()), nil
	}
	if r.Evidence != hub.EvidenceReport && r.Evidence != hub.EvidenceResult && r.Evidence != hub.EvidenceExit {
		return arrival{}, refusef("a report cannot rest on %q", r.Evidence)
	}
	return arrival{apply: func(tx store.Tx) (*hub.ItemVerdict, error) {
		v, reason, _, err := settleReport(tx, d, r, m)
		return &hub.ItemVerdict{Seq: it.Seq, Verdict: v, Reason: reason}, err
	}}, nil
}

// rejectReport takes a report that this hub's contract refuses and its owner's
// did not: it changes nothing, and its worker may report again.
func rejectReport(it hub.Item, m hub.Message, reason string) arrival {
	m.Body, m.Payload = "", nil
	return arrival{apply: func(tx store.Tx) (*hub.ItemVerdict, error) {
		v := &hub.ItemVerdict{Seq: it.Seq, Verdict: hub.VerdictRejected, Reason: reason}
		return v, errors.Join(tx.Record(m), tx.SetVerdict(m.ID, v.Verdict, v.Reason))
	}}
}

// postQuestion keeps a question; one of a Dispatch that has ended meanwhile is
// history, and closed at once.
func postQuestion(tx store.Tx, d hub.Dispatch, m hub.Message) error {
	_, err := tx.Question(m.ID)
	if !hub.IsCode(err, hub.CodeQuestionNotFound) {
		return err // it came before, and was over the quota of history
	}
	q := hub.Question{Message: m.ID, Run: d.Run, Dispatch: d.ID, State: hub.QuestionPending}
	if err := tx.PutQuestion(q); err != nil {
		return err
	}
	if err := postMail(tx, d, m); err != nil || d.State.TakesMail() {
		return err
	}
	if err := mail.CloseQuestion(tx, q); err != nil {
		return err
	}
	return tellClosed(tx, d, []hub.Question{q})
}

// postMail appends a worker's message; of a Dispatch that has ended it is kept
// as history, within the quota. Of what is beyond that, its id and its verdict
// are kept: its owner may ask for them again.
func postMail(tx store.Tx, d hub.Dispatch, m hub.Message) error {
	if d.State.TakesMail() {
		_, err := takeIn(tx, d.Task, d.ID, m)
		return err
	}
	kept, err := keepStale(tx, d.ID, m)
	if err != nil {
		return err
	}
	if kept {
		m.Stale = true
		_, err = tx.Append(m)
	} else {
		m.Subject, m.Body, m.Payload = "", "", nil // it takes nothing of the quota
		err = tx.Record(m)
	}
	if err != nil {
		return err
	}
	return tx.SetVerdict(m.ID, hub.VerdictStale, string(d.State))
}
