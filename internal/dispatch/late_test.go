package dispatch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/mail"
	"github.com/wavehub/wavehub/internal/store"
)

// Limits count what was sent, not what JSON can make of it.
func TestReportsOfMarkupAreNoLarger(t *testing.T) {
	w := newWorld(t)
	r, _ := w.newRun()
	task := w.newTask(r)
	id := w.begin(task)
	in := report(task, id, hub.OutcomeSucceeded, strings.Repeat("<", hub.MaxBodyBytes))
	in.Report.Result = json.RawMessage(`"` + strings.Repeat("&", hub.MaxResultBytes-2) + `"`)
	if sent, err := w.send(worker(id), in); err != nil || sent.Verdict != hub.VerdictAccepted {
		t.Fatalf("%+v %v", sent, err)
	}
	var kept hub.Report
	m := w.inbox(r)[0]
	if err := json.Unmarshal(m.Payload, &kept); err != nil || string(kept.Result) != string(in.Report.Result) || m.Body != in.Body {
		t.Errorf("the report was not kept as it was sent: %v", err)
	}
	in.Report.Result = json.RawMessage(`"` + strings.Repeat("&", hub.MaxResultBytes-1) + `"`)
	if _, err := w.send(worker(id), in); !hub.IsCode(err, hub.CodeTooLarge) {
		t.Errorf("one byte more: %v", err)
	}
}

// Late reports have a quota in items and in bytes; what repeats the report
// that settled is a duplicate however often it comes.
func TestTheQuotaOfLateReports(t *testing.T) {
	w := newWorld(t)
	r, _ := w.newRun()
	task := w.newTask(r)
	id := w.begin(task)
	send := func(body string) (dispatch.Sent, error) {
		return w.send(worker(id), report(task, id, hub.OutcomeSucceeded, body))
	}
	for i := range 40 {
		if sent, err := send("the report"); err != nil || (sent.Verdict == hub.VerdictDuplicate) != (i > 0) {
			t.Fatalf("repetition %d: %+v %v", i, sent, err)
		}
	}
	if _, err := send(strings.Repeat("x", hub.MaxBodyBytes)); !hub.IsCode(err, hub.CodeRelayQuotaExceeded) {
		t.Errorf("64 KiB with their frame: %v", err)
	}
	for i := range 16 {
		if sent, err := send(fmt.Sprint("late ", i)); err != nil || sent.Verdict != hub.VerdictStale || sent.Reason != "succeeded" {
			t.Fatalf("late report %d: %+v %v", i, sent, err)
		}
	}
	if _, err := send("one more"); !hub.IsCode(err, hub.CodeRelayQuotaExceeded) {
		t.Errorf("the 17th: %v", err)
	}
	stale := 0
	for _, m := range w.inbox(r) {
		if m.Stale && m.Body != "" {
			stale++
		}
	}
	if stale != 16 {
		t.Errorf("%d late reports are kept, all that were accepted should be", stale)
	}
}

func (w *world) beginQuiet(task hub.TaskID) hub.DispatchID {
	w.t.Helper()
	id := hub.NewDispatchID()
	w.update(func(tx store.Tx) error {
		d, err := dispatch.Begin(tx, dispatch.Attempt{ID: id, Task: task, Quiet: true})
		if err != nil {
			return err
		}
		a := hub.Attachment{Dispatch: id, Task: task, Run: d.Run, Capability: hub.CapActive, Completion: "report"}
		return dispatch.Attach(tx, a, "cap-"+string(id))
	})
	return id
}

// --reports history: the report settles, is kept, wakes nobody, and is no late
// mail.
func TestReportsAsHistory(t *testing.T) {
	w := newWorld(t)
	r, consumer := w.newRun()
	task := w.newTask(r)
	id := w.beginQuiet(task)
	sent, err := w.send(worker(id), report(task, id, hub.OutcomeSucceeded, "done quietly"))
	if err != nil || sent.Verdict != hub.VerdictAccepted {
		t.Fatalf("%+v %v", sent, err)
	}
	if tk, d := w.states(task, id); d.State != hub.Succeeded || tk.State != hub.TaskCompleted {
		t.Errorf("Dispatch %s, Task %s", d.State, tk.State)
	}
	if b, err := w.check(consumer, mail.CheckInput{Box: r.Box()}); err != nil || b.Delivery != "" {
		t.Errorf("a check brings %+v %v", b.Messages, err)
	}
	if ms := w.inbox(r); len(ms) != 1 || ms[0].Stale || ms[0].Body != "done quietly" {
		t.Errorf("the history is %+v", ms)
	}
	if got := w.posted(sent.Message); got.Delivery != dispatch.Delivered {
		t.Errorf("it is shown as %s", got.Delivery)
	}
	w.view(func(rx store.Rx) error {
		items, bytes, err := rx.StaleKept(id)
		if items+bytes != 0 {
			t.Errorf("it takes %d items and %d bytes of the quota of late mail", items, bytes)
		}
		return err
	})
	failing := w.beginQuiet(w.newTask(r))
	w.update(func(tx store.Tx) error {
		_, err := dispatch.EndStart(tx, failing, dispatch.Start{Event: hub.EvStartFailed})
		return err
	})
	if b, err := w.check(consumer, mail.CheckInput{Box: r.Box()}); err != nil || b.Delivery != "" || len(w.inbox(r)) != 2 {
		t.Errorf("a failed start is mailed: %+v %v", b.Messages, err)
	}
}

