package terminal

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	for _, spec := range []hub.LaunchSpec{shell(t, listOpen), typed(t, listOpen)} {
		wantExit(t, waited(t, m, launched(t, m, spec)), 0, "")
		if got := strings.Fields(tailed(t, m, spec.Terminal)); !slices.Equal(got, []string{"0", "1", "2"}) {
			t.Errorf("the process has descriptors %q", got)
		}
	}
}

const listOpen = `for f in /proc/self/fd/*; do [ -e "$f" ] && echo "${f##*/}"; done; true`

// ptys returns how many pseudo terminals this machine has open.
func ptys(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/dev/pts")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// Invariant 12.
func TestCyclesReturnToBase(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	m := newManager(t)
	cycle := func(spec hub.LaunchSpec) {
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
	cycle(shell(t, "exit 0"))
	base, terminals := openFiles(t), ptys(t)
	for range scaled(t, 20, 60, 600) {
		cycle(shell(t, "exit 0"))
		cycle(typed(t, "echo hello"))
	}
	until(t, "descriptors return to base", func() bool { return openFiles(t) <= base })
	until(t, "pseudo terminals return to base", func() bool { return ptys(t) <= terminals })
	left, err := filepath.Glob(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "wavehub", "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("sockets are left: %v", left)
	}
}
