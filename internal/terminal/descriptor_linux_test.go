package terminal

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/proc"
)

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// Invariant 12: three standard files, whatever was open in the hub.
func TestProcessInheritsNoDescriptor(t *testing.T) {
	for range 5 {
		fd, err := unix.Open("/dev/null", unix.O_RDONLY, 0) // without O_CLOEXEC
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
	}
	m := newManager(t)
	spec := shell(t, `for f in /proc/self/fd/*; do [ -e "$f" ] && echo "${f##*/}"; done; true`)
	wantExit(t, waited(t, m, launched(t, m, spec)), 0, "")
	if got := tailed(t, m, spec.Terminal); got != "0\n1\n2\n" {
		t.Errorf("the process has descriptors %q", got)
	}
}

// Invariant 12.
func TestCyclesReturnToBase(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	m := newManager(t)
	cycle := func() {
		spec := shell(t, "exit 0")
		inc, err := m.Launch(within(t), spec)
		if err != nil {
			t.Fatal(err)
		}
		wantExit(t, waited(t, m, inc), 0, "")
		sup := supervisorOf(t, m, spec.Terminal)
		if err := m.Remove(spec.Terminal); err != nil {
			t.Fatal(err)
		}
		if got := proc.Check(sup); got != hub.Exited {
			t.Fatalf("after Remove the supervisor is %s", got)
		}
	}
	cycle()
	base := openFiles(t)
	for range 50 {
		cycle()
	}
	until(t, "descriptors return to base", func() bool { return openFiles(t) <= base })
	left, err := filepath.Glob(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "wavehub", "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("sockets are left: %v", left)
	}
}
