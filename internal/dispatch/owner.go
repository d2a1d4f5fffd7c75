package dispatch

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/mail"
	"github.com/wavehub/wavehub/internal/store"
)

// arriveOwner checks an item of a home's queue against the owner's attachment.
func arriveOwner(tx store.Tx, peer hub.Peer, it hub.Item) (arrival, error) {
	if !peer.Role.CanBe(hub.RoleHome) {
		return arrival{}, refusef("not paired as a home")
	}
	a, ok, err := tx.Attachment(peer.ID, it.Dispatch)
	switch {
	case err != nil:
		return arrival{}, err
	case it.Kind == hub.ItemFence:
		return arriveFence(tx, peer, it, a, ok)
	case !ok:
		return arrival{}, refusef(hub.ParkedUnknown)
	case a.Tombstone:
		return nothing, nil // mail for a worker that there never was
	}
	switch it.Kind {
	case hub.ItemMessage:
		return arriveGuidance(tx, a, it)
	case hub.ItemAnswer:
		return arriveAnswer(tx, a, it)
	case hub.ItemQuestionClosed:
		return arriveClosed(tx, a, it)
	case hub.ItemExit, hub.ItemStopped, hub.ItemFence, hub.ItemWaiting, hub.ItemStarted:
	}
	return arrival{}, refusef("a home cannot send a %s", it.Kind)
}

// nothing is the arrival of an item that changes nothing.
var nothing = arrival{apply: func(store.Tx) (*hub.ItemVerdict, error) { return nil, nil }}

func arriveFence(tx store.Tx, peer hub.Peer, it hub.Item, a hub.Attachment, known bool) (arrival, error) {
	var f hub.FenceItem
	if err := json.Unmarshal(it.Payload, &f); err != nil {
		return arrival{}, refusef("malformed fence: %v", err)
	}
	f = hub.FenceItem{Request: f.Request, GraceMS: f.GraceMS} // the rest is noted here
	if !known {
		switch _, err := tx.Mailbox(it.Dispatch.Box()); {
		case err == nil:
			return arrival{}, refusef("dispatch id in use")
		case !hub.IsCode(err, hub.CodeMailboxNotFound):
			return arrival{}, err
		}
	}
	return arrival{apply: func(tx store.Tx) (*hub.ItemVerdict, error) {
		if !known {
			return nil, Entomb(tx, peer.ID, it.Dispatch)
		}
		return nil, Order(tx, a, f)
	}}, nil
}

// Entomb makes sure that no late start of a fenced Dispatch is accepted, and
// tells the home that there was none.
func Entomb(tx store.Tx, home hub.PeerID, id hub.DispatchID) error {
	a := hub.Attachment{Dispatch: id, Home: home, Tombstone: true, Capability: hub.CapFenced, ExitDone: true, Fenced: true}
	if err := tx.PutAttachment(a); err != nil {
		return err
	}
	return enqueue(tx, toHome(a), hub.ItemStopped, hub.NewMessageID(), hub.StopItem{Proved: true, Action: hub.ActionNone, Reason: hub.ReasonNeverAttached})
}

// Order fences the capability and leaves the order to stop on the attachment,
// for package work to carry out. An order that was carried out stays so.
func Order(tx store.Tx, a hub.Attachment, f hub.FenceItem) error {
	if a.Fenced || a.Fence != nil {
		return nil
	}
	a.Fence, a.Capability = &f, hub.CapFenced
	wakeWorker(tx, a)
	if _, err := mail.CloseQuestions(tx, a.Dispatch); err != nil {
		return err
	}
	tx.Signal(hub.Signal{Topic: hub.TopicFence, Key: string(a.Dispatch)})
	if err := errors.Join(tx.SaveAttachment(a), fenceHold(tx, a.Home, a.Dispatch)); err != nil || !a.Attached() || a.ExitDone {
		return err
	}
	return cancelWorker(tx, a)
}

// arriveGuidance puts a home's message into the worker's mailbox.
func arriveGuidance(tx store.Tx, a hub.Attachment, it hub.Item) (arrival, error) {
	var m hub.Message
	if err := json.Unmarshal(it.Payload, &m); err != nil {
		return arrival{}, refusef("malformed message: %v", err)
	}
	if err := hub.CheckMessage(m); err != nil || m.ID != it.ID || !hub.ValidID(hub.PrefixMessage, string(m.ID)) {
		return arrival{}, refusef("message refused: %v", err)
	}
	if m.Type == hub.TypeWorkerDone || !slices.Contains(hub.Sendable, m.Type) {
		return arrival{}, refusef("a home cannot send a %s", m.Type)
	}
	if m.From != string(a.Run.Box()) {
		m.From = string(hub.Operator)
	}
	m.Run, m.To, m.Stale, m.CreatedAt = a.Run, a.Dispatch.Box(), false, tx.Now()
	next, err := once(tx, boxOf(a), m)
	if err != nil || !a.Capability.Ended() {
		return next, err
	}
	return arrival{apply: func(tx store.Tx) (*hub.ItemVerdict, error) {
		if _, err := next.apply(tx); err != nil {
			return nil, err
		}
		v := tooLate(it, "the worker has ended")
		return v, tx.SetVerdict(it.ID, v.Verdict, v.Reason)
	}}, nil
}

