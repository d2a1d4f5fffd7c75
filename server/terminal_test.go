package server

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/work"
)

func (fakeAgents) Occupy(in work.Occupancy) (hub.LaunchSpec, error) {
	return hub.LaunchSpec{Terminal: in.Terminal, Dir: in.Dir, PTY: &in.Size}, nil
}
func (fakeAgents) Preamble(l work.Launch) string             { return l.Prompt }
func (fakeAgents) Pointer(private, _ string) (string, error) { return "read " + private, nil }
func (a fakeAuthority) Open(hub.TerminalID) (string, error)  { return a.dir, nil }
func (a fakeAuthority) File(hub.TerminalID) (string, error)  { return a.dir, nil }

func (f *fakeTerminals) Input(_ context.Context, _ hub.Incarnation, data []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.typed = append(f.typed, string(data))
	return f.typing
}

func (f *fakeTerminals) Output(_ context.Context, _ hub.TerminalID, from int64, limit int) (hub.OutputRange, error) {
	total := int64(len(f.text))
	from = min(from, total)
	return hub.OutputRange{From: from, Total: total, Data: []byte(f.text[from:min(total, from+int64(limit))])}, nil
}

func (f *fakeTerminals) AwaitOutput(ctx context.Context, in hub.Incarnation, after int64) (int64, error) {
	if total := int64(len(f.text)); total > after {
		return total, nil
	}
	select {
	case <-f.end(in.Terminal):
		return int64(len(f.text)), nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (f *fakeTerminals) State(context.Context, hub.Incarnation) (hub.TerminalState, error) {
	return hub.TerminalState{Size: hub.TerminalSize{Rows: 5, Cols: 20}, Title: "✳ demo", Total: int64(len(f.text)), LastOutputAt: 1}, nil
}

func (f *fakeTerminals) Screen(_ context.Context, _ hub.TerminalID, q hub.ScreenQuery) (hub.Screen, error) {
	s := hub.Screen{Size: hub.TerminalSize{Rows: 5, Cols: 20}, Title: "demo", Lines: strings.Split(f.text, "\n")}
	if q.Scrollback > 0 {
		s.Scrollback = []string{"above"}
	}
	return s, nil
}

// created makes a terminal and returns its address.
func (w *world) createdTerminal(body string) (id, path string) {
	w.t.Helper()
	got := w.do(request{method: "POST", path: "/v1/terminals", token: w.operator, body: body})
	if got.status != http.StatusCreated || got.text("state") != "ready" {
		w.t.Fatalf("creating a terminal: %d %s", got.status, got.raw)
	}
	id = got.text("terminal", "terminal_id")
	return id, "/v1/terminals/" + id
}

func TestTerminal(t *testing.T) {
	w := newWorld(t)
	w.terminal.text = "hello\nwhd_0123456789012345678901234567890"
	id, path := w.createdTerminal(`{"dir":"/srv","agent":"fake","name":"a name","rows":5,"cols":20}`)
	read := func(suffix string) response {
		t.Helper()
		got := w.do(request{method: "GET", path: path + suffix, token: w.reader})
		if got.status != http.StatusOK {
			t.Fatalf("%s: %d %s", suffix, got.status, got.raw)
		}
		return got
	}
	shown := read("")
	for field, want := range map[string]any{
		"terminal_id": id, "role": "agent", "agent": "fake", "name": "a name", "dir": "/srv", "busy": false, "process": "live", "worktree_id": nil,
	} {
		if got := shown.at("terminal", field); got != want {
			t.Errorf("%s is %v, want %v", field, got, want)
		}
	}
	if shown.text("observation", "activity") != "idle" || shown.at("observation", "size", "rows") != 5.0 {
		t.Errorf("observed: %s", shown.raw)
	}
	if got := read("/screen?scrollback=1"); strings.Contains(got.raw, "whd_") || !strings.Contains(got.raw, `"lines":["hello","`+strings.Repeat("*", 35)+`"]`) || !strings.Contains(got.raw, `"scrollback":["above"]`) {
		t.Errorf("screen: %s", got.raw)
	}
	got := read("/output?from=1&limit=10")
	data, err := base64.StdEncoding.DecodeString(got.text("data"))
	if err != nil || string(data) != "ello\nwhd_0" || got.at("next") != 11.0 {
		t.Errorf("output: %s (%q, %v)", got.raw, data, err)
	}
	whole, _ := base64.StdEncoding.DecodeString(read("/output").text("data"))
	if len(whole) != len(w.terminal.text) || strings.Contains(string(whole), "whd_") {
		t.Errorf("a token is not masked in place: %q", whole)
	}
	if got := read("/wait?for=text&text=^hel*o$"); got.at("met") != true || got.text("line") != "hello" {
		t.Errorf("wait for text: %s", got.raw)
	}
	if got := read("/wait?for=idle"); got.at("met") != true || got.text("source") != "title" {
		t.Errorf("wait for idle: %s", got.raw)
	}
	if got := read("/wait?for=exit"); got.at("met") != false || got.at("timed_out") != true {
		t.Errorf("wait for the exit: %s", got.raw)
	}
	sent := w.do(request{method: "POST", path: path + "/input", token: w.operator, body: `{"text":"ls","keys":["up"],"enter":true}`})
	if sent.status != http.StatusOK || sent.text("state") != "sent" || strings.Join(w.terminal.typed, "|") != "ls\x1b[A\r" {
		t.Errorf("input: %d %s, typed %q", sent.status, sent.raw, w.terminal.typed)
	}
	closed := w.do(request{method: "POST", path: path + "/close", token: w.operator})
	if closed.status != http.StatusOK || closed.text("state") != "closed" || closed.text("process_action") != "ended" {
		t.Errorf("close: %d %s", closed.status, closed.raw)
	}
	if got := read("/wait?for=exit"); got.at("met") != true || got.text("process") != "exited" {
		t.Errorf("wait for the exit afterwards: %s", got.raw)
	}
	if got := read("/output?from=5"); got.at("ended") != true {
		t.Errorf("output after the end: %s", got.raw)
	}
}

func TestTerminalList(t *testing.T) {
	w := newWorld(t)
	_, first := w.createdTerminal(`{"dir":"/srv"}`)
	second, _ := w.createdTerminal(`{"dir":"/srv"}`)
	w.do(request{method: "POST", path: first + "/close", token: w.operator})
	live := w.do(request{method: "GET", path: "/v1/terminals?live=true", token: w.reader})
	if list, _ := live.at("terminals").([]any); len(list) != 1 || !strings.Contains(live.raw, second) {
		t.Errorf("live: %s", live.raw)
	}
	page := w.do(request{method: "GET", path: "/v1/terminals?limit=1", token: w.reader})
	next := page.text("next_cursor")
	page = w.do(request{method: "GET", path: "/v1/terminals?limit=1&cursor=" + next, token: w.reader})
	if list, _ := page.at("terminals").([]any); len(list) != 1 || strings.Contains(page.raw, second) {
		t.Errorf("second page: %s", page.raw)
	}
	for path, code := range map[string]string{
		"/v1/terminals?worktree=nothing":                "worktree_not_found_on_server",
		"/v1/terminals?live=true&cursor=" + next:        "cursor_invalid",
		"/v1/terminals/term_00000000000000000000000000": "terminal_not_found",
		first + "/wait":                 "invalid_argument",
		first + "/wait?for=text&text=(": "invalid_argument",
		first + "/wait?for=text":        "invalid_argument",
		first + "/screen?scrollback=-1": "invalid_argument",
	} {
		if got := w.do(request{method: "GET", path: path, token: w.operator}); got.code() != code {
			t.Errorf("%s: %d %s", path, got.status, got.raw)
		}
	}
}

// Input that may have been written is 202, and is not written again.
func TestTerminalInputIsLost(t *testing.T) {
	w := newWorld(t)
	_, path := w.createdTerminal(`{"dir":"/srv"}`)
	w.terminal.typing = hub.Errorf(hub.CodeOutcomeUnknown, "no answer")
	q := request{method: "POST", path: path + "/input", token: w.operator, body: `{"text":"rm x","enter":true}`, key: string(hub.NewRequestID())}
	first, again := w.do(q), w.do(q)
	if first.status != http.StatusAccepted || again.status != http.StatusAccepted || again.text("state") != "outcome_unknown" {
		t.Errorf("lost input: %d %s, then %d %s", first.status, first.raw, again.status, again.raw)
	}
	if len(w.terminal.typed) != 1 {
		t.Errorf("typed %q", w.terminal.typed)
	}
}

func TestTerminalRefusals(t *testing.T) {
	w := newWorld(t)
	for body, code := range map[string]string{
		`{"dir":"srv"}`:                 "invalid_argument",
		`{}`:                            "invalid_argument",
		`{"dir":"/srv","worktree":"x"}`: "invalid_argument",
		`{"dir":"/srv","agent":"a","command":"b"}`: "invalid_argument",
		`{"worktree":"new-child"}`:                 "invalid_argument",
		`{"dir":"/srv","agent":"nobody"}`:          "agent_unconfigured",
		`{"worktree":"nothing"}`:                   "worktree_not_found_on_server",
		`{"dir":"/srv","rows":301}`:                "invalid_argument",
		`{"dir":"/srv","name":"a\u0000b"}`:         "invalid_argument",
	} {
		if got := w.do(request{method: "POST", path: "/v1/terminals", token: w.operator, body: body}); got.code() != code {
			t.Errorf("%s: %d %s", body, got.status, got.raw)
		}
	}
	_, path := w.createdTerminal(`{"dir":"/srv"}`)
	for body, code := range map[string]string{
		`{}`:                          "invalid_argument",
		`{"keys":["hyper-x"]}`:        "invalid_argument",
		`{"paste":true,"enter":true}`: "invalid_argument",
		"{\"text\":\"a\\u001b[201~\",\"paste\":true}":      "invalid_argument",
		`{"text":"` + strings.Repeat("x", 64<<10+1) + `"}`: "too_large",
	} {
		if got := w.do(request{method: "POST", path: path + "/input", token: w.operator, body: body}); got.code() != code {
			t.Errorf("%.60s: %d %s", body, got.status, got.raw)
		}
	}
	if len(w.terminal.typed) != 0 {
		t.Errorf("a refused input was typed: %q", w.terminal.typed)
	}
}
