package dispatch_test

import (
	"encoding/json"
	"testing"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
)

// TestATaskKeepsTheResultOfItsReport, as it was given and together with its body:
// that of an attempt before is not shown beside another's words.
func TestATaskKeepsTheResultOfItsReport(t *testing.T) {
	w := newWorld(t)
	r, _ := w.newRun()
	task := w.newTask(r)
	id := w.begin(task)
	first := report(task, id, hub.OutcomeFailed, "first")
	first.Report.Result = json.RawMessage(`{ "n": 9007199254740993, "html": "<b>" }`)
	if _, err := w.send(worker(id), first); err != nil {
		t.Fatal(err)
	}
	if tk, _ := w.states(task, id); tk.Result != "first" || string(tk.ResultData) != `{"n":9007199254740993,"html":"<b>"}` {
		t.Errorf("the Task keeps %q %s", tk.Result, tk.ResultData)
	}
	again, err := w.attempt(task, id)
	if err != nil {
		t.Fatal(err)
	}
	if tk, _ := w.states(task, again); tk.Result != "first" || tk.ResultData == nil {
		t.Errorf("while it is tried again it keeps %q %s", tk.Result, tk.ResultData)
	}
	if _, err := w.send(worker(again), report(task, again, hub.OutcomeSucceeded, "second")); err != nil {
		t.Fatal(err)
	}
	if tk, _ := w.states(task, again); tk.Result != "second" || tk.ResultData != nil {
		t.Errorf("then it keeps %q %s", tk.Result, tk.ResultData)
	}
}

func TestOptionsOfAQuestionDiffer(t *testing.T) {
	w := newWorld(t)
	r, _ := w.newRun()
	id := w.begin(w.newTask(r))
	ask := dispatch.SendInput{Type: hub.TypeQuestion, Body: "Which?", Options: []string{"a", "b", "a"}}
	if _, err := w.send(worker(id), ask); !hub.IsCode(err, hub.CodeInvalidArgument) {
		t.Errorf("%v", err)
	}
	ask.Options = []string{"a", "A", "a "}
	if _, err := w.send(worker(id), ask); err != nil {
		t.Errorf("%v", err)
	}
	if n := len(w.inbox(r)); n != 1 {
		t.Errorf("%d questions are stored", n)
	}
}
