package terminal

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/proc"
)

const (
	superviseVar = "WAVEHUB_TEST_SUPERVISE" // this binary is a supervisor
	roleVar      = "WAVEHUB_TEST_ROLE"      // this binary is a supervised process
	argVar       = "WAVEHUB_TEST_ARG"
	limit        = 20 * time.Second // for what takes milliseconds
)

func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-test.fuzzworker") { // this binary again, with its environment
		os.Exit(m.Run())
	}
	if role := os.Getenv(roleVar); role != "" {
		os.Exit(play(role, os.Getenv(argVar)))
	}
	switch os.Getenv(superviseVar) {
	case "":
		os.Exit(runTests(m))
	case "late": // a supervisor that the hub gives up before it claims
		awaitFile(filepath.Join(os.Args[1], claimFile))
	case "dies": // a supervisor that dies between claim and record
		self, err := proc.Self()
		if err == nil {
			_, err = take(os.Args[1], claim{Supervisor: &self})
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := Supervise(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// runTests gives the tests a short folder for sockets.
func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "wh")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	os.Setenv("XDG_RUNTIME_DIR", dir)
	os.Setenv(superviseVar, "yes")
	os.Setenv("GORACE", "atexit_sleep_ms=0") // else each supervisor lingers for a second
	return m.Run()
}

// play is what a supervised process does.
func play(role, arg string) int {
	n, _ := strconv.Atoi(arg)
	switch role {
	case "exit":
		return n
	case "sum":
		sum := sha256.New()
		size, err := io.Copy(sum, os.Stdin)
		fmt.Printf("%d %x %v", size, sum.Sum(nil), err)
	case "spew":
		block := []byte(strings.Repeat("0123456789abcdef", 1<<10))
		for ; n > 0; n -= len(block) {
			_, _ = os.Stdout.Write(block[:min(n, len(block))])
		}
	case "env":
		cwd, err := os.Getwd()
		fmt.Print(strings.Join(slices.Sorted(slices.Values(os.Environ())), "|"), "|", cwd, err)
	case "block":
		fmt.Println("ready")
		r, w, err := os.Pipe()
		if err == nil {
			_, _ = r.Read(make([]byte, 1)) // until it is killed
			w.Close()
		}
		return 99
	}
	return 0
}

func awaitFile(path string) {
	for end := time.Now().Add(limit); time.Now().Before(end); {
		if _, err := os.Stat(path); err == nil {
			return
		}
	}
}

func newManager(t *testing.T) *Manager {
	t.Helper()
	m, err := New(Config{Root: t.TempDir(), Exe: []string{os.Args[0]}, Grace: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// specOf describes a process that plays the role.
func specOf(t *testing.T, role, arg string) hub.LaunchSpec {
	t.Helper()
	id := hub.NewTerminalID()
	return hub.LaunchSpec{
		Terminal: id, Argv: []string{os.Args[0]}, Dir: t.TempDir(),
		Env: []string{roleVar + "=" + role, argVar + "=" + arg, terminalVar + "=" + string(id), "SystemRoot=" + os.Getenv("SystemRoot"), "GORACE=" + os.Getenv("GORACE")},
	}
}

func launched(t *testing.T, m *Manager, spec hub.LaunchSpec) hub.Incarnation {
	t.Helper()
	inc, err := m.Launch(within(t), spec)
	if err != nil {
		t.Fatalf("Launch: %v", err)
	}
	t.Cleanup(func() {
		if _, err := m.Stop(within(t), inc, -1); err != nil {
			t.Errorf("cleaning up: %v", err)
		}
		if err := m.Remove(inc.Terminal); err != nil {
			t.Errorf("cleaning up: %v", err)
		}
	})
	return inc
}

// within returns a context that ends long after anything should have happened.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

func waited(t *testing.T, m *Manager, inc hub.Incarnation) hub.ProcessState {
	t.Helper()
	state, err := m.Wait(within(t), inc)
	if err != nil {
		t.Fatalf("Wait: %v", err)
	}
	return state
}

func tailed(t *testing.T, m *Manager, id hub.TerminalID) string {
	t.Helper()
	tail, err := m.Tail(within(t), id, 1<<20)
	if err != nil {
		t.Fatalf("Tail: %v", err)
	}
	return string(tail.Data)
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(limit); !ok(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("timed out: %s", what)
		}
	}
}

func wantExit(t *testing.T, state hub.ProcessState, code int, signal string) {
	t.Helper()
	if state.Liveness != hub.Exited || state.ExitCode == nil || *state.ExitCode != code || state.Signal != signal || state.ExitedAt == 0 {
		t.Errorf("state = %+v (code %v), want exit %d %q", state, deref(state.ExitCode), code, signal)
	}
}

func deref(code *int) any {
	if code == nil {
		return nil
	}
	return *code
}

func supervisorOf(t *testing.T, m *Manager, id hub.TerminalID) proc.Identity {
	t.Helper()
	var s spawn
	if found, err := load(filepath.Join(m.cfg.Root, string(id)), spawnFile, &s); err != nil || !found {
		t.Fatalf("spawn record: %v, %v", found, err)
	}
	return s.Supervisor
}
