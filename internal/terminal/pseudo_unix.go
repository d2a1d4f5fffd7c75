//go:build unix

package terminal

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/charmbracelet/x/xpty"
	"golang.org/x/sys/unix"

	"github.com/wavehub/wavehub/internal/hub"
)

// pseudo is a pseudo terminal. The supervisor keeps the process's end open until
// the process has ended: a process that closes its files and opens its terminal
// again would end the output else.
type pseudo struct {
	file  *os.File // the supervisor's end
	slave *os.File
	once  sync.Once // closes slave
}

// openPseudo opens a pseudo terminal of the size.
func openPseudo(size hub.TerminalSize) (*pseudo, error) {
	pty, err := xpty.NewUnixPty(size.Cols, size.Rows)
	if err != nil {
		return nil, err
	}
	slave := pty.Slave()
	file, err := pollable(pty.Master())
	if err = errors.Join(err, pty.Master().Close()); err != nil {
		return nil, errors.Join(err, slave.Close())
	}
	return &pseudo{file: file, slave: slave}, nil
}

// pollable returns the same file under a descriptor whose reads end when it is
// closed, and whose writes have deadlines.
func pollable(f *os.File) (*os.File, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd := -1
	var failed error
	err = conn.Control(func(old uintptr) {
		if fd, failed = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 3); failed == nil {
			failed = unix.SetNonblock(fd, true)
		}
	})
	if err = errors.Join(err, failed); err != nil {
		if fd >= 0 {
			err = errors.Join(err, unix.Close(fd))
		}
		return nil, fmt.Errorf("preparing the pseudo terminal: %w", err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// child is the process's three standard files.
func (p *pseudo) child() [3]*os.File { return [3]*os.File{p.slave, p.slave, p.slave} }

// resize sets the size and tells the process.
func (p *pseudo) resize(size hub.TerminalSize) error {
	conn, err := p.file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Control(func(fd uintptr) {
		failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(size.Rows), Col: uint16(size.Cols)})
	})
	return errors.Join(err, failed)
}

// write writes to the process's input until deadline.
func (p *pseudo) write(data []byte, deadline time.Time) (int, error) {
	if err := p.file.SetWriteDeadline(deadline); err != nil {
		return 0, err
	}
	return p.file.Write(data)
}

// interrupt ends a write that waits.
func (p *pseudo) interrupt() { _ = p.file.SetWriteDeadline(time.Now()) } // closing ends it too

// hangUp lets the output end when the last process has closed its end.
func (p *pseudo) hangUp() (err error) {
	p.once.Do(func() { err = p.slave.Close() })
	return err
}

func (p *pseudo) close() error { return errors.Join(p.hangUp(), p.file.Close()) }
