//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/openapi/api"
)

// newTerminal makes a terminal in a folder of its own.
func newTerminal(t testing.TB, c Caller, flags ...string) string {
	t.Helper()
	if !strings.Contains(strings.Join(flags, " "), "--dir") {
		flags = append(flags, "--dir", t.TempDir())
	}
	got := get[api.TerminalReceipt](t, c, append([]string{"terminal", "create"}, flags...)...)
	if got.State != "ready" || got.Stage != "terminal_created" {
		t.Fatalf("the terminal is %+v", got)
	}
	return got.Terminal.TerminalId
}

// ownTerminal is the one that a Dispatch's worker runs in.
func ownTerminal(t testing.TB, c Caller, dispatch string) string {
	t.Helper()
	for _, term := range get[api.TerminalPage](t, c, "terminal", "list", "--live").Terminals {
		if term.DispatchId != nil && *term.DispatchId == dispatch {
			return term.TerminalId
		}
	}
	t.Fatalf("%s has no terminal", dispatch)
	return ""
}

func terminalElsewhere(t *testing.T, s *stage) Result {
	id := newTerminal(t, s.solo().Caller(), "--command", "read -r _")
	return onTask("--worktree path:/ --terminal "+id)(t, s)
}

// text is what a terminal shows.
func text(t testing.TB, c Caller, id string) string {
	t.Helper()
	s := get[api.TerminalScreen](t, c, "terminal", "read", id, "--scrollback", "500")
	return strings.Join(append(s.Scrollback, s.Lines...), "\n")
}

func observed(t testing.TB, c Caller, id string) api.TerminalDetail {
	t.Helper()
	return get[api.TerminalDetail](t, c, "terminal", "show", id)
}

// A terminal lives under its supervisor: the hub is killed between any two of
// its verbs, and everything goes on.
func TestTerminal_LivesThroughItsHub(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	c := h.Caller()
	id := newTerminal(t, c, "--command", `while read -r line; do echo "got $line"; [ "$line" != end ] || exit 5; done`, "--name", "echo")
	if got := get[api.TerminalSent](t, c, "terminal", "send", id, "--text", "one", "--enter"); got.State != "sent" || got.Bytes != 4 {
		t.Fatalf("%+v", got)
	}
	get[api.TerminalWait](t, c, "terminal", "wait", id, "--for", "text:^got one$", "--timeout", "20s")
	h.Restart()
	if got := observed(t, c, id); got.Observation.Process != "live" || got.Terminal.Busy || *got.Terminal.Name != "echo" {
		t.Errorf("after a restart: %+v", got)
	}
	if r := c.CLI("terminal", "wait", id, "--for", "output", "--timeout", "50ms", "--json"); r.Code != 7 {
		t.Errorf("no output: exit %d\n%s", r.Code, r.Stderr)
	}
	send := []string{"terminal", "send", id, "--text", "end", "--enter"}
	sent := get[api.TerminalSent](t, c, send...)
	get[api.TerminalWait](t, c, "terminal", "wait", id, "--for", "exit", "--timeout", "20s")
	again := get[api.TerminalSent](t, c, append(send, "--retry-request", sent.Mutation.RequestId)...)
	if !again.Mutation.Replayed || again.State != "sent" {
		t.Errorf("the same request again: %+v", again)
	}
	h.Restart()
	if got := observed(t, c, id); got.Observation.Process != "exited" || *got.Observation.ExitCode != 5 || got.Terminal.EndedAt == nil {
		t.Errorf("after its end: %+v", got)
	}
	if got := text(t, c, id); !strings.Contains(got, "got one\n") || !strings.Contains(got, "got end") {
		t.Errorf("it shows %q", got)
	}
	raw := c.CLI("terminal", "read", id, "--raw")
	if raw.Code != 0 || !strings.Contains(raw.Stdout, "got end\r\n") {
		t.Errorf("raw: exit %d %q", raw.Code, raw.Stdout)
	}
	follow := c.CLI("terminal", "read", id, "--follow", "--raw")
	if follow.Code != 0 || follow.Stdout != raw.Stdout {
		t.Errorf("following what has ended: exit %d %q", follow.Code, follow.Stdout)
	}
	if got := get[api.TerminalClosed](t, c, "terminal", "close", id); !got.AlreadyClosed || *got.ExitCode != 5 {
		t.Errorf("closing what has ended: %+v", got)
	}
}