// tooLate is the verdict on a message that its recipient takes no more.
func tooLate(it hub.Item, reason string) *hub.ItemVerdict {
	return &hub.ItemVerdict{Seq: it.Seq, Verdict: hub.VerdictStale, Reason: reason}
}

// once appends the message unless its id came before in another epoch.
func once(tx store.Tx, box hub.Box, m hub.Message) (arrival, error) {
	known, err := tx.HasMessage(m.ID)
	if err != nil {
		return arrival{}, err
	}
	if known {
		old, err := tx.Message(m.ID)
		if err == nil && old.To != m.To {
			err = refusef("message id in use")
		}
		return nothing, err
	}
	return arrival{apply: func(tx store.Tx) (*hub.ItemVerdict, error) {
		_, err := tx.AppendTo(box, m)
		return nil, err
	}, mail: true}, nil
}

func arriveAnswer(tx store.Tx, a hub.Attachment, it hub.Item) (arrival, error) {
	var item hub.AnswerItem
	if err := json.Unmarshal(it.Payload, &item); err != nil {
		return arrival{}, refusef("malformed answer: %v", err)
	}
	q, put, err := ownQuestion(tx, a, item.Question)
	if err != nil {
		return arrival{}, err
	}
	m := hub.Message{
		ID: item.Message, Run: a.Run, From: string(a.Run.Box()), To: a.Dispatch.Box(), Type: hub.TypeAnswer,
		Body: item.Body, Thread: item.Question, ReplyTo: item.Question, CreatedAt: tx.Now(),
	}
	if err := hub.CheckMessage(m); err != nil || m.ID != it.ID {
		return arrival{}, refusef("answer refused: %v", err)
	}
	next, err := once(tx, boxOf(a), m)
	if err != nil || q.State != hub.QuestionPending {
		return next, err
	}
	return arrival{apply: func(tx store.Tx) (*hub.ItemVerdict, error) {
		if err := put(tx); err != nil {
			return nil, err
		}
		if _, err := mail.Answer(tx, q, item.Body, item.Message); err != nil {
			return nil, err
		}
		return next.apply(tx)
	}}, nil
}

func arriveClosed(tx store.Tx, a hub.Attachment, it hub.Item) (arrival, error) {
	var item hub.ClosedItem
	if err := json.Unmarshal(it.Payload, &item); err != nil {
		return arrival{}, refusef("malformed question_closed: %v", err)
	}
	q, put, err := ownQuestion(tx, a, item.Question)
	if err != nil {
		return arrival{}, err
	}
	return arrival{apply: func(tx store.Tx) (*hub.ItemVerdict, error) {
		if err := learnEnd(tx, a, hub.DispatchState(item.Reason)); err != nil || q.State != hub.QuestionPending {
			return nil, err
		}
		if err := put(tx); err != nil {
			return nil, err
		}
		return nil, mail.CloseQuestion(tx, q)
	}}, nil
}

// learnEnd fences the capability of a Dispatch that its home says it has ended.
// A worker that has reported learns its verdict from the ack of its report, which
// goes now if it was held.
func learnEnd(tx store.Tx, a hub.Attachment, at hub.DispatchState) error {
	if !at.Final() && !at.Fenced() {
		return nil
	}
	if err := fenceHold(tx, a.Home, a.Dispatch); err != nil || a.Capability != hub.CapActive {
		return err
	}
	a.Capability = hub.CapFenced
	wakeWorker(tx, a)
	if at.Final() {
		return endSession(tx, a, string(at))
	}
	return tx.SaveAttachment(a)
}

