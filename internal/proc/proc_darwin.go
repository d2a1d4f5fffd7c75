package proc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/wavehub/wavehub/internal/hub"
)

// ppidStale: a parent pid never names a process that took the pid later.
const ppidStale = false

const (
	stateZombie = 5  // SZOMB of sys/proc.h
	noDevice    = -1 // NODEV of sys/param.h
)

// BootID names this boot of the machine. kern.boottime would change with every
// step of the clock, the session's UUID does not.
var BootID = sync.OnceValues(func() (string, error) {
	uuid, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return "", fmt.Errorf("reading the boot id: %w", err)
	}
	if uuid == "" {
		return "", errors.New("reading the boot id: it is empty")
	}
	return uuid, nil
})

func read(pid int) (process, error) {
	if errors.Is(unix.Kill(pid, 0), unix.ESRCH) && !isZombie(pid) {
		return process{}, ErrGone
	}
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return process{}, err
	}
	if int(k.Proc.P_pid) != pid {
		return process{}, fmt.Errorf("process table has no process %d", pid)
	}
	p := fromKinfo(k)
	if sid, err := unix.Getsid(pid); err == nil {
		p.session = sid
	}
	return p, nil
}

func isZombie(pid int) bool {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err == nil && int(k.Proc.P_pid) == pid && k.Proc.P_stat == stateZombie
}

func fromKinfo(k *unix.KinfoProc) process {
	start := k.Proc.P_starttime
	p := process{
		pid: int(k.Proc.P_pid), ppid: int(k.Eproc.Ppid),
		started: start.Sec*1e6 + int64(start.Usec),
		ended:   k.Proc.P_stat == stateZombie,
	}
	if k.Eproc.Tdev != noDevice {
		p.tty = strconv.Itoa(int(k.Eproc.Tdev))
	}
	return p
}

func all() ([]process, error) {
	kinfo, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, err
	}
	table := make([]process, 0, len(kinfo))
	for i := range kinfo {
		table = append(table, fromKinfo(&kinfo[i]))
	}
	return table, nil
}

// Signal sends sig to the process that id is; ErrGone when it is over. The
// system has no handle that pins a pid: id is compared immediately before.
func Signal(id Identity, sig syscall.Signal) error {
	if err := confirm(id); err != nil {
		return err
	}
	err := unix.Kill(id.PID, sig)
	if errors.Is(err, unix.ESRCH) {
		return ErrGone
	}
	if err != nil {
		return fmt.Errorf("sending %s to process %d: %w", unix.SignalName(sig), id.PID, err)
	}
	return nil
}

// BecomeSubreaper does nothing: the system has no subreaper. Orphans are found
// by their environment.
func BecomeSubreaper() error { return nil }

// FindByEnv returns the live processes of this user whose environment, as it
// was when their program started, has key=value. The system hides the
// environment of its protected programs, which are not found.
func FindByEnv(key, value string) ([]Identity, error) {
	table, err := all()
	if err != nil {
		return nil, fmt.Errorf("reading the process table: %w", err)
	}
	mark := []byte(key + "=" + value)
	var ids []Identity
	for _, p := range table {
		if p.ended || !hasEnv(p.pid, mark) {
			continue
		}
		id, err := Lookup(p.pid)
		if err != nil || !hasEnv(p.pid, mark) || Check(id) != hub.Live {
			continue // it ended meanwhile
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// hasEnv reads the block of argument count, program, arguments, environment.
func hasEnv(pid int, mark []byte) bool {
	raw, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil || len(raw) < 4 {
		return false
	}
	skip := int(binary.LittleEndian.Uint32(raw)) // arguments are not environment
	_, rest, _ := bytes.Cut(raw[4:], []byte{0})
	rest = bytes.TrimLeft(rest, "\x00")
	for entry := range bytes.SplitSeq(rest, []byte{0}) {
		if skip--; skip < 0 && bytes.Equal(entry, mark) {
			return true
		}
	}
	return false
}
