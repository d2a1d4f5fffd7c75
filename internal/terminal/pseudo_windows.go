package terminal

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/charmbracelet/x/xpty"
	"golang.org/x/sys/windows"

	"github.com/wavehub/wavehub/internal/hub"
)

// pseudo is a pseudo console. Its output is read through a handle of its own,
// which still has what was written when the console is closed.
type pseudo struct {
	console *xpty.ConPty
	file    *os.File // the output
	in      *os.File
	once    sync.Once // closes console
	closed  chan struct{}
}

// openPseudo opens a pseudo console of the size.
func openPseudo(size hub.TerminalSize) (*pseudo, error) {
	console, err := xpty.NewConPty(size.Cols, size.Rows)
	if err != nil {
		return nil, err
	}
	p := &pseudo{console: console, closed: make(chan struct{})}
	if p.file, err = duplicate(console.OutPipeReadFd(), "output"); err == nil {
		p.in, err = duplicate(console.InPipeWriteFd(), "input")
	}
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// duplicate returns the same pipe under another handle.
func duplicate(handle uintptr, name string) (*os.File, error) {
	self := windows.CurrentProcess()
	var own windows.Handle
	err := windows.DuplicateHandle(self, windows.Handle(handle), self, &own, 0, false, windows.DUPLICATE_SAME_ACCESS)
	if err != nil {
		return nil, fmt.Errorf("preparing the pseudo console: %w", err)
	}
	return os.NewFile(uintptr(own), name), nil
}

// child is nothing: the console gives the process its files.
func (p *pseudo) child() [3]*os.File { return [3]*os.File{} }

// start starts the process of spec in the console, suspended. It leads no
// process group: that would take CTRL_C from it.
func (p *pseudo) start(spec hub.LaunchSpec) (*os.Process, error) {
	pid, handle, err := p.console.Spawn(spec.Argv[0], spec.Argv, &syscall.ProcAttr{
		Dir: spec.Dir, Env: append([]string{}, spec.Env...),
		Sys: &syscall.SysProcAttr{CreationFlags: windows.CREATE_SUSPENDED},
	})
	if err != nil {
		return nil, err
	}
	started, err := os.FindProcess(pid) // the handle keeps the pid
	return started, errors.Join(err, windows.CloseHandle(windows.Handle(handle)))
}

// resize sets the size and tells the process.
func (p *pseudo) resize(size hub.TerminalSize) error { return p.console.Resize(size.Cols, size.Rows) }

// write writes to the process's input. The console takes it at once, whether
// the process reads or not: the pipe knows no deadline.
func (p *pseudo) write(data []byte, _ time.Time) (int, error) { return p.in.Write(data) }

// interrupt does nothing: hangUp ends a write.
func (p *pseudo) interrupt() {}

// hangUp closes the console, which asks its processes to end and writes what is
// left of the output. On older Windows that lasts until they have ended and the
// output was read: it goes on by itself.
func (p *pseudo) hangUp() error {
	p.once.Do(func() {
		go func() {
			defer close(p.closed)
			_ = p.console.Close() // the handles go with the process, if not now
		}()
	})
	return nil
}

// close waits for the console, but not for ever.
func (p *pseudo) close() error {
	err := p.hangUp()
	select {
	case <-p.closed:
	case <-time.After(closeLimit):
		err = errors.New("the pseudo console does not close")
	}
	for _, f := range []*os.File{p.in, p.file} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}
