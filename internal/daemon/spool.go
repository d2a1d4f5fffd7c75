package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/spool"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/server"
)

const (
	// unspoolEvery is how often the spools that there are get drained.
	unspoolEvery = 5 * time.Second
	// unspoolLock bounds the wait for a spool that another process has.
	unspoolLock = 10 * time.Second
	// unspoolAtOnce bounds how many spools are drained at once.
	unspoolAtOnce = 16
)

// spools takes what workers wrote down while no hub answered. It is safe for
// concurrent use: the lock of each spool keeps its drains apart.
type spools struct {
	root  string // of the terminals' private folders
	store store.Reader
	// token is the capability of a Dispatch; deliver the ordinary way in; tell
	// the notice about a line that was refused there.
	token   func(home hub.PeerID, id hub.DispatchID) (token, sum string)
	deliver func(context.Context, server.Spooled) error
	tell    func(ctx context.Context, home hub.PeerID, id hub.DispatchID, n hub.MessageID, why hub.SpoolRefusal) error
	log     *slog.Logger

	mu   sync.Mutex
	told map[hub.DispatchID]string // guarded by mu; the last failure that was logged
}

func (x *hubParts) newSpools() *spools {
	return &spools{
		root: x.home.private(), store: x.store, log: x.log, token: authority{key: x.home.tokenKey}.Capability,
		deliver: func(ctx context.Context, in server.Spooled) error { return x.server.Deliver(ctx, in) },
		tell:    x.dispatch.SpoolRejected, told: map[hub.DispatchID]string{},
	}
}

// run drains the spools that there are until ctx ends.
func (s *spools) run(ctx context.Context) error {
	tick := time.NewTicker(unspoolEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			s.sweep(ctx)
		}
	}
}

// sweep drains each spool that there is. One that cannot be drained now is tried
// again, and holds up no other.
func (s *spools) sweep(ctx context.Context) {
	ids, err := spool.Waiting(s.root)
	if err != nil {
		s.log.Error("looking for spools", "error", err)
	}
	turns := make(chan struct{}, unspoolAtOnce)
	var draining sync.WaitGroup
	for _, id := range ids {
		turns <- struct{}{}
		draining.Go(func() {
			defer func() { <-turns }()
			s.note(ctx, id, s.drain(ctx, id))
		})
	}
	draining.Wait()
}

// note logs a failure once for as long as it stays the same.
func (s *spools) note(ctx context.Context, id hub.DispatchID, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil || ctx.Err() != nil {
		delete(s.told, id)
		return
	}
	if text := err.Error(); s.told[id] != text {
		s.told[id] = text
		s.log.Warn("a spool cannot be drained yet", "dispatch_id", id, "error", err)
	}
}

// drain takes the spool of a Dispatch, if it has one: each line in its order, by
// the ordinary way in, or refused for good. Its error leaves the line that it
// came of, and all behind it, for the next time.
func (s *spools) drain(ctx context.Context, id hub.DispatchID) error {
	waits, err := spool.Waits(s.root, id)
	if err != nil || !waits {
		return err
	}
	a, known, err := s.attachment(ctx, id)
	if err != nil {
		return err
	}
	if !known {
		return fmt.Errorf("%s has a spool and is not known here", id)
	}
	limited, cancel := context.WithTimeout(ctx, unspoolLock)
	defer cancel()
	place := spool.Place{Root: s.root, Terminal: a.Terminal, Dispatch: id}
	return spool.Drain(limited, place, func(e spool.Entry) error { return s.take(ctx, a, place, e) })
}

// attachment finds a Dispatch of which only the id is known: a spool's name does
// not tell its home.
func (s *spools) attachment(ctx context.Context, id hub.DispatchID) (a hub.Attachment, known bool, err error) {
	err = s.store.View(ctx, func(rx store.Rx) error {
		peers, err := rx.PeerList()
		if err != nil {
			return err
		}
		for _, p := range append([]hub.Peer{{}}, peers...) {
			if a, known, err = rx.Attachment(p.ID, id); err != nil || known {
				return err
			}
		}
		return nil
	})
	return a, known, err
}

// take accepts one line, or has its refusal told.
func (s *spools) take(ctx context.Context, a hub.Attachment, place spool.Place, e spool.Entry) error {
	err := s.accept(ctx, a, e)
	if err == nil || !refused(err) {
		return err
	}
	r, kept := spool.Reject(place, e)
	if kept != nil {
		return kept
	}
	why := hub.SpoolRefusal{Code: hub.CodeOf(err), Detail: err.Error(), Terminal: a.Terminal, File: r.File}
	if hub.ValidID(hub.PrefixRequest, string(e.Line.Request)) {
		why.Request = e.Line.Request
	}
	s.log.Warn("a spooled line was refused", "dispatch_id", a.Dispatch, "code", why.Code, "kept", r.File)
	return s.tell(ctx, a.Home, a.Dispatch, r.Notice, why)
}

func (s *spools) accept(ctx context.Context, a hub.Attachment, e spool.Entry) error {
	token, _ := s.token(a.Home, a.Dispatch)
	switch {
	case e.Err != nil && len(e.Raw) == 0: // whose text has this hub's paths
		return hub.Errorf(hub.CodeInvalidJson, "the spool was too large or not private to its hub, and has been set aside whole")
	case e.Err != nil:
		return &hub.Error{Code: hub.CodeInvalidJson, Message: "the spooled line cannot be read", Err: e.Err}
	case !e.ProvenBy(token):
		return hub.Errorf(hub.CodeInvalidToken, "the spooled line is not proven by the Dispatch's capability")
	}
	return s.deliver(ctx, server.Spooled{Token: token, Key: e.Line.Request, Operation: e.Line.Operation, Body: e.Line.Body})
}

// refused reports whether an error is this hub's last word on a line: the same
// line would be refused again. A full queue empties, the quota of a Dispatch that
// has ended does not.
func refused(err error) bool {
	e, ok := errors.AsType[*hub.Error](err)
	if !ok {
		return false
	}
	return e.Code.Info().Retry == retryNever || e.Code == hub.CodeRelayQuotaExceeded && e.AfterMS == 0
}

// retryNever is the catalogue's advice that nothing but another request helps.
const retryNever = "never"