func (w *world) posted(id hub.MessageID) dispatch.Posted {
	w.t.Helper()
	got, err := w.dispatch.Message(context.Background(), operator(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

// The mail of an end that no call answered says what proved it.
func TestLateEndsSayTheirEvidence(t *testing.T) {
	for name, c := range map[string]struct {
		end      func(tx store.Tx, id hub.DispatchID) error
		evidence hub.Evidence
		outcome  hub.Outcome
	}{
		"an unknown start that failed": {func(tx store.Tx, id hub.DispatchID) error {
			_, err := dispatch.EndStart(tx, id, dispatch.Start{Event: hub.EvStartFailed})
			return err
		}, hub.EvidenceStart, hub.OutcomeFailed},
		"an unknown stop that is proved": {func(tx store.Tx, id hub.DispatchID) error {
			if err := unknownStop(tx, id); err != nil {
				return err
			}
			_, err := dispatch.EndStop(tx, id, hub.StopEvidence{Proved: true})
			return err
		}, hub.EvidenceStop, hub.OutcomeCancelled},
		"an unknown stop of what never ran": {func(tx store.Tx, id hub.DispatchID) error {
			if err := unknownStop(tx, id); err != nil {
				return err
			}
			_, err := dispatch.EndStart(tx, id, dispatch.Start{Event: hub.EvStartFailed})
			return err
		}, hub.EvidenceStop, hub.OutcomeCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r, _ := w.newRun()
			id := hub.NewDispatchID()
			task := w.newTask(r)
			w.update(func(tx store.Tx) error {
				if _, err := dispatch.Begin(tx, dispatch.Attempt{ID: id, Task: task}); err != nil {
					return err
				}
				_, err := dispatch.EndStart(tx, id, dispatch.Start{Event: hub.EvStartLost})
				return err
			})
			w.update(func(tx store.Tx) error { return c.end(tx, id) })
			ms := w.inbox(r)
			if len(ms) != 1 {
				t.Fatalf("%d mails", len(ms))
			}
			var got hub.Report
			if err := json.Unmarshal(ms[0].Payload, &got); err != nil || got.Evidence != c.evidence || got.Outcome != c.outcome || ms[0].From != "hub" {
				t.Errorf("%+v from %s, %v", got, ms[0].From, err)
			}
		})
	}
}

func unknownStop(tx store.Tx, id hub.DispatchID) error {
	if _, _, err := dispatch.Fence(tx, id, hub.FenceItem{}); err != nil {
		return err
	}
	_, err := dispatch.EndStop(tx, id, hub.StopEvidence{})
	return err
}

// Guidance that finds its worker ended is shown as undelivered at home.
func TestGuidanceForAnEndedWorker(t *testing.T) {
	p := newPair(t)
	r, consumer := p.home.newRun()
	task := p.home.newTask(r)
	id := p.begin(task)
	guide := func() hub.MessageID {
		g, err := p.home.send(consumer, dispatch.SendInput{To: id.Box(), Type: hub.TypeGuidance, Body: "hurry"})
		if err != nil {
			t.Fatal(err)
		}
		return g.Message
	}
	early := guide()
	p.toOwner()
	if got := p.home.posted(early); got.Delivery != dispatch.AtOwner {
		t.Errorf("guidance for a live worker is %s", got.Delivery)
	}
	p.owner.update(func(tx store.Tx) error {
		return dispatch.Exit(tx, p.homeAtOwner, id, hub.ExitItem{}, "")
	})
	late := guide()
	p.toOwner()
	if got := p.home.posted(late); got.Delivery != dispatch.Undelivered || got.Verdict != hub.VerdictStale {
		t.Errorf("guidance for an ended worker is %+v", got)
	}
	if _, err := p.owner.send(worker(id), status("still here")); !hub.IsCode(err, hub.CodeDispatchInactive) {
		t.Errorf("the capability outlived its process: %v", err)
	}
	if _, err := p.owner.send(worker(id), dispatch.SendInput{Type: hub.TypeQuestion, Body: "may I?"}); !hub.IsCode(err, hub.CodeDispatchInactive) {
		t.Errorf("a question after the exit: %v", err)
	}
}

func (p *pair) capability(id hub.DispatchID) (c hub.CapabilityState) {
	p.t.Helper()
	p.owner.view(func(rx store.Rx) error {
		a, _, err := rx.Attachment(p.homeAtOwner, id)
		c = a.Capability
		return err
	})
	return c
}

func (p *pair) abandon(id hub.DispatchID) {
	p.t.Helper()
	p.home.update(func(tx store.Tx) error {
		_, _, err := dispatch.Abandon(tx, id)
		return err
	})
}

// An owner learns that a Dispatch was given up from what the relay says anyway.
func TestOwnersLearnTheFence(t *testing.T) {
	t.Run("from the verdict on a late message", func(t *testing.T) {
		p := newPair(t)
		r, _ := p.home.newRun()
		id := p.begin(p.home.newTask(r))
		p.abandon(id)
		sent, err := p.owner.send(worker(id), status("going well"))
		if err != nil {
			t.Fatal(err)
		}
		res := p.importHome(p.outbox())
		p.ackOwner(res.Acks)
		if got := p.capability(id); got != hub.CapFenced {
			t.Errorf("the capability is %s", got)
		}
		if got := p.owner.posted(sent.Message); got.Delivery != dispatch.Undelivered || got.Reason != "abandoned" {
			t.Errorf("%+v", got)
		}
		if again := p.importHome(p.outboxAll(id)); len(again.Acks) != 1 || len(again.Acks[0].Verdicts) != 1 {
			t.Errorf("after a lost ack: %+v", again)
		}
	})
	t.Run("from a closed question", func(t *testing.T) {
		p := newPair(t)
		r, _ := p.home.newRun()
		id := p.begin(p.home.newTask(r))
		if _, err := p.owner.send(worker(id), dispatch.SendInput{Type: hub.TypeQuestion, Body: "may I?"}); err != nil {
			t.Fatal(err)
		}
		p.ackOwner(p.importHome(p.outbox()).Acks)
		p.abandon(id)
		p.toOwner()
		if got := p.capability(id); got != hub.CapFenced {
			t.Errorf("the capability is %s", got)
		}
	})
}

// outboxAll is a queue from its beginning, acknowledged or not.
func (p *pair) outboxAll(id hub.DispatchID) []hub.Item {
	p.t.Helper()
	items, err := p.owner.dispatch.Queue(context.Background(), p.homeAtOwner, hub.ToHome, id, 1, 1<<20)
	if err != nil {
		p.t.Fatal(err)
	}
	return items
}

// A report that the home's contract refuses changes nothing; its worker may
// report again.
func TestARejectedReportMayBeMadeAgain(t *testing.T) {
	p := newPair(t)
	r, _ := p.home.newRun()
	task := p.home.newTask(r)
	id := p.begin(task)
	sent, err := p.owner.send(worker(id), report(task, id, hub.OutcomeSucceeded, "fine"))
	if err != nil || p.capability(id) != hub.CapReported {
		t.Fatalf("%+v %v, %s", sent, err, p.capability(id))
	}
	items := p.outbox()
	items[0].Payload = []byte(strings.Replace(string(items[0].Payload), `\"outcome\":\"succeeded\"`, `\"outcome\":\"splendid\"`, 1))
	items[0].Payload = []byte(strings.Replace(string(items[0].Payload), `"outcome":"succeeded"`, `"outcome":"splendid"`, 1))
	p.ackOwner(p.importHome(items).Acks)
	if got := p.capability(id); got != hub.CapActive {
		t.Errorf("the capability is %s", got)
	}
	if got := p.owner.posted(sent.Message); got.Verdict != hub.VerdictRejected || got.Delivery != dispatch.Undelivered {
		t.Errorf("%+v", got)
	}
	if tk, d := p.home.states(task, id); d.State != hub.Ready || tk.State != hub.TaskDispatched {
		t.Errorf("Dispatch %s, Task %s", d.State, tk.State)
	}
	if _, err := p.owner.send(worker(id), report(task, id, hub.OutcomeSucceeded, "fine")); err != nil {
		t.Fatal(err)
	}
	p.ackOwner(p.importHome(p.outbox()).Acks)
	if _, d := p.home.states(task, id); d.State != hub.Succeeded || p.capability(id) != hub.CapSettled {
		t.Errorf("Dispatch %s, capability %s", d.State, p.capability(id))
	}
}

// A message to a worker that waits for an answer says so, and a reply to a
// message that is no question is guidance in its thread.
func TestRepliesAndPendingQuestions(t *testing.T) {
	w := newWorld(t)
	r, consumer := w.newRun()
	id := w.begin(w.newTask(r))
	told, err := w.send(worker(id), status("half way"))
	if err != nil {
		t.Fatal(err)
	}
	in := dispatch.ReplyInput{Message: told.Message, Body: "good"}
	back, err := w.dispatch.Reply(context.Background(), w.request(consumer, "message.reply", in), in)
	if err != nil || back.Pending != "" {
		t.Fatalf("%+v %v", back, err)
	}
	if m := w.posted(back.Message).Message; m.Type != hub.TypeGuidance || m.Thread != told.Message || m.ReplyTo != told.Message || m.To != id.Box() {
		t.Errorf("%+v", m)
	}
	q, err := w.send(worker(id), dispatch.SendInput{Type: hub.TypeQuestion, Body: "left or right?"})
	if err != nil {
		t.Fatal(err)
	}
	hint, err := w.send(consumer, dispatch.SendInput{To: id.Box(), Type: hub.TypeGuidance, Body: "note"})
	if err != nil || hint.Pending != q.Message {
		t.Errorf("%+v %v, the worker waits for %s", hint, err, q.Message)
	}
}

// A late message beyond the quota of history is not kept, but its verdict is:
// the ack that told it may be lost.
func TestTheVerdictOnLateMailIsToldAgain(t *testing.T) {
	p := newPair(t)
	r, _ := p.home.newRun()
	id := p.begin(p.home.newTask(r))
	const sent = 20
	for i := range sent {
		if _, err := p.owner.send(worker(id), status(fmt.Sprint("message ", i))); err != nil {
			t.Fatal(err)
		}
	}
	p.home.update(func(tx store.Tx) error { _, _, err := dispatch.Abandon(tx, id); return err })
	items := p.outbox()
	first := p.importHome(items)
	again := p.importHome(items)
	if n := len(p.home.inbox(r)); n != 16 {
		t.Errorf("%d late messages are kept, the quota is 16", n)
	}
	for name, res := range map[string]hub.ImportResult{"first": first, "again": again} {
		if len(res.Acks) != 1 || res.Acks[0].Seq != sent || len(res.Acks[0].Verdicts) != sent {
			t.Errorf("%s: %+v", name, res.Acks)
		}
	}
}

// A question that was asked before the owner's files were put back is known again
// by its answer, and one that is another Dispatch's is not taken.
func TestAnAnswerToAForgottenQuestion(t *testing.T) {
	p := newPair(t)
	r, _ := p.home.newRun()
	id, other := p.begin(p.home.newTask(r)), p.begin(p.home.newTask(r))
	asked, err := p.owner.send(worker(other), dispatch.SendInput{Type: hub.TypeQuestion, Body: "Go on?"})
	if err != nil {
		t.Fatal(err)
	}
	carry := func(seq int64, kind hub.ItemKind, id hub.DispatchID, item any, message hub.MessageID) hub.Ack {
		t.Helper()
		raw, err := json.Marshal(item)
		if err != nil {
			t.Fatal(err)
		}
		it := hub.Item{Pos: seq, Seq: seq, Dispatch: id, ID: message, Kind: kind, Payload: raw}
		feed := hub.FeedState{StoreID: p.home.id, Epoch: 1, Position: seq}
		res, err := p.owner.dispatch.Import(t.Context(), p.homeAtOwner, hub.ToWorker, feed, []hub.Item{it})
		if err != nil || len(res.Acks) != 1 {
			t.Fatalf("%+v %v", res, err)
		}
		return res.Acks[0]
	}
	forgotten, answer := hub.NewMessageID(), hub.NewMessageID()
	ack := carry(1, hub.ItemAnswer, id, hub.AnswerItem{Question: forgotten, Message: answer, Body: "yes"}, answer)
	if ack.Seq != 1 || ack.Parked != "" {
		t.Fatalf("%+v", ack)
	}
	got, err := p.owner.mail.Await(t.Context(), worker(id), forgotten, time.Second)
	if err != nil || got.Question.Answer != "yes" {
		t.Errorf("%+v %v", got, err)
	}
	closed := hub.NewMessageID()
	if ack := carry(2, hub.ItemQuestionClosed, id, hub.ClosedItem{Question: hub.NewMessageID(), Reason: "failed"}, closed); ack.Seq != 2 || ack.Parked != "" {
		t.Errorf("the end of another one: %+v", ack)
	}
	stolen := hub.NewMessageID()
	if ack := carry(3, hub.ItemAnswer, id, hub.AnswerItem{Question: asked.Message, Message: stolen, Body: "no"}, stolen); ack.Seq != 2 || ack.Parked == "" {
		t.Errorf("another Dispatch's question: %+v", ack)
	}
}
