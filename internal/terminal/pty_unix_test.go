//go:build unix

package terminal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/proc"
)

// typed describes a process that runs the script in a pseudo terminal.
func typed(t *testing.T, script string) hub.LaunchSpec {
	t.Helper()
	spec := shell(t, script)
	spec.PTY = &hub.TerminalSize{Rows: 24, Cols: 80}
	return spec
}

// shows waits until the terminal's output has a text.
func shows(t *testing.T, m *Manager, id hub.TerminalID, text string) {
	t.Helper()
	until(t, fmt.Sprintf("output with %q", text), func() bool { return strings.Contains(tailed(t, m, id), text) })
}

func input(t *testing.T, m *Manager, inc hub.Incarnation, data string) {
	t.Helper()
	if err := m.Input(within(t), inc, []byte(data)); err != nil {
		t.Fatalf("Input: %v", err)
	}
}

func stateOf(t *testing.T, m *Manager, inc hub.Incarnation) hub.TerminalState {
	t.Helper()
	state, err := m.State(within(t), inc)
	if err != nil {
		t.Fatalf("State: %v", err)
	}
	return state
}

// Invariants 5 and 8: the same records as with pipes, in a terminal of its own.
func TestPTYExit(t *testing.T) {
	m := newManager(t)
	for script, want := range map[string]struct {
		code   int
		signal string
		output string
	}{
		"exit 0":             {0, "", ""},
		"echo bye; exit 7":   {7, "", "bye\r\n"},
		"kill -9 $$":         {137, "SIGKILL", ""},
		"kill -TERM $$":      {143, "SIGTERM", ""},
		"echo a; echo b >&2": {0, "", "a\r\nb\r\n"},
		// The controlling terminal is the one that it writes to.
		"[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo all >/dev/tty": {0, "", "all\r\n"},
		// Files that are closed and opened again do not end the output.
		"exec </dev/null >/dev/null 2>&1; sleep 0.05; echo again >/dev/tty": {0, "", "again\r\n"},
	} {
		spec := typed(t, script)
		wantExit(t, waited(t, m, launched(t, m, spec)), want.code, want.signal)
		if got := tailed(t, m, spec.Terminal); got != want.output {
			t.Errorf("%s: output %q, want %q", script, got, want.output)
		}
	}
}

