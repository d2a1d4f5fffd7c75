package terminal

import (
	"errors"
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
		var c claim
		if _, err := load(filepath.Join(m.cfg.Root, string(spec.Terminal)), claimFile, &c); err != nil {
			t.Fatal(err)
		}
		if err := m.Remove(spec.Terminal); err != nil {
			t.Fatal(err)
		}
		if got := proc.Check(sup); got != hub.Exited {
			t.Fatalf("after Remove the supervisor is %s", got)
		}
		if _, err := os.Stat(c.Cgroup); c.Cgroup != "" && !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("after Remove the cgroup is there: %v", err)
		}
	}
	cycle(shell(t, "exit 0"))
	base, terminals := openFiles(t), ptys(t)
	cycles := scaled(t, 20, 60, 600)
	for range cycles {
		cycle(shell(t, "exit 0"))
		cycle(typed(t, "echo hello"))
	}
	until(t, "descriptors return to base", func() bool { return openFiles(t) <= base })
	// Others on this machine may have opened some meanwhile, but hardly that many.
	until(t, "pseudo terminals return to base", func() bool { return ptys(t) < terminals+cycles/2 })
	left, err := filepath.Glob(filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "wavehub", "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("sockets are left: %v", left)
	}
}
