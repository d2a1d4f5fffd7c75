package terminal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/proc"
)

// Invariant 5.
func TestExitCodeIsExact(t *testing.T) {
	m := newManager(t)
	for _, code := range []int{0, 1, 7, 255} {
		inc := launched(t, m, specOf(t, "exit", strconv.Itoa(code)))
		wantExit(t, waited(t, m, inc), code, "")
		var e Exit
		if found, err := load(filepath.Join(m.cfg.Root, string(inc.Terminal)), exitFile, &e); err != nil || !found {
			t.Errorf("Wait returned without a record: %v, %v", found, err)
		}
		state, err := m.Observe(within(t), inc)
		if err != nil {
			t.Fatal(err)
		}
		wantExit(t, state, code, "")
	}
}

// Invariant 8.
func TestStdinIsDeliveredExactly(t *testing.T) {
	m := newManager(t)
	for _, size := range []int{0, 1, 8 << 10, 1 << 20} {
		spec := specOf(t, "sum", "")
		spec.Stdin = bytes.Repeat([]byte("\x00\xff\r\n\x1a\x04x"), size/7+1)[:size]
		inc := launched(t, m, spec)
		wantExit(t, waited(t, m, inc), 0, "")
		want := fmt.Sprintf("%d %x <nil>", size, sha256.Sum256(spec.Stdin))
		if got := tailed(t, m, spec.Terminal); got != want {
			t.Errorf("%d bytes: the process read %q, want %q", size, got, want)
		}
	}
}

// Invariant 8: input that is not read does not hold the process.
func TestUnreadStdinDoesNotHang(t *testing.T) {
	m := newManager(t)
	spec := specOf(t, "exit", "4")
	spec.Stdin = make([]byte, 1<<20)
	wantExit(t, waited(t, m, launched(t, m, spec)), 4, "")
}

// Invariant 8.
func TestEnvironmentAndFolderAreExact(t *testing.T) {
	m := newManager(t)
	spec := specOf(t, "env", "x")
	inc := launched(t, m, spec)
	wantExit(t, waited(t, m, inc), 0, "")
	got := tailed(t, m, spec.Terminal)
	for _, entry := range append(spec.Env, spec.Dir+"<nil>") {
		if !strings.Contains(got, entry) {
			t.Errorf("%q is missing in %q", entry, got)
		}
	}
	if strings.Contains(got, superviseVar) || strings.Contains(got, "PATH=") {
		t.Errorf("the supervisor's environment reached the process: %q", got)
	}
}

