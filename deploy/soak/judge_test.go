//go:build unix

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/openapi/api"
)

// world is a soak in which all is well; tests spoil one thing of it. There are
// five Dispatches: reported, which spoke, asked, was guided and reported;
// exited, of which the hub told the end; stopped and abandoned, which a call
// ended; and unborn, whose start was cut and came to nothing.
type world struct {
	*book
	facts
	in *inbox
}

func newWorld() *world {
	w := &world{book: newBook(), facts: facts{
		dispatches: map[string]api.Dispatch{}, tasks: map[string]api.Task{},
		questions: map[string]api.Question{}, whereabouts: map[string]place{"g2": {undelivered, "12:00"}},
	}}
	w.in = w.inbox("run:r")
	w.effects = map[string]int{}
	w.add("reported", "ready", api.DispatchStateSucceeded, api.TaskStateCompleted, "succeeded", "report")
	w.add("exited", "ready", api.DispatchStateFailed, api.TaskStateFailed, "failed", "exit")
	w.add("stopped", "ready", api.DispatchStateStopped, api.TaskStateBlocked, "cancelled", "stop").order = toldAtOnce
	w.add("abandoned", "ready", api.DispatchStateAbandoned, api.TaskStateBlocked, "", "").order = toldAtOnce
	w.add("unborn", "failed", api.DispatchStateFailed, api.TaskStateFailed, "failed", "start")
	w.starts[4].cut = true
	w.talk()
	w.bear("d1", "exited", "hub", "failed", "exit")
	w.in.acked()
	w.unknowns, w.resolved = 1, 1
	return w
}

func (w *world) add(name, start string, state api.DispatchState, task api.TaskState, outcome, evidence string) *life {
	s := w.requested("req-"+name, "task-"+name)
	s.dispatch, s.state = name, start
	w.dispatches[name] = api.Dispatch{DispatchId: name, TaskId: s.task, State: state, Outcome: &outcome, Evidence: &evidence, SettledAt: new("12:01")}
	w.tasks[s.task] = api.Task{TaskId: s.task, State: task, LatestDispatchId: &name}
	if start != "ready" {
		return nil
	}
	w.effects[name] = 1
	return w.born(name)
}

// talk is what was said by and to the first worker.
func (w *world) talk() {
	l, from := w.lives["reported"], "dispatch:reported"
	for i, kind := range []string{kindStatus, kindStatus, kindQuestion, kindStatus} {
		l.sent = append(l.sent, note{id: fmt.Sprint("s", i), from: from, kind: kind, body: fmt.Sprint("says ", i)})
	}
	w.in.got("delivery1", slices.Clone(l.sent))
	w.in.acked()
	l.asked, l.replies["s2"] = []asked{{question: "s2", answer: "yes"}}, "yes"
	w.questions["s2"] = api.Question{State: api.QuestionStateAnswered, Answer: new("yes")}
	l.given = []note{{id: "a1", kind: kindAnswer, body: "yes"}, {id: "g1", kind: kindGuidance, body: "go on"}, {id: "g2", kind: kindGuidance, body: "too late"}}
	l.mail.got("delivery2", slices.Clone(l.given[:2]))
	w.bear("s4", "reported", from, "succeeded", "report")
	l.sent = append(l.sent, note{id: "s4", from: from, kind: kindDone})
	l.reports = []report{
		{verdict: accepted, want: []string{accepted}},
		{verdict: duplicate, want: []string{duplicate}, kind: repeated},
		{verdict: stale, want: []string{stale}, kind: late},
	}
}

// bear brings a worker_done.
func (w *world) bear(id, dispatch, from, outcome, evidence string) {
	w.in.taken = append(w.in.taken, note{id: id, from: from, kind: kindDone, done: done{dispatch, outcome, evidence}})
}

// deliver changes what the Run took.
func (w *world) deliver(change func([]note) []note) { w.in.taken = change(w.in.taken) }

