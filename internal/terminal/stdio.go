package terminal

import (
	"errors"
	"os"

	"github.com/wavehub/wavehub/internal/hub"
)

// stdio is how a supervisor talks to its process: the process's three
// standard files, and the supervisor's ends of them. Pipes make one, a pseudo
// terminal the other.
type stdio struct {
	child [3]*os.File // none of a process in a pseudo console of Windows
	in    *os.File    // nil when the process gets no input, or is in a pseudo terminal
	out   *os.File
	pty   *pseudo // nil for pipes
}

// newStdio opens what spec asks for.
func newStdio(spec hub.LaunchSpec) (*stdio, error) {
	if spec.PTY == nil {
		return pipes(len(spec.Stdin) > 0)
	}
	p, err := openPseudo(*spec.PTY)
	if err != nil {
		return nil, err
	}
	return &stdio{child: p.child(), out: p.file, pty: p}, nil
}

// pipes gives the process one pipe for both outputs, so that their order is
// kept, and a pipe for input if there is any.
func pipes(withInput bool) (*stdio, error) {
	s := &stdio{}
	var err error
	if withInput {
		s.child[0], s.in, err = os.Pipe()
	} else {
		s.child[0], err = os.Open(os.DevNull)
	}
	if err != nil {
		return nil, err
	}
	if s.out, s.child[1], err = os.Pipe(); err != nil {
		return nil, errors.Join(err, s.close())
	}
	s.child[2] = s.child[1]
	return s, nil
}

// started closes the process's ends, which only the process may hold.
func (s *stdio) started() error {
	if s.pty != nil {
		return nil // the pseudo terminal keeps its own until hangUp
	}
	err := errors.Join(s.child[0].Close(), s.child[1].Close())
	s.child = [3]*os.File{}
	return err
}

// hangUp says that the process has ended: its pseudo terminal ends with it, and
// the output after what was written.
func (s *stdio) hangUp() error {
	if s.pty == nil {
		return nil
	}
	return s.pty.hangUp()
}

// close closes everything that is still open.
func (s *stdio) close() error {
	if s.pty != nil {
		return s.pty.close()
	}
	var err error
	for _, f := range []*os.File{s.child[0], s.child[1], s.in, s.out} {
		if f != nil {
			if e := f.Close(); !errors.Is(e, os.ErrClosed) {
				err = errors.Join(err, e)
			}
		}
	}
	return err
}
