package proc

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// ppidStale: a parent pid never names a process that took the pid later.
const ppidStale = false

// BootID names this boot of the machine.
var BootID = sync.OnceValues(func() (string, error) {
	raw, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("reading the boot id: %w", err)
	}
	return strings.TrimSpace(string(raw)), nil
})

func read(pid int) (process, error) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, unix.ESRCH) {
		return process{}, ErrGone
	}
	if errors.Is(err, fs.ErrNotExist) {
		return process{}, absent(pid, err)
	}
	if err != nil {
		return process{}, err
	}
	return parseStat(pid, raw)
}

// absent tells a free pid from one that a hidepid mount hides.
func absent(pid int, err error) error {
	if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		return ErrGone
	}
	return fmt.Errorf("process %d: %w: %w", pid, errHidden, err)
}

// errHidden marks a process that exists but may not be looked at.
var errHidden = errors.New("hidden")

// unseen reports whether err concerns one process that ended or is hidden,
// and not the reader's ability to read (say, a want of descriptors).
func unseen(err error) bool {
	return errors.Is(err, ErrGone) || errors.Is(err, errHidden) || errors.Is(err, fs.ErrNotExist) ||
		errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.ESRCH)
}

// Fields of /proc/PID/stat after the parenthesised name, see proc(5).
const (
	statState   = 0
	statPPID    = 1
	statSession = 3
	statTTY     = 4
	statThreads = 17
	statStart   = 19
)

func parseStat(pid int, raw []byte) (process, error) {
	end := bytes.LastIndexByte(raw, ')')
	f := strings.Fields(string(raw[end+1:]))
	if end < 0 || len(f) <= statStart {
		return process{}, fmt.Errorf("stat of process %d: too short", pid)
	}
	started, err := strconv.ParseInt(f[statStart], 10, 64)
	if err != nil {
		return process{}, fmt.Errorf("stat of process %d: %w", pid, err)
	}
	p := process{pid: pid, started: started, ppid: atoi(f[statPPID]), session: atoi(f[statSession])}
	if f[statTTY] != "0" {
		p.tty = f[statTTY]
	}
	// A process whose first thread alone has ended is a zombie with threads.
	p.ended = f[statState] == "X" || (f[statState] == "Z" && atoi(f[statThreads]) <= 1)
	return p, nil
}

// atoi reads a number that the kernel wrote; -1 names no process.
func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return n
}

func pids() ([]int, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	found := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			found = append(found, pid)
		}
	}
	return found, nil
}

// all returns the process table; processes that ended or are hidden are left
// out.
func all() ([]process, error) {
	found, err := pids()
	if err != nil {
		return nil, err
	}
	table := make([]process, 0, len(found))
	for _, pid := range found {
		p, err := read(pid)
		if err == nil {
			table = append(table, p)
		} else if !unseen(err) {
			return nil, err
		}
	}
	return table, nil
}

// Signal sends sig to the process that id is, and to no other; ErrGone when it
// is over. Without pidfd (Linux before 5.3) it refuses.
func Signal(id Identity, sig syscall.Signal) error {
	fd, err := unix.PidfdOpen(id.PID, 0)
	if err != nil {
		if gone := confirm(id); errors.Is(gone, ErrGone) {
			return gone
		}
		return fmt.Errorf("opening process %d: %w", id.PID, err)
	}
	defer unix.Close(fd)
	if err := confirm(id); err != nil {
		return err
	}
	err = unix.PidfdSendSignal(fd, sig, nil, 0)
	if errors.Is(err, unix.ESRCH) {
		return ErrGone
	}
	if err != nil {
		return fmt.Errorf("sending %s to process %d: %w", unix.SignalName(sig), id.PID, err)
	}
	return nil
}

// BecomeSubreaper makes this process the parent of its orphaned descendants,
// which it then has to wait for.
func BecomeSubreaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("becoming the subreaper: %w", err)
	}
	return nil
}

// FindByEnv returns the live processes whose environment, as it was when their
// program started, has key=value. Processes of other users are not seen.
func FindByEnv(key, value string) ([]Identity, error) {
	found, err := pids()
	if err != nil {
		return nil, fmt.Errorf("reading the process table: %w", err)
	}
	mark := []byte(key + "=" + value)
	var ids []Identity
	for _, pid := range found {
		id, err := marked(pid, mark)
		if err == nil {
			ids = append(ids, id)
		} else if !unseen(err) {
			return nil, fmt.Errorf("looking for strays: %w", err)
		}
	}
	return ids, nil
}

// marked returns the live process that has the pid and the mark, ErrGone when
// there is none.
func marked(pid int, mark []byte) (Identity, error) {
	if ok, err := hasEnv(pid, mark); err != nil || !ok {
		return Identity{}, cmp.Or(err, ErrGone)
	}
	id, err := Lookup(pid)
	if err != nil {
		return Identity{}, err
	}
	// Again after the look-up: the pid may have changed hands before it.
	if ok, err := hasEnv(pid, mark); err != nil || !ok {
		return Identity{}, cmp.Or(err, ErrGone)
	}
	return id, confirm(id)
}

func hasEnv(pid int, mark []byte) (bool, error) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false, err
	}
	for entry := range bytes.SplitSeq(raw, []byte{0}) {
		if bytes.Equal(entry, mark) {
			return true, nil
		}
	}
	return false, nil
}