func TestJudge_FindsNothingWhereAllIsWell(t *testing.T) {
	w := newWorld()
	j := judge(w.book, w.facts)
	if len(j.found) != 0 {
		t.Errorf("found %q", j.found)
	}
	for _, want := range []row{
		{"starts requested / Dispatches", []int{5, 5}},
		{"starts ready / effects executed / executed twice", []int{4, 4, 0}},
		{"status messages accepted / delivered", []int{3, 3}},
		{"questions asked / answered / closed", []int{1, 1, 0}},
		{"guidance accepted / received / undelivered by an ended worker", []int{2, 1, 1}},
		{"worker_done promised / came / missing / doubled", []int{2, 2, 0, 0}},
		{"late reports / stale", []int{1, 1}},
		{"calls that their caller left / unknown outcomes / resolved", []int{0, 1, 1}},
	} {
		if !slices.ContainsFunc(j.rows, func(r row) bool { return r.names == want.names && slices.Equal(r.numbers, want.numbers) }) {
			t.Errorf("%v is not among %v", want, j.rows)
		}
	}
}

// spoil is one wrong observation, and how it has to be reported.
type spoil struct {
	what  string
	do    func(w *world)
	found string
}

var spoils = []spoil{
	{"an effect executed twice", func(w *world) { w.effects["exited"] = 2 }, "exited, whose start is ready, executed 2 times"},
	{"an effect that is missing", func(w *world) { delete(w.effects, "exited") }, "executed 0 times"},
	{"an effect of a failed start", func(w *world) { w.effects["unborn"] = 1 }, "unborn, whose start is failed, executed 1 times"},
	{"an effect nobody asked for", func(w *world) { w.effects["other"] = 1 }, "other, which no start was answered with"},
	{"a start without an answer", func(w *world) { w.requested("req-x", "t") }, "start req-x has no answer"},
	{"two starts, one Dispatch", func(w *world) { w.starts[1].dispatch = "reported" }, "have one Dispatch"},
	{"a Dispatch too many", func(w *world) { w.dispatches["x"] = w.dispatches["stopped"] }, "x was never asked for"},
	{"a Dispatch that is gone", func(w *world) { delete(w.dispatches, "stopped") }, "not known to the hub"},

	{"a lost message", func(w *world) { w.deliver(func(n []note) []note { return slices.Delete(n, 1, 2) }) }, "lost: status s1 of dispatch:reported"},
	{"a doubled message", func(w *world) { w.deliver(func(n []note) []note { return slices.Insert(n, 1, n[0]) }) }, "duplicated: status s0"},
	{"two that changed places", func(w *world) { w.in.taken[0], w.in.taken[1] = w.in.taken[1], w.in.taken[0] }, "reordered: status s0"},
	{"another text", func(w *world) { w.in.taken[0].body = "x" }, "changed: status s0"},
	{"a message that was refused", func(w *world) { w.in.taken[0].id = "x" }, "never accepted: status x"},
	{"a message of nobody", func(w *world) { w.in.taken[0].from = "dispatch:x" }, "of an unknown sender: status s0"},
	{"a batch that stays", func(w *world) { w.in.got("delivery9", nil) }, "delivery9 was not acknowledged"},
	{"a batch that changed", func(w *world) { w.in.fault("changed") }, "run:r: changed"},

	{"an open question", func(w *world) { w.questions["s2"] = api.Question{State: api.QuestionStatePending} }, "question s2 of reported is pending"},
	{"another answer", func(w *world) { w.lives["reported"].replies["s2"] = "no" }, `has the answer "yes", replied was "no"`},
	{"another answer at the worker", func(w *world) { w.lives["reported"].asked[0].answer = "no" }, `its worker got "no"`},
	{"a closed question that was answered", func(w *world) { w.questions["s2"] = api.Question{State: api.QuestionStateClosed} }, `has the answer "", replied was "yes"`},
	{"an unknown question", func(w *world) { delete(w.questions, "s2") }, "question s2 of reported is not known"},
	{"a question nobody asked", func(w *world) { w.questions["x"] = api.Question{} }, "question x was never accepted"},

	{"lost guidance", func(w *world) { w.whereabouts["g2"] = place{"delivered", "12:00"} }, "lost, delivered: guidance g2"},
	{"guidance for one that had ended", func(w *world) { w.whereabouts["g2"] = place{undelivered, "12:02"} }, "guidance g2 was accepted at 12:02, and reported had ended at 12:01"},
	{"guidance in another order", func(w *world) { slices.Reverse(w.lives["reported"].mail.batch) }, "reordered: answer a1"},
	{"guidance twice", func(w *world) {
		w.lives["reported"].mail.taken = append(w.lives["reported"].mail.taken, w.lives["reported"].given[0])
	}, "duplicated: answer a1"},
	{"guidance of nobody", func(w *world) { w.lives["exited"].mail.got("d", []note{{id: "x", kind: kindGuidance}}) }, "never accepted: guidance x"},

	{"a worker_done that is missing", func(w *world) { w.deliver(func(n []note) []note { return n[:len(n)-1] }) }, "worker_done: 0 came of exited"},
	{"a worker_done too many", func(w *world) { w.bear("d2", "exited", "hub", "failed", "exit") }, "worker_done: 2 came of exited"},
	{"a worker_done of an answered stop", func(w *world) { w.bear("d2", "stopped", "hub", "cancelled", "stop") }, "worker_done: 1 came of stopped"},
	{"a worker_done of an abandoned one", func(w *world) { w.bear("d2", "abandoned", "hub", "failed", "exit") }, "worker_done: 1 came of abandoned"},
	{"a worker_done of a stranger", func(w *world) { w.bear("d2", "x", "hub", "failed", "exit") }, `of "x", which the hub does not know`},
	{"a worker_done that says other things", func(w *world) { w.in.taken[len(w.in.taken)-1].done.outcome = "succeeded" }, "says that exited has succeeded by exit"},
	{"two mails where one may come", func(w *world) {
		w.bear("d2", "unborn", "hub", "failed", "start")
		w.bear("d3", "unborn", "hub", "failed", "start")
	}, "worker_done: 2 came of unborn"},
	{"a Dispatch that has not ended", func(w *world) {
		d := w.dispatches["exited"]
		d.State = api.DispatchStateReady
		w.dispatches["exited"] = d
	}, "exited is ready in the end"},
	{"a Task that says other things", func(w *world) {
		task := w.tasks["task-exited"]
		task.State = api.TaskStateCompleted
		w.tasks["task-exited"] = task
	}, "task-exited"},

	{"a late report that was taken", func(w *world) { w.lives["reported"].reports[2].verdict = accepted }, `has the verdict "accepted"`},
	{"a repeated report that was not recognised", func(w *world) { w.lives["reported"].reports[1].verdict = stale }, `has the verdict "stale"`},
	{"two accepted reports", func(w *world) {
		w.lives["reported"].reports = append(w.lives["reported"].reports, report{verdict: accepted, want: []string{accepted}})
	}, "2 reports of reported were accepted"},
	{"a report without effect", func(w *world) {
		w.lives["exited"].reports = []report{{verdict: accepted, want: []string{accepted}}}
	}, "1 reports of exited were accepted, and it is failed by \"exit\""},
	{"an unknown outcome", func(w *world) { w.unknown(&request{key: "req-x", what: "reply"}) }, "the outcome of req-x (reply) is unknown"},
	{"an ack that was not refused", func(w *world) { w.lateAck(false) }, "1 acks of former consumers, and 0 were refused"},
	{"a process that stays", func(w *world) { w.processes = []string{"77"} }, "process 77"},
	{"a refusal while it lived", func(w *world) { w.book.fault("refused") }, "refused"},
}

func TestJudge_FindsEachWrongObservation(t *testing.T) {
	for _, s := range spoils {
		w := newWorld()
		s.do(w)
		if j := judge(w.book, w.facts); !slices.ContainsFunc(j.found, func(f string) bool { return strings.Contains(f, s.found) }) {
			t.Errorf("%s: %q is not among %q", s.what, s.found, j.found)
		}
	}
}

func TestJudge_AnUnknownAnswerMayBeToldAgainByMail(t *testing.T) {
	w := newWorld()
	w.lives["stopped"].order = toldLater
	w.bear("d2", "stopped", "hub", "cancelled", "stop")
	w.bear("d3", "unborn", "hub", "failed", "start")
	if j := judge(w.book, w.facts); len(j.found) != 0 {
		t.Errorf("found %q", j.found)
	}
}
