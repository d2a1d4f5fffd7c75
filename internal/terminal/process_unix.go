//go:build unix

package terminal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/proc"
)

// process is the supervised process and the tree below it.
type process struct {
	id   proc.Identity
	tree proc.Tree
	exit chan status
}

// status is how a process ended.
type status struct {
	code   int
	signal string
	err    error // why code is not known
}

// shield keeps the supervisor from ending with anything but its process. The
// signals are caught, not ignored: a child would inherit that. Descriptors
// that somebody left open in the hub go no further.
func shield() error {
	dropped := make(chan os.Signal, 1) // never read: a full channel drops
	signal.Notify(dropped, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGPIPE)
	if err := closeOnExec(); err != nil {
		return fmt.Errorf("marking inherited descriptors: %w", err)
	}
	return proc.BecomeSubreaper()
}

func closeOnExec() error {
	dir, err := os.Open(descriptorDir)
	if err != nil {
		return err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// startProcess starts the process of spec in a session of its own, whose
// controlling terminal is the pseudo terminal if there is one, and in its cgroup
// if it has one and that can be entered.
func startProcess(spec hub.LaunchSpec, self proc.Identity, io *stdio, cgroup string) (*process, error) {
	attr := &os.ProcAttr{
		Dir: spec.Dir, Env: append([]string{}, spec.Env...), Files: io.child[:],
		Sys: &syscall.SysProcAttr{Setsid: true, Setctty: io.pty != nil}, // of descriptor 0
	}
	started, err := startWithin(cgroup, spec.Argv, attr)
	if err != nil {
		return nil, err
	}
	id, err := proc.Lookup(started.Pid) // not yet waited for, so there
	if err != nil {
		_ = started.Kill()
		_, waitErr := started.Wait()
		return nil, errors.Join(err, waitErr)
	}
	p := &process{
		id: id, exit: make(chan status, 1),
		tree: proc.Tree{Root: self, Key: terminalVar, Value: string(spec.Terminal), Group: cgroup},
	}
	go p.reap()
	return p, started.Release()
}

// reap waits for the process and for every orphan of its tree, and ends when
// there is none left or the supervisor does.
func (p *process) reap() {
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, 0, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return
		}
		if pid == p.id.PID {
			p.exit <- statusOf(ws)
		}
	}
}

func statusOf(ws unix.WaitStatus) status {
	if ws.Signaled() {
		return status{code: 128 + int(ws.Signal()), signal: unix.SignalName(ws.Signal())}
	}
	return status{code: ws.ExitStatus()}
}

// end ends the whole tree; nil proves that nothing is left.
func (p *process) end(ctx context.Context, grace time.Duration) error {
	return proc.EndTree(ctx, p.tree, grace)
}

// release frees what the process cost.
func (p *process) release() error { return nil }
