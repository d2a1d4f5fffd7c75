package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/mail"
	"github.com/wavehub/wavehub/internal/store"
)

// questionModel follows the questions of one Dispatch after the other: page
// "contract", 3.9.
type questionModel struct {
	w         *world
	run       hub.RunID
	now       hub.Principal   // the present consumer
	olds      []hub.Principal // fenced ones
	stranger  hub.DispatchID  // never asks
	task      hub.TaskID
	d         hub.DispatchID // the latest
	live      bool
	questions []*asked
}

// asked is one question with everybody who waits for its answer.
type asked struct {
	id     hub.MessageID
	d      hub.DispatchID
	sum    string // text and options
	state  hub.QuestionState
	answer string
	reply  hub.MessageID
	waits  []chan waited
}

type waited struct {
	got mail.AnswerResult
	err error
}

func (m *questionModel) begin(t *rapid.T) {
	if m.live {
		t.Skip("the worker lives")
	}
	m.task = m.w.newTask(m.run)
	m.d, m.live = m.w.begin(m.task), true
}

// ask joins the pending question that is equal, and otherwise makes one.
func (m *questionModel) ask(t *rapid.T) {
	in := dispatch.SendInput{
		Type: hub.TypeQuestion, Body: rapid.SampledFrom([]string{"Go on?", "Keep it?"}).Draw(t, "text"),
		Options: rapid.SampledFrom([][]string{nil, {"yes", "no"}, {"no", "yes"}}).Draw(t, "options"),
	}
	sum := fmt.Sprint(in.Body, in.Options)
	sent, err := m.w.send(worker(m.d), in)
	if !m.live {
		if !hub.IsCode(err, hub.CodeDispatchInactive) {
			t.Fatalf("a question after the end: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range m.questions {
		equal := q.d == m.d && q.sum == sum && q.state == hub.QuestionPending
		if equal != (q.id == sent.Message) {
			t.Fatalf("%q is %s; %+v was asked before", sum, sent.Message, q)
		}
		if equal {
			return
		}
	}
	m.questions = append(m.questions, &asked{id: sent.Message, d: m.d, sum: sum, state: hub.QuestionPending})
}

func (m *questionModel) draw(t *rapid.T) *asked {
	if len(m.questions) == 0 {
		t.Skip("nothing was asked")
	}
	recent := m.questions[max(0, len(m.questions)-4):]
	return rapid.SampledFrom(recent).Draw(t, "question")
}

// reply: the first answer by the present consumer wins.
func (m *questionModel) reply(t *rapid.T) {
	q, p := m.draw(t), m.now
	in := dispatch.ReplyInput{Message: q.id, Body: rapid.SampledFrom([]string{"yes", "no"}).Draw(t, "answer")}
	former := len(m.olds) > 0 && rapid.IntRange(0, 4).Draw(t, "former") == 0
	if former {
		p = rapid.SampledFrom(m.olds).Draw(t, "old")
	}
	sent, err := m.w.dispatch.Reply(t.Context(), m.w.request(p, "message.reply", hub.NewRequestID()), in)
	var want hub.Code
	switch {
	case former:
		want = hub.CodeConsumerFenced
	case q.state == hub.QuestionClosed:
		want = hub.CodeDispatchInactive
	case q.state == hub.QuestionAnswered && q.answer != in.Body:
		want = hub.CodeAnswerConflict
	case q.state == hub.QuestionPending:
		q.state, q.answer, q.reply = hub.QuestionAnswered, in.Body, sent.Message
	}
	if want != "" && !hub.IsCode(err, want) || want == "" && (err != nil || sent.Message != q.reply) {
		t.Fatalf("%q to %+v: %+v %v, want %q", in.Body, q, sent, err, want)
	}
	m.woken(t, q)
}

// resume looks for the answer without waiting for it.
func (m *questionModel) resume(t *rapid.T) {
	q := m.draw(t)
	got, err := m.w.mail.Await(t.Context(), worker(q.d), q.id, 0)
	m.compare(t, q, waited{got, err})
	if _, err := m.w.mail.Await(t.Context(), worker(m.stranger), q.id, 0); !hub.IsCode(err, hub.CodeOutOfScope) {
		t.Fatalf("another Dispatch resumes %s: %v", q.id, err)
	}
	m.w.forgetWaits()
}

func (m *questionModel) compare(t *rapid.T, q *asked, r waited) {
	ok := r.err == nil && r.got.TimedOut == (q.state == hub.QuestionPending) && r.got.Question.Answer == q.answer
	if q.state == hub.QuestionClosed {
		ok = hub.IsCode(r.err, hub.CodeDispatchInactive)
	}
	if !ok {
		t.Fatalf("%+v was answered with %+v %v", q, r.got, r.err)
	}
}

// wait lets the asker wait until somebody answers or closes the question.
func (m *questionModel) wait(t *rapid.T) {
	q := m.draw(t)
	if q.state != hub.QuestionPending {
		t.Skip("it is not pending")
	}
	ctx, result := t.Context(), make(chan waited, 1)
	go func() {
		got, err := m.w.mail.Await(ctx, worker(q.d), q.id, time.Minute)
		result <- waited{got, err}
	}()
	m.w.untilWaitsOn(string(q.id))
	q.waits = append(q.waits, result)
}

// woken compares what the waiters of a question got that is pending no more.
func (m *questionModel) woken(t *rapid.T, q *asked) {
	if q.state == hub.QuestionPending {
		return
	}
	for _, result := range q.waits {
		select {
		case r := <-result:
			m.compare(t, q, r)
		case <-time.After(10 * time.Second):
			t.Fatalf("%+v: a waiter was not woken", q)
		}
	}
	q.waits = nil
}

// end settles or fences the Dispatch, which closes what is pending.
func (m *questionModel) end(t *rapid.T) {
	if !m.live {
		t.Skip("it has ended")
	}
	ends := map[string]func() error{
		"abandon": m.tx(func(tx store.Tx) error { _, _, err := dispatch.Abandon(tx, m.d); return err }),
		"stop":    m.tx(func(tx store.Tx) error { _, _, err := dispatch.Fence(tx, m.d, hub.FenceItem{}); return err }),
		"exit":    m.tx(func(tx store.Tx) error { return dispatch.Exit(tx, "", m.d, hub.ExitItem{}, "") }),
	}
	for _, o := range []hub.Outcome{hub.OutcomeSucceeded, hub.OutcomeFailed, hub.OutcomeCancelled} {
		ends[string(o)] = func() error { _, err := m.w.send(worker(m.d), report(m.task, m.d, o, "b")); return err }
	}
	how := rapid.SampledFrom([]string{"abandon", "stop", "exit", "succeeded", "failed", "cancelled"}).Draw(t, "how")
	if err := ends[how](); err != nil {
		t.Fatal(err)
	}
	m.live = false
	for _, q := range m.questions {
		if q.state == hub.QuestionPending {
			q.state = hub.QuestionClosed
			m.woken(t, q)
		}
	}
}

func (m *questionModel) tx(fn func(store.Tx) error) func() error {
	return func() error { return m.w.store.Update(context.Background(), store.Settle, fn) }
}

func (m *questionModel) use(*rapid.T) { m.olds, m.now = append(m.olds, m.now), m.w.use(m.run) }

// guide tells a coordinator that the worker it writes to is waiting for it.
func (m *questionModel) guide(t *rapid.T) {
	sent, err := m.w.send(operator(), dispatch.SendInput{To: m.d.Box(), Type: hub.TypeGuidance, Body: "x"})
	if !m.live {
		if !hub.IsCode(err, hub.CodeDispatchInactive) {
			t.Fatalf("guidance after the end: %v", err)
		}
		return
	}
	var oldest hub.MessageID
	for _, q := range m.questions {
		if oldest == "" && q.state == hub.QuestionPending {
			oldest = q.id
		}
	}
	if err != nil || sent.Pending != oldest {
		t.Fatalf("the pending question is %q, want %q (%v)", sent.Pending, oldest, err)
	}
}

// invariants: each question is in the Run's inbox once, and each answer once in
// its Dispatch's.
func (m *questionModel) invariants(t *rapid.T) {
	answers, mailed := 0, 0
	for _, q := range m.questions {
		if q.d == m.d && q.state == hub.QuestionAnswered {
			answers++
		}
	}
	h, err := m.w.mail.History(t.Context(), operator(), mail.HistoryInput{Box: m.d.Box(), Limit: 1000, Types: []hub.MessageType{hub.TypeAnswer}})
	if err != nil || len(h.Messages) != answers {
		t.Fatalf("%d answers in the mailbox of %s, want %d (%v)", len(h.Messages), m.d, answers, err)
	}
	for _, msg := range m.w.inbox(m.run) {
		if msg.Type == hub.TypeQuestion {
			mailed++
		}
	}
	if mailed != len(m.questions) {
		t.Fatalf("%d questions in the inbox, want %d", mailed, len(m.questions))
	}
}

// TestModel_Questions: equal pending questions are one, the first answer by the
// present consumer wins and wakes the asker, and every end closes the rest.
// Invariant 9 of package mail.
func TestModel_Questions(t *testing.T) {
	w := newWorld(t)
	rapid.Check(t, func(t *rapid.T) {
		m := &questionModel{w: w}
		m.run, m.now = w.newRun()
		m.stranger = w.begin(w.newTask(m.run))
		m.begin(t)
		t.Cleanup(m.leave)
		t.Repeat(map[string]func(*rapid.T){
			"begin": m.begin, "ask": m.ask, "reply": m.reply, "resume": m.resume, "wait": m.wait, "end": m.end,
			"use": m.use, "guide": m.guide, "": m.invariants,
		})
	})
}

// leave collects the waiters that are left; their context has ended.
func (m *questionModel) leave() {
	for _, q := range m.questions {
		for _, result := range q.waits {
			if r := <-result; !errors.Is(r.err, context.Canceled) {
				m.w.t.Errorf("%+v: a waiter that left got %+v", q, r)
			}
		}
	}
}