func TestLaunchRefusesAPTYThatCannotBe(t *testing.T) {
	m := newManager(t)
	for name, change := range map[string]func(*hub.LaunchSpec){
		"stdin":    func(s *hub.LaunchSpec) { s.Stdin = []byte{} },
		"no rows":  func(s *hub.LaunchSpec) { s.PTY.Rows = 0 },
		"too wide": func(s *hub.LaunchSpec) { s.PTY.Cols = maxCols + 1 },
	} {
		spec := typed(t, "exit 0")
		change(&spec)
		if _, err := m.Launch(within(t), spec); !hub.IsCode(err, hub.CodeInvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Invariant 2.
func TestPTYProgramThatCannotStart(t *testing.T) {
	m := newManager(t)
	spec := typed(t, "")
	spec.Argv = []string{filepath.Join(t.TempDir(), "missing")}
	if _, err := m.Launch(within(t), spec); err == nil || hub.IsCode(err, hub.CodeOutcomeUnknown) {
		t.Errorf("Launch = %v", err)
	}
	if err := m.Remove(spec.Terminal); err != nil {
		t.Error(err)
	}
}

// Invariant 14.
func TestInputIsEchoedCountedAndEnds(t *testing.T) {
	m := newManager(t)
	spec := typed(t, `echo ready; read a; echo "got $a"; cat >/dev/null; exit 3`)
	inc := launched(t, m, spec)
	shows(t, m, spec.Terminal, "ready")
	input(t, m, inc, "word\r")
	shows(t, m, spec.Terminal, "got word")
	if got := tailed(t, m, spec.Terminal); got != "ready\r\nword\r\ngot word\r\n" {
		t.Errorf("output %q", got)
	}
	if state := stateOf(t, m, inc); state.Input != 5 || state.Total != 23 || state.LastOutputAt == 0 || state.Size != *spec.PTY {
		t.Errorf("state = %+v", state)
	}
	input(t, m, inc, "\x04") // end of file
	wantExit(t, waited(t, m, inc), 3, "")
	if err := m.Input(within(t), inc, []byte("x")); !hub.IsCode(err, hub.CodeDispatchInactive) {
		t.Errorf("Input after the end = %v", err)
	}
}

// Invariant 14: what a keyboard's interrupt does, it does.
func TestInterruptByInput(t *testing.T) {
	m := newManager(t)
	spec := typed(t, `trap "echo stopped; exit 9" INT; echo ready; while :; do sleep 0.01; done`)
	inc := launched(t, m, spec)
	shows(t, m, spec.Terminal, "ready")
	input(t, m, inc, "\x03")
	wantExit(t, waited(t, m, inc), 9, "")
	shows(t, m, spec.Terminal, "stopped")
}

// Invariant 14: every byte, in order, whatever the process's pace.
func TestLargeInputArrivesWhole(t *testing.T) {
	m := newManager(t)
	spec := typed(t, fmt.Sprintf("stty raw -echo; echo ready; head -c %d | sha256sum; sleep 0.01", 2*maxInput))
	inc := launched(t, m, spec)
	shows(t, m, spec.Terminal, "ready")
	data := bytes.Repeat([]byte("\x00\xff\r\n\x1a\x04x"), maxInput/7+1)[:maxInput]
	for range 2 {
		if err := m.Input(within(t), inc, data); err != nil {
			t.Fatal(err)
		}
	}
	wantExit(t, waited(t, m, inc), 0, "")
	if got := tailed(t, m, spec.Terminal); !strings.Contains(got, sum(append(data, data...))) {
		t.Errorf("output %q", got)
	}
	if err := m.Input(within(t), inc, make([]byte, maxInput+1)); !hub.IsCode(err, hub.CodeInvalidArgument) {
		t.Errorf("too much: %v", err)
	}
}

// Invariant 14: who does not read holds up nobody but who writes.
func TestProcessThatNeverReads(t *testing.T) {
	m := newManager(t)
	spec := typed(t, `stty raw -echo; echo ready; while :; do printf '\033[c'; sleep 0.01; done`)
	inc := launched(t, m, spec)
	shows(t, m, spec.Terminal, "ready")
	ctx, cancel := context.WithTimeout(context.Background(), 2500*time.Millisecond)
	defer cancel()
	err := m.Input(ctx, inc, make([]byte, maxInput))
	if !hub.IsCode(err, hub.CodeTerminalBusy) {
		t.Fatalf("Input = %v", err)
	}
	written := stateOf(t, m, inc).Input
	if said := fmt.Sprintf("%d of %d bytes were written", written, maxInput); written == 0 || !strings.Contains(err.Error(), said) {
		t.Errorf("%v, want %q", err, said)
	}
	before := stateOf(t, m, inc).Total
	if total, err := m.AwaitOutput(within(t), inc, before); err != nil || total <= before {
		t.Errorf("the output stands still: %d, %v", total, err)
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			err := m.Input(within(t), inc, make([]byte, 64<<10))
			if !hub.IsCode(err, hub.CodeDispatchInactive) && !hub.IsCode(err, hub.CodeOutcomeUnknown) {
				t.Errorf("an input at the end = %v", err)
			}
		})
	}
	proof, err := m.Stop(within(t), inc, -1)
	if err != nil || proof.Action != hub.ActionEnded {
		t.Errorf("Stop = %+v, %v", proof, err)
	}
	group.Wait()
}

// Invariant 14.
func TestInputIsOnlyForAProvenPTY(t *testing.T) {
	m := newManager(t)
	pipes := launched(t, m, specOf(t, "block", ""))
	if err := m.Input(within(t), pipes, []byte("x")); !hub.IsCode(err, hub.CodeInvalidArgument) {
		t.Errorf("Input into pipes = %v", err)
	}
	if err := m.Resize(within(t), pipes, hub.TerminalSize{Rows: 2, Cols: 2}); !hub.IsCode(err, hub.CodeInvalidArgument) {
		t.Errorf("Resize of pipes = %v", err)
	}
	inc := launched(t, m, typed(t, "cat"))
	forged := inc
	forged.Nonce = strings.Repeat("0", 64)
	if err := m.Input(within(t), forged, []byte("x")); !hub.IsCode(err, hub.CodePreconditionFailed) {
		t.Errorf("Input into a forged incarnation = %v", err)
	}
	if _, err := m.AwaitOutput(within(t), forged, 0); !hub.IsCode(err, hub.CodePreconditionFailed) {
		t.Errorf("AwaitOutput of a forged incarnation = %v", err)
	}
	if state := stateOf(t, m, inc); state.Input != 0 || state.Total != 0 {
		t.Errorf("state = %+v", state)
	}
	kill(t, supervisorOf(t, m, inc.Terminal))
	until(t, "the process is gone", func() bool { return proc.Check(identityOf(inc)) == hub.Exited }) // its terminal hung up
	if err := m.Input(within(t), inc, []byte("x")); !hub.IsCode(err, hub.CodeDispatchInactive) {
		t.Errorf("Input without a supervisor = %v", err)
	}
	if proof, err := m.Stop(within(t), inc, 0); err != nil || proof.Action != hub.ActionNone {
		t.Errorf("Stop = %+v, %v", proof, err)
	}
}

// Invariant 15.
func TestResizeReachesTheProcessAndTheRecord(t *testing.T) {
	m := newManager(t)
	spec := typed(t, `trap "stty size" WINCH; stty size; while :; do sleep 0.01; done`)
	inc := launched(t, m, spec)
	shows(t, m, spec.Terminal, "24 80\r\n")
	size := hub.TerminalSize{Rows: 40, Cols: 132}
	if err := m.Resize(within(t), inc, size); err != nil {
		t.Fatal(err)
	}
	shows(t, m, spec.Terminal, "40 132\r\n")
	if err := m.Resize(within(t), inc, hub.TerminalSize{Rows: 1, Cols: 1}); !hub.IsCode(err, hub.CodeInvalidArgument) {
		t.Errorf("a size that cannot be = %v", err)
	}
	if state := stateOf(t, m, inc); state.Size != size {
		t.Errorf("state = %+v", state)
	}
	if _, err := m.Stop(within(t), inc, -1); err != nil {
		t.Fatal(err)
	}
	if state := stateOf(t, m, inc); state.Size != size || state.Total == 0 || state.LastOutputAt == 0 {
		t.Errorf("after the end: %+v", state)
	}
	screen, err := m.Screen(within(t), spec.Terminal, hub.ScreenQuery{})
	if err != nil || screen.Size != size || screen.Truncated {
		t.Errorf("screen %+v, %v", screen, err)
	}
}

// Invariant 16.
func TestQueriesAreAnswered(t *testing.T) {
	m := newManager(t)
	spec := typed(t, `stty raw -echo; printf '\033[c\033[6n'; head -c 15 | od -An -c; printf '\033]11;?\033\\'; head -c 25 | od -An -c`)
	wantExit(t, waited(t, m, launched(t, m, spec)), 0, "")
	got := strings.Join(strings.Fields(tailed(t, m, spec.Terminal)), "")
	for _, want := range []string{`033[?62;22c033[1;1R`, `033]11;rgb:0000/0000/0000`} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
}

// Invariant 16.
func TestStateKnowsWhatTheProcessSays(t *testing.T) {
	m := newManager(t)
	spec := typed(t, `printf '\033]0;\342\234\263 name\007\033]7501;state=idle:app=codex\033\\\033[?2004h.'; cat`)
	inc := launched(t, m, spec)
	shows(t, m, spec.Terminal, ".")
	state := stateOf(t, m, inc)
	if state.Title != "✳ name" || state.Agent != "state=idle:app=codex" || !state.BracketedPaste || state.Input != 0 {
		t.Errorf("state = %+v", state)
	}
}

// Invariant 7: sessions of their own, and a terminal that is held.
func TestStopEndsTheTreeOfAPTY(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux finds orphans without the terminal's mark")
	}
	m := newManager(t)
	const deaf = `trap "" TERM HUP; echo $$; while :; do sleep 1; done`
	spec := typed(t, "setsid sh -c '"+deaf+"' & env -i PATH=$PATH setsid sh -c '"+deaf+"' & "+deaf)
	inc := launched(t, m, spec)
	ids := pidsIn(t, m, spec.Terminal, 3)
	proof, err := m.Stop(within(t), inc, 50*time.Millisecond)
	if err != nil || proof.Action != hub.ActionEnded {
		t.Errorf("Stop = %+v, %v", proof, err)
	}
	wantExit(t, proof.State, 137, "SIGKILL")
	wantGone(t, append(ids, identityOf(inc))...)
}

