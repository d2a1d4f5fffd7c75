//go:build unix

package terminal

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/proc"
)

// shell describes a process that runs the script. The script's own processes
// have the terminal's mark.
func shell(t *testing.T, script string) hub.LaunchSpec {
	t.Helper()
	spec := specOf(t, "", "")
	spec.Argv = []string{"/bin/sh", "-c", script}
	spec.Env = []string{"PATH=" + os.Getenv("PATH"), terminalVar + "=" + string(spec.Terminal), "TEST_BIN=" + os.Args[0]}
	return spec
}

// pidsIn waits for n lines of output and returns the processes they name.
func pidsIn(t *testing.T, m *Manager, id hub.TerminalID, n int) []proc.Identity {
	t.Helper()
	var fields []string
	until(t, "pids in the output", func() bool {
		fields = strings.Fields(tailed(t, m, id))
		return len(fields) >= n
	})
	ids := make([]proc.Identity, n)
	for i := range ids {
		pid, err := strconv.Atoi(fields[i])
		if err == nil {
			ids[i], err = proc.Lookup(pid)
		}
		if err != nil {
			t.Fatalf("pid %q: %v", fields[i], err)
		}
	}
	return ids
}

func wantGone(t *testing.T, ids ...proc.Identity) {
	t.Helper()
	for _, id := range ids {
		if got := proc.Check(id); got != hub.Exited {
			t.Errorf("process %d is %s", id.PID, got)
		}
	}
}

// kill ends a process behind the supervisor's back.
func kill(t *testing.T, id proc.Identity) {
	t.Helper()
	if err := proc.Signal(id, syscall.SIGKILL); err != nil && !errors.Is(err, proc.ErrGone) {
		t.Fatal(err)
	}
	until(t, "a killed process is gone", func() bool { return proc.Check(id) == hub.Exited })
}

// Invariant 5.
func TestSignalExit(t *testing.T) {
	m := newManager(t)
	wantExit(t, waited(t, m, launched(t, m, shell(t, "kill -9 $$"))), 137, "SIGKILL")
	wantExit(t, waited(t, m, launched(t, m, shell(t, "kill -TERM $$"))), 143, "SIGTERM")
}

// Invariant 8.
func TestBothOutputsKeepTheirOrder(t *testing.T) {
	m := newManager(t)
	spec := shell(t, "echo a; echo b >&2; echo c; echo d >&2")
	wantExit(t, waited(t, m, launched(t, m, spec)), 0, "")
	if got := tailed(t, m, spec.Terminal); got != "a\nb\nc\nd\n" {
		t.Errorf("output %q", got)
	}
}

// Invariant 7: grandchildren in sessions of their own, deaf to SIGTERM.
func TestStopLeavesNothingAlive(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux finds orphans without the terminal's mark")
	}
	m := newManager(t)
	const deaf = `trap "" TERM; echo $$; while :; do sleep 1; done`
	spec := shell(t, "setsid sh -c '"+deaf+"' & env -i PATH=$PATH setsid sh -c '"+deaf+"' & (env -i PATH=$PATH setsid sh -c '"+deaf+"' &) ; "+deaf)
	inc := launched(t, m, spec)
	ids := pidsIn(t, m, spec.Terminal, 4)
	proof, err := m.Stop(within(t), inc, 50*time.Millisecond)
	if err != nil || proof.Action != hub.ActionEnded {
		t.Errorf("Stop = %+v, %v", proof, err)
	}
	wantExit(t, proof.State, 137, "SIGKILL")
	wantGone(t, append(ids, identityOf(inc))...)
}

// Invariant 7: the grace is the process's to use, and only as long.
func TestStopGivesTheGrace(t *testing.T) {
	m := newManager(t)
	spec := shell(t, `trap "echo bye; exit 5" TERM; echo $$; while :; do sleep 0.01; done`)
	inc := launched(t, m, spec)
	pidsIn(t, m, spec.Terminal, 1)
	proof, err := m.Stop(within(t), inc, limit/2)
	if err != nil {
		t.Fatal(err)
	}
	wantExit(t, proof.State, 5, "")
	if got := tailed(t, m, spec.Terminal); !strings.HasSuffix(got, "bye\n") {
		t.Errorf("output %q", got)
	}
}