// An exit while the hub is down is recorded once, when it is back; a close ends
// what ignores the polite signal, and its grandchildren.
func TestTerminal_Ends(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	c, g := h.Caller(), newGate(t)
	waits := newTerminal(t, c, "--command", g.wait()+"exit 4")
	deaf := newTerminal(t, c, "--command", `trap "" TERM HUP; (trap "" TERM HUP; while :; do sleep 1; done) & echo up; while :; do sleep 1; done`)
	get[api.TerminalWait](t, c, "terminal", "wait", deaf, "--for", "text:^up$", "--timeout", "20s")
	h.Kill()
	g.open(t, 1)
	h.Start()
	eventually(t, "the exit is on record", 20*time.Second, func() bool { return observed(t, c, waits).Terminal.EndedAt != nil })
	if got := observed(t, c, waits); *got.Observation.ExitCode != 4 {
		t.Errorf("%+v", got)
	}
	if got := get[api.TerminalClosed](t, c, "terminal", "close", deaf, "--timeout", "30s"); got.State != "closed" || got.ProcessAction != "ended" {
		t.Errorf("%+v", got)
	}
	if r := c.CLI("terminal", "send", deaf, "--text", "x", "--json"); r.Code != exitOf(t, "terminal_not_found") {
		t.Errorf("sending to what has ended: exit %d\n%s", r.Code, r.Stderr)
	}
	live := get[api.TerminalPage](t, c, "terminal", "list", "--live")
	all := get[api.TerminalPage](t, c, "terminal", "list")
	if len(live.Terminals) != 0 || len(all.Terminals) != 2 || all.Terminals[0].TerminalId != deaf {
		t.Errorf("live %+v, all %+v", live, all)
	}
}

// In a terminal without a Dispatch the program is its user's; the terminal is
// its context. No credential is in its environment.
func TestTerminal_IsItsUsersOwn(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	h.env = append(h.env, "CANARY_SECRET=tweet")
	h.Restart()
	c := h.Caller()
	id := newTerminal(t, c, "--command", `"$WAVEHUB_BIN" run create --objective "of this terminal"; "$WAVEHUB_BIN" run current; env; echo over; read -r _`)
	get[api.TerminalWait](t, c, "terminal", "wait", id, "--for", "text:^over$", "--timeout", "30s")
	got := text(t, c, id)
	if strings.Count(got, "of this terminal") != 2 {
		t.Errorf("no Run is bound to the terminal: %s", got)
	}
	if strings.Contains(got, "tweet") || strings.Contains(got, "whu_") || strings.Contains(got, h.Token()) {
		t.Errorf("the environment: %s", got)
	}
	for _, want := range []string{"WAVEHUB_TERMINAL_ID=" + id, "WAVEHUB_BIN=", "WAVEHUB_DISPATCH_FILE=", "TERM=xterm-256color"} {
		if !strings.Contains(got, want) {
			t.Errorf("the environment lacks %s: %s", want, got)
		}
	}
}

// withReader configures the agent reader, which reports each paste that it gets,
// and the agent sleeper, which reads nothing.
func withReader(t testing.TB, h *Hub) {
	script := filepath.Join(h.Home, "reader.sh")
	must(t, os.WriteFile(script, []byte(`printf '\033[?2004h\033]7501;state=idle:app=reader\033\\'
n=0
while IFS= read -r line; do
	printf '%s\n' "$line" >> "$HOME/pasted"
	case $line in
	*'[201~'*) n=$((n + 1)); "$WAVEHUB_BIN" done "turn $n in $WAVEHUB_TERMINAL_ID" ;;
	esac
done
`), 0o600))
	withConfig("agents:\n  reader:\n    command: [sh, "+script+"]\n  sleeper:\n    command: [sleep, \"600\"]\n")(t, h)
}

// W2: worker start uses exactly the terminal that is named, in that worktree and
// free, and types the prompt once; after the report the terminal is free again.
func TestAcceptance_W02_TerminalIsReused(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac", withReader)
	run := h.NewRun("reuse")
	dir := t.TempDir()
	id := newTerminal(t, run.Caller, "--agent", "reader", "--dir", dir)
	get[api.TerminalWait](t, run.Caller, "terminal", "wait", id, "--for", "idle", "--timeout", "20s")
	for turn, prompt := range []string{"the first task", "the second task"} {
		task := run.Task(prompt)
		if turn == 1 {
			h.Restart()
		}
		r := get[api.StartReceipt](t, run.Caller, "worker", "start", "--task", task, "--worktree", "path:"+dir, "--terminal", id)
		if r.State != "ready" || *r.ReadinessSource != "title" {
			t.Fatalf("%+v", r)
		}
		if m := run.Done(r.DispatchId); m.Body != "turn "+itoa(turn+1)+" in "+id {
			t.Errorf("the report is %q", m.Body)
		}
		eventually(t, "the terminal is free", 20*time.Second, func() bool { return !observed(t, run.Caller, id).Terminal.Busy })
	}
	raw, err := os.ReadFile(filepath.Join(h.Home, "user", "pasted"))
	must(t, err)
	if got := string(raw); strings.Count(got, "the first task") != 1 || strings.Count(got, "the second task") != 1 {
		t.Errorf("pasted: %s", got)
	}
	get[api.TerminalClosed](t, run.Caller, "terminal", "close", id)
	for _, d := range get[api.DispatchPage](t, run.Caller, "worker", "list").Dispatches {
		if d.State != "succeeded" {
			t.Errorf("after the terminal's end %s is %s", d.DispatchId, d.State)
		}
	}
}

