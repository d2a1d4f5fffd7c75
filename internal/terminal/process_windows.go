package terminal

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/windows"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/proc"
)

// process is the supervised process and the job that holds its tree.
type process struct {
	pty  *pseudo // nil for pipes
	id   proc.Identity
	job  *proc.Job
	exit chan status
}

// status is how a process ended; Windows knows no signals.
type status struct {
	code   int
	signal string
	err    error // why code is not known
}

// shield keeps the supervisor from ending with anything but its process.
func shield() error {
	dropped := make(chan os.Signal, 1) // never read: a full channel drops
	signal.Notify(dropped, os.Interrupt, syscall.SIGTERM)
	return nil
}

// startProcess starts the process of spec inside a job, with a hidden console
// of its own and as the leader of a process group, which CTRL_BREAK needs.
// In a pseudo console that is its console.
func startProcess(spec hub.LaunchSpec, _ proc.Identity, io *stdio, _ string) (*process, error) {
	job, err := proc.NewJob()
	if err != nil {
		return nil, err
	}
	started, err := startSuspended(spec, io)
	if err != nil {
		return nil, errors.Join(err, job.Close())
	}
	id, err := proc.Lookup(started.Pid)
	if err == nil {
		err = job.Adopt(started.Pid)
	}
	if err != nil {
		_ = started.Kill()
		_, waitErr := started.Wait()
		return nil, errors.Join(err, waitErr, job.Close())
	}
	p := &process{pty: io.pty, id: id, job: job, exit: make(chan status, 1)}
	go p.reap(started)
	return p, nil
}

func startSuspended(spec hub.LaunchSpec, io *stdio) (*os.Process, error) {
	if io.pty != nil {
		return io.pty.start(spec)
	}
	const flags = windows.CREATE_SUSPENDED | windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_NO_WINDOW
	return os.StartProcess(spec.Argv[0], spec.Argv, &os.ProcAttr{
		Dir: spec.Dir, Env: append([]string{}, spec.Env...), Files: io.child[:],
		Sys: &syscall.SysProcAttr{CreationFlags: flags},
	})
}

// reap waits for the process and ends when that or the supervisor does.
func (p *process) reap(started *os.Process) {
	state, err := started.Wait()
	if err != nil {
		p.exit <- status{err: err}
		return
	}
	p.exit <- status{code: state.ExitCode()}
}

// end ends the whole job; nil proves that nothing is left.
func (p *process) end(ctx context.Context, grace time.Duration) error {
	return p.job.End(ctx, p.ask, grace)
}

// ask asks the process to end: by CTRL_BREAK, or by the end of its console.
func (p *process) ask() error {
	if p.pty != nil {
		return p.pty.hangUp()
	}
	return proc.Signal(p.id, syscall.SIGTERM)
}

// release frees what the process cost.
func (p *process) release() error { return p.job.Close() }