// Invariant 7: a second stop with less grace cuts the first one short.
func TestHarderStopTakesOver(t *testing.T) {
	m := newManager(t)
	spec := shell(t, `trap "echo told" TERM; echo $$; while :; do sleep 0.01; done`)
	inc := launched(t, m, spec)
	pidsIn(t, m, spec.Terminal, 1)
	patient := make(chan hub.StopProof, 1)
	go func() {
		proof, err := m.Stop(within(t), inc, time.Hour)
		if err != nil {
			t.Error(err)
		}
		patient <- proof
	}()
	until(t, "SIGTERM arrives", func() bool { return strings.Contains(tailed(t, m, spec.Terminal), "told") })
	proof, err := m.Stop(within(t), inc, -1)
	if err != nil || proof.Action != hub.ActionEnded {
		t.Errorf("hard Stop = %+v, %v", proof, err)
	}
	if proof := <-patient; proof.Action != hub.ActionEnded || proof.State.Liveness != hub.Exited {
		t.Errorf("patient Stop = %+v", proof)
	}
}

// Invariant 5: a grandchild that holds the output neither hangs the exit nor
// survives it.
func TestGrandchildHoldingTheOutput(t *testing.T) {
	m := newManager(t)
	spec := shell(t, `sleep 1000 & echo $!; exit 3`)
	inc := launched(t, m, spec)
	began := time.Now()
	ids := pidsIn(t, m, spec.Terminal, 1)
	wantExit(t, waited(t, m, inc), 3, "")
	if took := time.Since(began); took > drainLimit+2*time.Second {
		t.Errorf("the exit took %v", took)
	}
	wantGone(t, ids...)
}

// Invariant 4: only a kill command ends the tree, and the process does not
// inherit the supervisor's deafness.
func TestSignalsDoNotEndTheSupervisor(t *testing.T) {
	m := newManager(t)
	inc := launched(t, m, shell(t, "while :; do sleep 0.01; done"))
	sup := supervisorOf(t, m, inc.Terminal)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT} {
		if err := proc.Signal(sup, sig); err != nil {
			t.Fatal(err)
		}
	}
	if state, err := m.Observe(within(t), inc); err != nil || state.Liveness != hub.Live {
		t.Errorf("Observe = %+v, %v", state, err)
	}
	if err := proc.Signal(identityOf(inc), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	wantExit(t, waited(t, m, inc), 143, "SIGTERM")
}

// Invariant 6.
func TestKilledSupervisorWithLiveProcess(t *testing.T) {
	m := newManager(t)
	spec := shell(t, `trap "" TERM PIPE; sh -c 'trap "" TERM PIPE; echo $$; while :; do sleep 0.1; done' & echo $$; while :; do sleep 0.1; done`)
	inc := launched(t, m, spec)
	ids := pidsIn(t, m, spec.Terminal, 2)
	ended := make(chan hub.ProcessState, 1)
	go func() {
		state, err := m.Wait(within(t), inc)
		if err != nil {
			t.Error(err)
		}
		ended <- state
	}()
	kill(t, supervisorOf(t, m, inc.Terminal))
	if state := <-ended; state.Liveness != hub.Unverifiable {
		t.Errorf("Wait = %+v", state)
	}
	if state, err := m.Observe(within(t), inc); err != nil || state.Liveness != hub.Unverifiable {
		t.Errorf("Observe = %+v, %v", state, err)
	}
	if err := m.Remove(inc.Terminal); !hub.IsCode(err, hub.CodeTerminalBusy) {
		t.Errorf("Remove = %v", err)
	}
	forged := inc
	forged.StartedAt++
	if proof, err := m.Stop(within(t), forged, -1); err != nil || proof.Action != hub.ActionUnknown {
		t.Errorf("Stop of a forged incarnation = %+v, %v", proof, err)
	}
	if got := proc.Check(identityOf(inc)); got != hub.Live {
		t.Fatalf("the forged stop touched the process: %s", got)
	}
	proof, err := m.Stop(within(t), inc, 20*time.Millisecond)
	if err != nil || proof.Action != hub.ActionEnded || proof.State.Liveness != hub.Exited || proof.State.ExitCode != nil {
		t.Errorf("Stop = %+v, %v", proof, err)
	}
	if runtime.GOOS == "linux" { // elsewhere /bin/sh hides its environment
		wantGone(t, ids...)
	}
	if err := m.Remove(inc.Terminal); err != nil {
		t.Errorf("Remove = %v", err)
	}
}