// Invariant 5: who holds the terminal does not hold up the exit.
func TestGrandchildHoldingThePTY(t *testing.T) {
	m := newManager(t)
	spec := typed(t, `setsid sleep 1000 & echo $!; exit 3`)
	began := time.Now()
	inc := launched(t, m, spec)
	wantExit(t, waited(t, m, inc), 3, "")
	if took := time.Since(began); took > drainLimit+2*time.Second {
		t.Errorf("the exit took %v", took)
	}
	pid, err := strconv.Atoi(strings.Fields(tailed(t, m, spec.Terminal))[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := proc.Lookup(pid); err == nil {
		t.Errorf("process %d is left", pid)
	}
}

// Invariants 4 and 17: a hub that is started anew goes on where the other was.
func TestOutputGoesOnWithAnotherHub(t *testing.T) {
	first := newManager(t)
	spec := typed(t, `stty -onlcr -echo; echo ready; while read n; do echo $n; done`)
	inc := launched(t, first, spec)
	const lines = 40
	shows(t, first, spec.Terminal, "ready\n")
	var want, got bytes.Buffer
	want.WriteString("ready\n")
	for hubs := 0; hubs < 4; hubs++ {
		m, err := New(first.cfg)
		if err != nil {
			t.Fatal(err)
		}
		for i := range lines {
			fmt.Fprintf(&want, "%d\n", hubs*lines+i)
			input(t, m, inc, fmt.Sprintf("%d\n", hubs*lines+i))
		}
		for got.Len() < want.Len() {
			if _, err := m.AwaitOutput(within(t), inc, int64(got.Len())); err != nil {
				t.Fatal(err)
			}
			r, err := m.Output(within(t), spec.Terminal, int64(got.Len()), 100)
			if err != nil || r.From != int64(got.Len()) || r.First != 0 {
				t.Fatalf("Output = %+v, %v", r, err)
			}
			got.Write(r.Data)
		}
	}
	if got.String() != want.String() {
		t.Errorf("output %q", got.String())
	}
}

// Invariant 17.
func TestAwaitOutputEndsWithTheProcessOrItsContext(t *testing.T) {
	m := newManager(t)
	spec := typed(t, `echo ready; read a; exit 4`)
	inc := launched(t, m, spec)
	if total, err := m.AwaitOutput(within(t), inc, 6); err != nil || total != 7 {
		t.Errorf("AwaitOutput = %d, %v", total, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := m.AwaitOutput(ctx, inc, 1000)
		ended <- err
	}()
	cancel()
	if err := <-ended; err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
	totals := make(chan int64, 1)
	go func() {
		total, err := m.AwaitOutput(within(t), inc, 1000)
		if err != nil {
			t.Error(err)
		}
		totals <- total
	}()
	input(t, m, inc, "\r")
	wantExit(t, waited(t, m, inc), 4, "")
	if total := <-totals; total != 9 { // with the echo
		t.Errorf("total %d", total)
	}
	if total, err := m.AwaitOutput(within(t), inc, 1000); err != nil || total != 9 {
		t.Errorf("after the end = %d, %v", total, err)
	}
}

// Invariants 9 and 12, for both kinds of terminal: much output costs neither disk nor memory.
func TestMuchOutputIsBounded(t *testing.T) {
	total := scaled(t, 24<<20, 128<<20, 1<<30)
	for _, kind := range []string{"pipes", "PTY"} {
		m := newManager(t)
		spec := specOf(t, "spew", strconv.Itoa(total))
		spec.OutputCap = 1 << 20
		if kind == "PTY" {
			spec.PTY = &hub.TerminalSize{Rows: 24, Cols: 80}
		}
		inc, err := m.Launch(within(t), spec)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if state, err := m.Wait(ctx, inc); err != nil {
			t.Fatal(err)
		} else {
			wantExit(t, state, 0, "")
		}
		r, err := m.Output(within(t), spec.Terminal, 0, 8<<20)
		if err != nil || r.Total != int64(total) || r.First != r.From || len(r.Data) > 1<<20 || r.From+int64(len(r.Data)) != r.Total {
			t.Errorf("%s: %d bytes from %d of %d, %v", kind, len(r.Data), r.From, r.Total, err)
		}
		if size := diskUse(t, filepath.Join(m.cfg.Root, string(spec.Terminal), outputDir)); size > 1<<20 {
			t.Errorf("%s: %d bytes on disk", kind, size)
		}
	}
}

func diskUse(t *testing.T, dir string) (size int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	return size
}

// scaled returns the count for WAVEHUB_TEST_SCALE and prints it.
func scaled(t *testing.T, small, medium, full int) int {
	t.Helper()
	scale := os.Getenv("WAVEHUB_TEST_SCALE")
	n, ok := map[string]int{"": small, "small": small, "medium": medium, "full": full}[scale]
	if !ok {
		t.Fatalf("WAVEHUB_TEST_SCALE=%q is none of small, medium, full", scale)
	}
	t.Logf("count: %d", n)
	return n
}

// sum is what sha256sum prints.
func sum(data []byte) string { return fmt.Sprintf("%x", sha256.Sum256(data)) }