// ownQuestion is a question of the Dispatch, and what is to be done before it is
// changed. One that nobody here remembers was asked before this store was put
// back: it is known again from now on, so that its worker can ask for the answer.
func ownQuestion(tx questionRx, a hub.Attachment, id hub.MessageID) (q hub.Question, put func(store.Tx) error, err error) {
	put = func(store.Tx) error { return nil }
	q, err = tx.Question(id)
	switch {
	case err == nil && q.Dispatch != a.Dispatch:
		return q, put, refusef("unknown question")
	case !hub.IsCode(err, hub.CodeQuestionNotFound):
		return q, put, err
	}
	taken, err := tx.HasMessage(id)
	if err == nil && (taken || !hub.ValidID(hub.PrefixMessage, string(id))) {
		err = refusef("unknown question")
	}
	q = hub.Question{Message: id, Run: a.Run, Dispatch: a.Dispatch, State: hub.QuestionPending}
	return q, func(tx store.Tx) error { return tx.PutQuestion(q) }, err
}

type questionRx interface {
	store.QuestionReader
	store.MailReader
}

// Exit commits a worker's proven end at its owner: for a launcher that
// completes by exit first the report that the exit stands for, then the exit
// itself; for another home both are queued behind everything accepted before. The
// end of a worker whose report is held stays behind that.
func Exit(tx store.Tx, home hub.PeerID, id hub.DispatchID, exit hub.ExitItem, tail string) error {
	a, ok, err := tx.Attachment(home, id)
	if err != nil || !ok || a.ExitDone {
		return err
	}
	if a.Completion == "exit" && a.Capability == hub.CapActive && exit.ExitCode != nil {
		if err := reportExit(tx, a, exit, tail); err != nil {
			return err
		}
	}
	held, err := holdExit(tx, a, exit)
	if err == nil && !held {
		err = commitExit(tx, a, exit)
	}
	if err != nil {
		return err
	}
	if a, _, err = tx.Attachment(home, id); err != nil {
		return err
	}
	a.ExitDone = true
	if a.Capability != hub.CapSettled {
		a.Capability = hub.CapFenced
	}
	if err := closeSession(tx, a); err != nil {
		return err
	}
	return tx.SaveAttachment(a)
}

func commitExit(tx store.Tx, a hub.Attachment, exit hub.ExitItem) error {
	usage, err := a.Used()
	if err != nil {
		return err
	}
	exit.Usage = hub.ShortUsage(usage)
	if a.Home != "" {
		return enqueue(tx, toHome(a), hub.ItemExit, hub.NewMessageID(), exit)
	}
	d, err := tx.Dispatch(a.Dispatch)
	if err != nil {
		return err
	}
	return settleExit(tx, d, exit)
}

// reportExit writes the report that the exit of such a launcher stands for.
func reportExit(tx store.Tx, a hub.Attachment, exit hub.ExitItem, tail string) error {
	r := hub.Report{Task: a.Task, Dispatch: a.Dispatch, Outcome: hub.OutcomeSucceeded, Evidence: hub.EvidenceExit, ExitCode: exit.ExitCode}
	if *exit.ExitCode != 0 {
		r.Outcome, r.Reason = hub.OutcomeFailed, describeExit(exit)
	}
	m := hub.Message{
		ID: hub.NewMessageID(), Run: a.Run, From: hubName, To: a.Run.Box(), Type: hub.TypeWorkerDone,
		Subject: "The process " + describeExit(exit), Body: hub.PlainText([]byte(tail)), CreatedAt: tx.Now(),
	}
	_, err := commitReport(tx, a, r, m, a.LastReportAt)
	return err
}

// Stopped commits the evidence about a stop that the home ordered: in the
// home's own record if that is here, else as an item; the answer of a direct
// stop call says the same.
func Stopped(tx store.Tx, home hub.PeerID, id hub.DispatchID, ev hub.StopEvidence) error {
	a, ok, err := tx.Attachment(home, id)
	if err != nil || !ok || a.Fence == nil || a.Fenced || a.Fence.Reported && !ev.Proved {
		return err
	}
	if ev.Usage, err = a.Used(); err != nil {
		return err
	}
	order := *a.Fence
	request := order.Request
	order.Reported = true
	if ev.Proved {
		order.Action, order.ExitCode = ev.Action, ev.ExitCode
	}
	a.Fence, a.Fenced, a.ExitDone = &order, ev.Proved, a.ExitDone || ev.Proved && !a.Attached()
	if err := tx.SaveAttachment(a); err != nil {
		return err
	}
	if home == "" {
		_, err := EndStop(tx, id, ev)
		return err
	}
	if ev.Proved {
		if err := endSession(tx, a, string(hub.Stopped)); err != nil {
			return err
		}
	}
	return enqueue(tx, toHome(a), hub.ItemStopped, hub.NewMessageID(), hub.StopItem{
		Request: request, Proved: ev.Proved, Action: ev.Action, Reason: hub.PlainText([]byte(ev.LastError)), Usage: hub.ShortUsage(ev.Usage),
	})
}
