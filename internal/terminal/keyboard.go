package terminal

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

const (
	maxAnswers  = 64               // that wait to be written
	answerLimit = time.Second      // for a process that does not read its answer
	maxLimit    = 30 * time.Second // of one input
)

// keyboard writes to a pseudo terminal: what hubs send, each whole and one after
// the other, and the answers of the terminal between them. Nothing waits for
// ever for a process that does not read.
type keyboard struct {
	pty     *pseudo
	turn    chan struct{} // has one value: whoever takes it may write
	answers chan []byte
	closing chan struct{}
	group   sync.WaitGroup
	written atomic.Int64 // of the hubs' input
}

func newKeyboard(p *pseudo) *keyboard {
	k := &keyboard{
		pty: p, turn: make(chan struct{}, 1),
		answers: make(chan []byte, maxAnswers), closing: make(chan struct{}),
	}
	k.turn <- struct{}{}
	k.group.Go(k.answerAll)
	return k
}

// close ends what is being written and what waits.
func (k *keyboard) close() {
	close(k.closing)
	k.pty.interrupt()
}

// input writes data before limit has passed and returns how much was written.
// The error is a *hub.Error.
func (k *keyboard) input(ctx context.Context, data []byte, limit time.Duration) (int, error) {
	deadline := time.Now().Add(min(max(limit, 0), maxLimit))
	if err := k.take(ctx, deadline); err != nil {
		return 0, k.failure(err, 0, len(data))
	}
	defer k.give()
	n, err := k.pty.write(data, deadline)
	k.written.Add(int64(n))
	if err != nil {
		return n, k.failure(err, n, len(data))
	}
	return n, nil
}

// failure says how much of size bytes the process got.
func (k *keyboard) failure(cause error, n, size int) *hub.Error {
	if errors.Is(cause, os.ErrDeadlineExceeded) && !k.isClosing() {
		return hub.Errorf(hub.CodeTerminalBusy, "the process does not read its input: %d of %d bytes were written", n, size)
	}
	e := hub.Errorf(hub.CodeDispatchInactive, "the terminal has ended: %d of %d bytes were written", n, size)
	e.Err = cause
	return e
}

// take waits for the turn.
func (k *keyboard) take(ctx context.Context, deadline time.Time) error {
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	if k.isClosing() {
		return os.ErrClosed
	}
	select {
	case <-k.turn:
		return nil
	case <-k.closing:
		return os.ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return os.ErrDeadlineExceeded
	}
}

func (k *keyboard) give() { k.turn <- struct{}{} }

func (k *keyboard) isClosing() bool {
	select {
	case <-k.closing:
		return true
	default:
		return false
	}
}

// answer writes the terminal's answer as soon as nothing else is being written.
// A process that asks and does not read gets no more.
func (k *keyboard) answer(p []byte) {
	if len(p) == 0 {
		return
	}
	select {
	case k.answers <- p:
	default:
	}
}

// answerAll writes answers until the terminal closes.
func (k *keyboard) answerAll() {
	for {
		select {
		case <-k.closing:
			return
		case p := <-k.answers:
			k.writeAnswer(p)
		}
	}
}

// writeAnswer writes p, or gives it up when the process does not read.
func (k *keyboard) writeAnswer(p []byte) {
	if k.take(context.Background(), time.Now().Add(maxLimit)) != nil {
		return
	}
	defer k.give()
	_, _ = k.pty.write(p, time.Now().Add(answerLimit)) // who does not read gets no answer
}
