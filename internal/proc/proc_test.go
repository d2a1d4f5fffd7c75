package proc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

const roleVar = "WAVEHUB_TEST_ROLE"

// TestMain runs the roles that tests start this binary in.
func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "":
		os.Exit(m.Run())
	case "block": // until stdin closes
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "context":
		text, err := CallerContext()
		fmt.Printf("%q %v\n", text, err)
	}
}

// child is a process that ends when its stdin closes.
type child struct {
	*exec.Cmd
	stdin io.Closer
	id    Identity
}

func startChild(t *testing.T, env ...string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append(env, roleVar+"=block")...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{Cmd: cmd, stdin: stdin}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("child said %q, %v", line, err)
	}
	if c.id, err = Lookup(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSelfIsLive(t *testing.T) {
	id, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	if id.PID != os.Getpid() || id.StartedAt <= 0 || id.BootID == "" {
		t.Errorf("Self = %+v", id)
	}
	if got := Check(id); got != hub.Live {
		t.Errorf("Check(self) = %s", got)
	}
}

func TestCheckTellsOtherProcesses(t *testing.T) {
	id := startChild(t).id
	for name, c := range map[string]struct {
		change func(*Identity)
		want   hub.Liveness
	}{
		"same":       {func(*Identity) {}, hub.Live},
		"other boot": {func(i *Identity) { i.BootID = "another" }, hub.Exited},
		"other time": {func(i *Identity) { i.StartedAt++ }, hub.Exited},
		"no boot":    {func(i *Identity) { i.BootID = "" }, hub.Unverifiable},
		"no pid":     {func(i *Identity) { i.PID = 0 }, hub.Unverifiable},
		"free pid":   {func(i *Identity) { i.PID = 1 << 30 }, hub.Exited},
	} {
		other := id
		c.change(&other)
		if got := Check(other); got != c.want {
			t.Errorf("%s: Check = %s, want %s", name, got, c.want)
		}
	}
}

func TestEndedChildIsExited(t *testing.T) {
	c := startChild(t)
	c.stdin.Close()
	deadline := time.Now().Add(10 * time.Second)
	for Check(c.id) != hub.Exited { // a zombie until Wait
		if time.Now().After(deadline) {
			t.Fatal("a zombie does not count as exited")
		}
	}
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	if got := Check(c.id); got != hub.Exited {
		t.Errorf("Check after Wait = %s", got)
	}
	if err := Signal(c.id, syscall.SIGKILL); !errors.Is(err, ErrGone) {
		t.Errorf("Signal to a gone process = %v", err)
	}
}

func TestRecycledPidIsNeverSignalled(t *testing.T) {
	c := startChild(t)
	forged := c.id
	forged.StartedAt++
	if err := Signal(forged, syscall.SIGKILL); !errors.Is(err, ErrGone) {
		t.Errorf("Signal = %v, want ErrGone", err)
	}
	tree := Tree{Root: forged, WithRoot: true}
	if err := EndTree(context.Background(), tree, time.Second); err != nil {
		t.Errorf("EndTree = %v", err)
	}
	c.stdin.Close()
	if err := c.Wait(); err != nil {
		t.Errorf("the process was touched: %v", err)
	}
}

func TestEndTreeEndsRoot(t *testing.T) {
	c := startChild(t)
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	if err := EndTree(context.Background(), Tree{Root: c.id, WithRoot: true}, 5*time.Second); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil {
		t.Error("the process ended by itself")
	}
}

func TestEndTreeStopsWithItsContext(t *testing.T) {
	c := startChild(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := EndTree(ctx, Tree{Root: c.id}, time.Second); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if got := Check(c.id); got != hub.Live {
		t.Errorf("Root without WithRoot is %s", got)
	}
}

func TestMembersListsChildren(t *testing.T) {
	c := startChild(t)
	self, err := Lookup(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	ids, err := Tree{Root: self}.Members()
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if id == c.id {
			return
		}
	}
	t.Errorf("child %+v is not in %+v", c.id, ids)
}

func TestContextTextDependsOnEveryField(t *testing.T) {
	seen := map[string]bool{}
	for _, text := range []string{
		contextText("b", "1", Identity{PID: 1, StartedAt: 1}), contextText("c", "1", Identity{PID: 1, StartedAt: 1}),
		contextText("b", "2", Identity{PID: 1, StartedAt: 1}), contextText("b", "1", Identity{PID: 2, StartedAt: 1}),
		contextText("b", "1", Identity{PID: 1, StartedAt: 2}),
	} {
		if seen[text] || !strings.HasPrefix(text, "tty:") {
			t.Errorf("text %q is not distinct", text)
		}
		seen[text] = true
	}
}