// Invariant 7: where there is a cgroup, also who lost its parents and its mark is
// found without the supervisor.
func TestKilledSupervisorWithACgroup(t *testing.T) {
	m := newManager(t)
	const deaf = `trap "" TERM PIPE HUP; echo $$; while :; do sleep 0.1; done`
	spec := shell(t, "(env -i PATH=$PATH setsid sh -c '"+deaf+"' &); "+deaf)
	inc := launched(t, m, spec)
	var c claim
	if _, err := load(filepath.Join(m.cfg.Root, string(inc.Terminal)), claimFile, &c); err != nil {
		t.Fatal(err)
	}
	if c.Cgroup == "" {
		log, err := os.ReadFile(filepath.Join(m.cfg.Root, string(inc.Terminal), logFile))
		t.Skipf("this machine gives no cgroup: %s %v", log, err)
	}
	ids := pidsIn(t, m, spec.Terminal, 2)
	kill(t, supervisorOf(t, m, inc.Terminal))
	proof, err := m.Stop(within(t), inc, 20*time.Millisecond)
	if err != nil || proof.Action != hub.ActionEnded {
		t.Errorf("Stop = %+v, %v", proof, err)
	}
	wantGone(t, ids...)
	if err := m.Remove(inc.Terminal); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(c.Cgroup); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the cgroup is left: %v", err)
	}
}

// Invariant 6.
func TestKilledSupervisorWithDeadProcess(t *testing.T) {
	m := newManager(t)
	inc := launched(t, m, specOf(t, "block", ""))
	kill(t, supervisorOf(t, m, inc.Terminal))
	if state, err := m.Observe(within(t), inc); err != nil || state.Liveness == hub.Live {
		t.Errorf("Observe = %+v, %v", state, err)
	}
	if err := proc.Signal(identityOf(inc), syscall.SIGKILL); err != nil && !errors.Is(err, proc.ErrGone) {
		t.Fatal(err)
	}
	until(t, "the end is proven", func() bool {
		state, err := m.Observe(within(t), inc)
		if err != nil || state.Liveness == hub.Live {
			t.Fatalf("Observe = %+v, %v", state, err)
		}
		return state.Liveness == hub.Exited && state.ExitCode == nil
	})
	if state := waited(t, m, inc); state.Liveness != hub.Exited || state.ExitCode != nil {
		t.Errorf("Wait = %+v", state)
	}
	if proof, err := m.Stop(within(t), inc, 0); err != nil || proof.Action != hub.ActionNone {
		t.Errorf("Stop = %+v, %v", proof, err)
	}
}

// Invariant 11.
func TestEndpointIsTheUsersAlone(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	t.Setenv("TMPDIR", "/nonexistent")
	if err := os.Mkdir(filepath.Join(dir, "wavehub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if path, err := endpointFor(hub.NewTerminalID()); err == nil && strings.HasPrefix(path, dir) {
		t.Errorf("a folder that others can enter was taken: %s", path)
	}
	if err := os.Chmod(filepath.Join(dir, "wavehub"), 0o700); err != nil {
		t.Fatal(err)
	}
	path, err := endpointFor(hub.NewTerminalID())
	if err != nil || len(path) > maxEndpoint {
		t.Errorf("endpoint %q, %v", path, err)
	}
}
