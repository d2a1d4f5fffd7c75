package server

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// in is the request, made in a terminal.
func (q request) in(terminal string) request {
	header := map[string]string{contextHeader: terminal}
	for k, v := range q.header {
		header[k] = v
	}
	q.header = header
	return q
}

func (w *world) bindFrom(terminal, run string) response {
	w.t.Helper()
	return w.must(200, request{method: "POST", path: "/v1/runs/" + run + "/bind", token: w.operator}.in(terminal))
}

func (w *world) createIn(terminal, more string) string {
	w.t.Helper()
	q := request{method: "POST", path: "/v1/runs", body: `{"objective":"o"` + more + `}`, token: w.operator}
	return w.must(201, q.in(terminal)).text("run", "run_id")
}

// TestAcceptance_R07_BindingsAreOnRecord: whoever looks at a Run sees who
// changed its binding, from where, when, and to which generation; the last one
// first.
func TestAcceptance_R07_BindingsAreOnRecord(t *testing.T) {
	w := newWorld(t)
	run := w.createIn("tty 1", "")
	w.bindFrom("tty 2", run)
	w.createIn("tty 2", `,"bind":"rebind"`)
	shown := w.must(200, request{method: "GET", path: "/v1/runs/" + run, token: w.reader})
	rows := shown.at("audit").([]any)
	var got, times []string
	for _, r := range rows {
		row := response{body: r.(map[string]any)}
		got = append(got, fmt.Sprintf("%s by %s from %s at %v", row.text("action"), row.text("principal"), row.text("context"), row.at("generation")))
		times = append(times, row.text("at"))
	}
	want := []string{
		"released by operator from tty 2 at 2", "bound by operator from tty 2 at 2",
		"bound by operator from tty 1 at 1", "created by operator from tty 1 at 0",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the rows are\n%s", strings.Join(got, "\n"))
	}
	if slices.Reverse(times); !slices.IsSorted(times) || times[0] == "" {
		t.Errorf("the times are %q", times)
	}
	for range 2 * len(want) * 5 {
		w.bindFrom("tty 1", run)
	}
	last := w.get(200, "/v1/runs/"+run).at("audit").([]any)
	if newest := last[0].(map[string]any)["generation"]; len(last) != 20 || newest != 42.0 {
		t.Errorf("of many changes %d are shown, the newest of generation %v", len(last), newest)
	}
}

// TestTakenOverTerminalsAreTold: a terminal whose binding was taken over is
// fenced until it binds again; one that was never bound learns who the consumer
// is.
func TestTakenOverTerminalsAreTold(t *testing.T) {
	w := newWorld(t)
	run := w.createIn("tty 1", "")
	w.post(201, "/v1/messages", `{"to":"run:`+run+`","type":"status","body":"one"}`)
	check := request{method: "POST", path: "/v1/mailboxes/run:" + run + "/check", body: `{}`, token: w.operator}
	w.must(200, check.in("tty 1"))
	w.bindFrom("tty 2", run)
	for range 2 {
		if got := w.must(409, check.in("tty 1")); got.code() != "consumer_fenced" {
			t.Errorf("the former terminal: %s", got.raw)
		}
	}
	stranger := w.must(403, check.in("tty 3"))
	if stranger.code() != "consumer_required" || !strings.Contains(stranger.text("detail"), "tty 2") || !strings.Contains(stranger.raw, `"use","`+run+`"`) {
		t.Errorf("a terminal that was never bound: %s", stranger.raw)
	}
	if got := w.must(200, check.in("tty 2")); got.at("count") != 1.0 {
		t.Errorf("the present terminal: %s", got.raw)
	}
	w.bindFrom("tty 1", run)
	if got := w.must(200, check.in("tty 1")); got.at("count") != 1.0 {
		t.Errorf("bound again: %s", got.raw)
	}
}

// TestTerminalAndTokenMustAgree: a terminal and a consumer token that stand for
// different consumers are refused, and nothing is consumed or stored.
func TestTerminalAndTokenMustAgree(t *testing.T) {
	w := newWorld(t)
	mine := w.createIn("tty 1", "")
	other, token := w.bound()
	for _, run := range []string{mine, other} {
		w.post(201, "/v1/messages", `{"to":"run:`+run+`","type":"status","body":"one"}`)
	}
	before := w.commits.Load()
	for _, run := range []string{mine, other} {
		got := w.do(w.check(run, token, `{}`).in("tty 1"))
		if got.status != 400 || got.code() != "invalid_argument" || got.text("field") != consumerHeader {
			t.Errorf("%s: %d %s", run, got.status, got.raw)
		}
	}
	if n := w.commits.Load() - before; n != 0 {
		t.Errorf("%d commits of refused checks", n)
	}
	if got := w.must(200, w.check(other, token, `{}`).in("tty 2")); got.at("count") != 1.0 {
		t.Errorf("the token in a terminal that is not bound: %s", got.raw)
	}
}

// TestAcceptance_R10_TheFourthChildIsRefused: child Runs nest three deep; the
// fourth is refused and nothing of it is stored.
func TestAcceptance_R10_TheFourthChildIsRefused(t *testing.T) {
	w := newWorld(t)
	run, _ := w.bound()
	child := func() response {
		return w.do(request{method: "POST", path: "/v1/runs", body: `{"objective":"child","parent_run_id":"` + run + `"}`, token: w.operator})
	}
	for depth := range 3 {
		got := child()
		if got.status != 201 || got.text("run", "parent_run_id") != run {
			t.Fatalf("child %d: %d %s", depth+1, got.status, got.raw)
		}
		run = got.text("run", "run_id")
	}
	before := w.commits.Load()
	if got := child(); got.status != 400 || got.code() != "invalid_argument" || got.text("field") != "parent_run_id" {
		t.Errorf("the fourth: %d %s", got.status, got.raw)
	}
	if runs := w.get(200, "/v1/runs").at("runs").([]any); len(runs) != 4 || w.commits.Load() != before {
		t.Errorf("%d Runs, %d commits of a refusal", len(runs), w.commits.Load()-before)
	}
}
