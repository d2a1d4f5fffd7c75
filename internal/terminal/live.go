package terminal

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// live is what a supervisor does with its pseudo terminal and knows of it.
type live struct {
	dir  string
	pty  *pseudo
	keys *keyboard

	sizing  sync.Mutex // orders resizes: the output does not wait for the disk
	mu      sync.Mutex // guards the rest
	scanner scanner
	size    hub.TerminalSize
}

// scan takes note of output and returns what the terminal answers to it.
func (l *live) scan(p []byte) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.scanner.scan(p)
}

// describe fills in what only a pseudo terminal has.
func (l *live) describe(ev *Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text, size := l.scanner.term, l.size
	ev.Size, ev.Title, ev.Agent, ev.BracketedPaste = &size, text.title, text.agent, text.paste
	ev.Input = l.keys.written.Load()
}

// resize makes the size durable and sets it, in this order: a size that the
// process has seen is never forgotten.
func (l *live) resize(size hub.TerminalSize) error {
	l.sizing.Lock()
	defer l.sizing.Unlock()
	if err := store(l.dir, sizeFile, size); err != nil {
		return err
	}
	if err := l.pty.resize(size); err != nil {
		return errors.Join(err, store(l.dir, sizeFile, l.size)) // only resize changes it
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.size = size
	return nil
}

var errPipes = hub.Errorf(hub.CodeInvalidArgument, "the terminal has pipes, not a pseudo terminal")

// input writes to the process and answers when that has come to an end; other
// clients are served meanwhile. An error is one of the connection.
func (s *server) input(ctx context.Context, c *peer, cmd Command) error {
	if s.live == nil {
		return c.fail(errPipes)
	}
	if len(cmd.Data) > maxInput {
		return c.fail(hub.Invalid("data", "%d bytes are more than the %d of one input", len(cmd.Data), maxInput))
	}
	if !s.begin() {
		return c.fail(hub.Errorf(hub.CodeDispatchInactive, "the process has ended: nothing was written"))
	}
	defer s.busy.Done()
	if _, err := s.live.keys.input(ctx, cmd.Data, time.Duration(cmd.LimitMS)*time.Millisecond); err != nil {
		return c.fail(err)
	}
	return c.control(Event{Op: opInput})
}

// begin keeps finish waiting until busy is done; false when it is over.
func (s *server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.busy.Add(1)
	}
	return !s.over
}

func (s *server) resize(c *peer, size *hub.TerminalSize) error {
	if s.live == nil {
		return c.fail(errPipes)
	}
	if size == nil {
		return c.fail(hub.Invalid("size", "it is missing"))
	}
	err := checkSize(*size)
	if err == nil {
		err = s.live.resize(*size)
	}
	if err != nil {
		return c.fail(err)
	}
	return c.control(Event{Op: opResize})
}

// fail answers a command with an error.
func (c *peer) fail(err error) error {
	return c.control(Event{Op: evError, Error: err.Error(), Code: hub.CodeOf(err)})
}

// watch answers at once when more than after bytes were written; else wake
// will. The number of watches is raised before the output is looked at, so that
// either this or wake sees the other.
func (s *server) watch(c *peer, after int64) error {
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		return nil // the end is told
	}
	if _, again := s.watched[c]; !again {
		s.watches.Add(1)
	}
	s.watched[c] = after
	total := s.total.Load()
	if total > after {
		s.unwatch(c)
	}
	s.mu.Unlock()
	if total > after {
		return c.control(Event{Op: opWatch, Total: total})
	}
	return nil
}

// unwatch forgets what c waits for, with mu held.
func (s *server) unwatch(c *peer) {
	if _, ok := s.watched[c]; ok {
		delete(s.watched, c)
		s.watches.Add(-1)
	}
}

// wake tells those who wait for output that total bytes were written. It waits
// for nobody.
func (s *server) wake(total int64) {
	s.total.Store(total)
	if s.watches.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for c, after := range s.watched {
		if total > after {
			s.unwatch(c)
			s.group.Go(func() { _ = c.control(Event{Op: opWatch, Total: total}) }) // a client that left is not told
		}
	}
}