// Invariant 2.
func TestProgramThatCannotStart(t *testing.T) {
	m := newManager(t)
	spec := specOf(t, "exit", "0")
	spec.Argv = []string{filepath.Join(t.TempDir(), "missing")}
	_, err := m.Launch(within(t), spec)
	if err == nil || hub.IsCode(err, hub.CodeOutcomeUnknown) || !strings.Contains(err.Error(), "missing") {
		t.Errorf("Launch = %v", err)
	}
	if inc, found, err := m.Recover(within(t), spec.Terminal); found || err != nil {
		t.Errorf("Recover = %v, %v, %v", inc, found, err)
	}
	var l launch
	if _, err := load(filepath.Join(m.cfg.Root, string(spec.Terminal)), specFile, &l); err != nil {
		t.Fatal(err)
	}
	if err := m.Remove(spec.Terminal); err != nil {
		t.Errorf("Remove = %v", err)
	}
	if left, err := os.ReadDir(m.cfg.Root); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestLaunchRefusesWhatIsNotResolved(t *testing.T) {
	m := newManager(t)
	for name, change := range map[string]func(*hub.LaunchSpec){
		"id":       func(s *hub.LaunchSpec) { s.Terminal = "../x" },
		"no argv":  func(s *hub.LaunchSpec) { s.Argv = nil },
		"relative": func(s *hub.LaunchSpec) { s.Argv = []string{"sh"} },
		"dir":      func(s *hub.LaunchSpec) { s.Dir = "." },
		"cap":      func(s *hub.LaunchSpec) { s.OutputCap = -1 },
	} {
		spec := specOf(t, "exit", "0")
		change(&spec)
		if _, err := m.Launch(within(t), spec); !hub.IsCode(err, hub.CodeInvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Invariant 1.
func TestTerminalIsLaunchedOnce(t *testing.T) {
	m := newManager(t)
	spec := specOf(t, "block", "")
	inc := launched(t, m, spec)
	if _, err := m.Launch(within(t), spec); err == nil {
		t.Error("a second launch was accepted")
	}
	if err := m.Remove(spec.Terminal); !hub.IsCode(err, hub.CodeTerminalBusy) {
		t.Errorf("Remove of a running terminal = %v", err)
	}
	if got, found, err := m.Incarnation(spec.Terminal); err != nil || !found || got != inc {
		t.Errorf("Incarnation = %v, %v, %v", got, found, err)
	}
}

// Invariant 3.
func TestLaunchGivenUpBeforeTheClaimNeverStarts(t *testing.T) {
	t.Setenv(superviseVar, "late")
	m := newManager(t)
	spec := specOf(t, "block", "")
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err := m.Launch(ctx, spec)
	if !errors.Is(err, context.DeadlineExceeded) || hub.IsCode(err, hub.CodeOutcomeUnknown) {
		t.Errorf("Launch = %v", err)
	}
	if _, found, err := m.Recover(within(t), spec.Terminal); found || err != nil {
		t.Errorf("Recover = %v, %v", found, err)
	}
	dir := filepath.Join(m.cfg.Root, string(spec.Terminal))
	until(t, "the late supervisor says so", func() bool {
		var e Exit
		found, err := load(dir, exitFile, &e)
		return found && err == nil && e.Error != ""
	})
	if _, found, err := m.Incarnation(spec.Terminal); found || err != nil {
		t.Errorf("it started: %v, %v", found, err)
	}
}

// Invariant 3.
func TestSupervisorThatDiesAfterTheClaim(t *testing.T) {
	t.Setenv(superviseVar, "dies")
	m := newManager(t)
	spec := specOf(t, "block", "")
	if _, err := m.Launch(within(t), spec); !hub.IsCode(err, hub.CodeOutcomeUnknown) {
		t.Errorf("Launch = %v, want outcome_unknown", err)
	}
	if _, found, err := m.Recover(within(t), spec.Terminal); found || err != nil {
		t.Errorf("Recover = %v, %v", found, err)
	}
	if err := m.Remove(spec.Terminal); err != nil {
		t.Errorf("Remove = %v", err)
	}
}

// Invariant 4.
func TestAnotherHubFindsTheProcess(t *testing.T) {
	first := newManager(t)
	spec := specOf(t, "block", "")
	inc := launched(t, first, spec)
	second, err := New(first.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if got, found, err := second.Recover(within(t), spec.Terminal); err != nil || !found || got != inc {
		t.Errorf("Recover = %v, %v, %v", got, found, err)
	}
	state, err := second.Observe(within(t), inc)
	if err != nil || state.Liveness != hub.Live {
		t.Errorf("Observe = %+v, %v", state, err)
	}
	exited := make(chan hub.ProcessState, 1)
	go func() {
		state, err := second.Wait(context.Background(), inc)
		if err != nil {
			t.Error(err)
		}
		exited <- state
	}()
	proof, err := second.Stop(within(t), inc, -1)
	if err != nil || proof.Action != hub.ActionEnded || proof.State.Liveness != hub.Exited {
		t.Errorf("Stop = %+v, %v", proof, err)
	}
	if state := <-exited; state.Liveness != hub.Exited || state.ExitCode == nil {
		t.Errorf("Wait = %+v", state)
	}
	proof, err = second.Stop(within(t), inc, 0)
	if err != nil || proof.Action != hub.ActionNone || proof.State.Liveness != hub.Exited {
		t.Errorf("second Stop = %+v, %v", proof, err)
	}
	if err := second.Remove(spec.Terminal); err != nil {
		t.Errorf("Remove = %v", err)
	}
	if state, err := second.Observe(within(t), inc); err != nil || state.Liveness != hub.Exited {
		t.Errorf("Observe after Remove = %+v, %v", state, err)
	}
}

// Invariant 6.
func TestForgedIncarnationIsNeitherBelievedNorTouched(t *testing.T) {
	m := newManager(t)
	inc := launched(t, m, specOf(t, "block", ""))
	for name, change := range map[string]func(*hub.Incarnation){
		"nonce": func(i *hub.Incarnation) { i.Nonce = strings.Repeat("0", 64) },
		"empty": func(i *hub.Incarnation) { i.Nonce = "" },
		"time":  func(i *hub.Incarnation) { i.StartedAt++ },
		"pid":   func(i *hub.Incarnation) { i.PID = os.Getpid() },
		"boot":  func(i *hub.Incarnation) { i.BootID = "another" },
	} {
		forged := inc
		change(&forged)
		if state, err := m.Observe(within(t), forged); err != nil || state.Liveness != hub.Unverifiable {
			t.Errorf("%s: Observe = %+v, %v", name, state, err)
		}
		if state, err := m.Wait(within(t), forged); err != nil || state.Liveness != hub.Unverifiable {
			t.Errorf("%s: Wait = %+v, %v", name, state, err)
		}
		if proof, err := m.Stop(within(t), forged, -1); err != nil || proof.Action != hub.ActionUnknown {
			t.Errorf("%s: Stop = %+v, %v", name, proof, err)
		}
	}
	if got := proc.Check(identityOf(inc)); got != hub.Live {
		t.Errorf("the process is %s", got)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	m := newManager(t)
	inc := launched(t, m, specOf(t, "block", ""))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		_, err := m.Wait(ctx, inc)
		ended <- err
	}()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Wait = %v", err)
	}
}

// Invariant 9.
func TestOutputIsCappedAndCounted(t *testing.T) {
	m := newManager(t)
	const total, keep = 3<<20 + 5, 256 << 10
	spec := specOf(t, "spew", strconv.Itoa(total))
	spec.OutputCap = keep
	wantExit(t, waited(t, m, launched(t, m, spec)), 0, "")
	tail, err := m.Tail(within(t), spec.Terminal, 10<<20)
	if err != nil {
		t.Fatal(err)
	}
	if tail.Total != total || !tail.Truncated || len(tail.Data) > keep || len(tail.Data) < keep*3/4 {
		t.Errorf("total %d, truncated %v, %d bytes", tail.Total, tail.Truncated, len(tail.Data))
	}
	if tail, err := m.Tail(within(t), spec.Terminal, 21); err != nil || string(tail.Data) != "0123456789abcdef01234" {
		t.Errorf("tail = %q, %v", tail.Data, err)
	}
}

func TestTailOfUnknownTerminal(t *testing.T) {
	if _, err := newManager(t).Tail(within(t), hub.NewTerminalID(), 1); !hub.IsCode(err, hub.CodeTerminalNotFound) {
		t.Errorf("Tail = %v", err)
	}
}

// A supervisor's protocol beyond what the Manager uses.
func TestCommandsOnOneConnection(t *testing.T) {
	m := newManager(t)
	spec := specOf(t, "block", "")
	inc := launched(t, m, spec)
	until(t, "output", func() bool { return tailed(t, m, spec.Terminal) == "ready\n" })
	c, err := m.connect(within(t), filepath.Join(m.cfg.Root, string(spec.Terminal)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.hello.Version != ProtocolVersion || !c.hello.proves(inc) {
		t.Errorf("hello = %+v", c.hello)
	}
	ask := func(cmd Command) (ev Event) {
		t.Helper()
		if err := c.send(cmd); err != nil {
			t.Fatal(err)
		}
		if err := readControl(c, &ev); err != nil {
			t.Fatal(err)
		}
		return ev
	}
	if ev := ask(Command{Op: opState}); ev.Op != opState || ev.Total != 6 || ev.LastOutputAt == 0 {
		t.Errorf("state = %+v", ev)
	}
	if ev := ask(Command{Op: "dance"}); ev.Op != evError {
		t.Errorf("unknown operation = %+v", ev)
	}
	if err := c.send(Command{Op: opTail, Bytes: 3}); err != nil {
		t.Fatal(err)
	}
	kind, payload, err := readFrame(c)
	if err != nil || kind != kindOutput || string(payload) != "\x00\x00\x00\x00\x00\x00\x00\x03dy\n" {
		t.Errorf("output frame = %d %q, %v", kind, payload, err)
	}
	var ev Event
	if err := readControl(c, &ev); err != nil || ev.Op != opTail || ev.Total != 6 {
		t.Errorf("tail = %+v, %v", ev, err)
	}
	if err := c.send(Command{Op: opDetach}); err != nil {
		t.Fatal(err)
	}
	if err := readControl(c, &ev); err == nil {
		t.Errorf("after detach: %+v", ev)
	}
}
