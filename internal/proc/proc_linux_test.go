package proc

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestParseStat(t *testing.T) {
	const tail = " 7 8 9 34816 0 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0"
	for name, c := range map[string]struct {
		stat  string
		ended bool
		bad   bool
	}{
		"plain":          {"5 (sh) S" + tail, false, false},
		"odd name":       {"5 (a) Z 1 (b)) R" + tail, false, false},
		"zombie":         {"5 (sh) Z" + tail, true, false},
		"first thread":   {"5 (sh) Z 7 8 9 34816 0 0 0 0 0 0 0 0 0 0 20 0 3 0 4711 0", false, false},
		"too short":      {"5 (sh) S 1 2", false, true},
		"no name at all": {"5", false, true},
	} {
		p, err := parseStat(5, []byte(c.stat))
		if (err != nil) != c.bad {
			t.Errorf("%s: error %v", name, err)
			continue
		}
		if !c.bad && (p.ended != c.ended || p.started != 4711 || p.ppid != 7 || p.session != 9 || p.tty != "34816") {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

func TestFindByEnvMatchesWholeEntries(t *testing.T) {
	key := "WAVEHUB_TEST_MARK_" + strconv.Itoa(os.Getpid())
	c := startChild(t, key+"=abc")
	for value, want := range map[string]int{"abc": 1, "ab": 0, "abcd": 0} {
		ids, err := FindByEnv(key, value)
		if err != nil || len(ids) != want {
			t.Errorf("FindByEnv(%q) = %v, %v; want %d", value, ids, err, want)
		}
		if want == 1 && len(ids) == 1 && ids[0] != c.id {
			t.Errorf("found %+v, want %+v", ids[0], c.id)
		}
	}
}

func TestEndTreeFindsStraysByEnvironment(t *testing.T) {
	key := "WAVEHUB_TEST_STRAY_" + strconv.Itoa(os.Getpid())
	c := startChild(t, key+"=1")
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	if err := EndTree(context.Background(), Tree{Key: key, Value: "1"}, 0); err == nil {
		t.Error("a tree without a verifiable root was accepted")
	}
	gone := Identity{PID: 1 << 30, StartedAt: 1, BootID: c.id.BootID}
	if err := EndTree(context.Background(), Tree{Root: gone, Key: key, Value: "1"}, time.Second); err != nil {
		t.Fatal(err)
	}
	<-done
}

// openPTY returns a new pseudo terminal's master and slave.
func openPTY(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetUint32(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(int(n)), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { slave.Close() })
	return master, slave
}

// contextIn returns what CallerContext gives a process that a shell, leader of
// a session on tty (none if nil), starts n times.
func contextIn(t *testing.T, tty *os.File, n int) []string {
	t.Helper()
	script := strings.Repeat(roleVar+`=context "$0"; `, n)
	cmd := exec.Command("/bin/sh", "-c", script, os.Args[0])
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if tty != nil {
		cmd.Stdin = tty
		cmd.SysProcAttr.Setctty = true
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

func TestCallerContextNamesTheSession(t *testing.T) {
	_, slave := openPTY(t)
	first, second := contextIn(t, slave, 2), contextIn(t, slave, 1)
	if len(first) != 2 || first[0] != first[1] || !strings.HasPrefix(first[0], `"tty:`) {
		t.Errorf("one session gave %q", first)
	}
	if first[0] == second[0] {
		t.Errorf("two sessions on one device share %q", second[0])
	}
}