// W2: what cannot be used is refused, and nothing comes of it; a stop ends the
// terminal.
func TestAcceptance_W02_TerminalIsRefused(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac", withReader)
	run, dir := h.NewRun("refused"), t.TempDir()
	w := run.heldWorker(t, h)
	id := newTerminal(t, run.Caller, "--agent", "reader", "--dir", dir)
	shell := newTerminal(t, run.Caller, "--command", "read -r _", "--dir", dir)
	ended := newTerminal(t, run.Caller, "--agent", "reader", "--dir", dir)
	get[api.TerminalClosed](t, run.Caller, "terminal", "close", ended)
	task := run.Task("x")
	for name, x := range map[string]struct{ code, place, terminal string }{
		"unknown":          {"terminal_not_found", dir, "term_" + nothing},
		"ended":            {"terminal_not_found", dir, ended},
		"elsewhere":        {"terminal_worktree_mismatch", "/", id},
		"without an agent": {"invalid_argument", dir, shell},
		"a worker's pipes": {"terminal_worktree_mismatch", dir, ownTerminal(t, run.Caller, w.DispatchId)},
	} {
		r := run.json("worker", "start", "--task", task, "--worktree", "path:"+x.place, "--terminal", x.terminal)
		r.problem(t, x.code)
		if got := get[api.TaskOnly](t, run.Caller, "task", "show", task); got.Task.State != "ready" {
			t.Errorf("%s: the Task is %s", name, got.Task.State)
		}
	}
	if _, err := os.Stat(filepath.Join(h.Home, "user", "pasted")); err == nil {
		t.Error("something was typed")
	}
	id = newTerminal(t, run.Caller, "--agent", "sleeper", "--dir", dir)
	r := get[api.StartReceipt](t, run.Caller, "worker", "start", "--task", task, "--worktree", "path:"+dir, "--terminal", id)
	second := run.json("worker", "start", "--task", run.Task("y"), "--worktree", "path:"+dir, "--terminal", id)
	if p := second.problem(t, "terminal_busy"); !strings.Contains(p.Detail, r.DispatchId) {
		t.Errorf("the owner is not named: %+v", p)
	}
	run.json("terminal", "close", id).problem(t, "terminal_busy")
	if got := get[api.StopResult](t, run.Caller, "worker", "stop", r.DispatchId); got.State != "stopped" || got.ProcessAction != "ended" {
		t.Errorf("%+v", got)
	}
	eventually(t, "its end is on record", 20*time.Second, func() bool { return observed(t, run.Caller, id).Terminal.EndedAt != nil })
}

// O5: nothing that a process writes, or is called, steers the terminal of who
// looks at it.
func TestAcceptance_O05_TerminalOutputSteersNobody(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	c := h.Caller()
	const evil = `printf '\033]52;c;ZXZpbA==\007\033]2;ti\033[31mtle\302\233\007a\342\200\256b\302\2331mc\033[6n\033P+q\033\\d\n'; echo over; read -r _`
	id := newTerminal(t, c, "--command", evil, "--name", "na\u202eme\u009b")
	get[api.TerminalWait](t, c, "terminal", "wait", id, "--for", "text:^over$", "--timeout", "20s")
	for _, args := range [][]string{
		{"terminal", "read", id}, {"terminal", "show", id}, {"terminal", "list"}, {"terminal", "wait", id, "--for", "text:a.*d"},
		{"terminal", "read", id, "--scrollback", "10", "--json"},
	} {
		r := c.CLI(args...)
		if r.Code != 0 || strings.ContainsAny(r.Stdout+r.Stderr, "\x1b\x07\u009b\u202e") && args[len(args)-1] != "--json" {
			t.Errorf("%q: exit %d %q %q", args, r.Code, r.Stdout, r.Stderr)
		}
		if strings.Contains(r.Stdout, "\x1b") || strings.Contains(r.Stdout, `\u001b`) {
			t.Errorf("%q has an escape: %q", args, r.Stdout)
		}
	}
}
