package mail

import (
	"context"
	"sync"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

// Listen tells the caller of mail in a mailbox that it may read, without any
// content, until ctx ends or the hub drains: tell gets true for mail, at once if
// some waits, and false as a sign of life after each interval without any.
// Wake-ups that nobody has taken yet are one. It consumes nothing and is nobody's
// waiter.
func (s *Service) Listen(ctx context.Context, p hub.Principal, box hub.Box, interval time.Duration, tell func(mail bool) error) error {
	woken, cancel := s.Bus.Subscribe(string(hub.TopicMailbox), string(box))
	defer cancel()
	unread, err := s.unread(ctx, p, box)
	if err != nil {
		return err
	}
	defer s.listeners.enter(box)()
	if err := tell(unread); err != nil {
		return err
	}
	beat := time.NewTicker(interval)
	defer beat.Stop()
	for {
		mail := true
		select {
		case <-woken:
			if _, err := s.unread(ctx, p, box); err != nil {
				return err
			}
		case <-beat.C:
			mail = false
		case <-ctx.Done():
			return ctx.Err()
		case <-s.Draining:
			return hub.Errorf(hub.CodeHubDraining, "the hub is stopping; listen again when it is back")
		}
		if err := tell(mail); err != nil {
			return err
		}
	}
}

// unread reports whether mail waits, to a caller who may know.
func (s *Service) unread(ctx context.Context, p hub.Principal, box hub.Box) (unread bool, err error) {
	err = s.Store.View(ctx, func(rx store.Rx) error {
		if err := receipt.Authorize(rx, p); err != nil {
			return err
		}
		if _, err := s.Access.Read(rx, p, box); err != nil {
			return err
		}
		mb, err := rx.Mailbox(box)
		unread = mb.Live > mb.Done
		return err
	})
	return unread, err
}

// Listening reports whether somebody waits on an attached worker's mailbox, or did
// a moment ago: between two waits a worker is not gone.
func (s *Service) Listening(box hub.Box) bool { return s.listeners.any(box, time.Now()) }

const betweenWaits = 2 * time.Second

// listeners counts who waits on the mailboxes of attached workers. Safe for
// concurrent use; the zero value is ready.
type listeners struct {
	mu   sync.Mutex
	here map[hub.Box]*attention // guarded by mu
}

type attention struct {
	now  int
	left time.Time // when the last one left
}

func (l *listeners) enter(box hub.Box) (leave func()) {
	if _, ok := box.Worker(); !ok {
		return func() {}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.here == nil {
		l.here = map[hub.Box]*attention{}
	}
	a, ok := l.here[box]
	if !ok {
		a = &attention{}
		l.here[box] = a
	}
	a.now++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		a.now--
		a.left = time.Now()
	}
}

func (l *listeners) any(box hub.Box, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, ok := l.here[box]
	return ok && (a.now > 0 || now.Sub(a.left) < betweenWaits)
}
