package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/id"
)

// The pauses between tries while the hub cannot be reached, and how long a report
// is tried for once the loop drains: the note keeps it for the next start.
const (
	firstPause = 500 * time.Millisecond
	lastPause  = 30 * time.Second
	drainTries = 10 * time.Second
)

// errHandedBack ends a try that the next start takes up.
var errHandedBack = errors.New("left to the next start")

// stubborn does what needs the hub until it succeeds or is refused for good: a hub
// that is down is waited for, for ever while ctx lasts.
func (l *attachLoop) stubborn(ctx context.Context, do func() error) error {
	return l.persist(ctx, nil, do)
}

// persist is stubborn until giveUp is closed.
func (l *attachLoop) persist(ctx context.Context, giveUp <-chan struct{}, do func() error) error {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := do()
		if err == nil || !passing(err) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		l.app.say("waiting for the hub: %v", err)
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-giveUp:
			t.Stop()
			return errors.Join(errHandedBack, err)
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		}
	}
}

// passing reports whether an error may be gone at the next try.
func passing(err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	if !ok {
		return false
	}
	code := e.ExitCode()
	return code == 6 || code == 10 || e.Code == client.CodeWaiterExists || e.Code == client.CodeInternal
}

// sameRequest repeats a mutation under the id that it was sent with.
func sameRequest(opts []client.Option, err error) []client.Option {
	if e, ok := errors.AsType[*client.Error](err); ok && e.RequestID != "" && len(opts) == 0 {
		return []client.Option{client.WithRequestID(e.RequestID)}
	}
	return opts
}

// soon is closed a while after the loop has begun to drain.
func (l *attachLoop) soon() (giveUp <-chan struct{}, done func()) {
	ch, stop := make(chan struct{}), make(chan struct{})
	go func() {
		select {
		case <-l.drained.ch:
		case <-stop:
			return
		}
		t := time.NewTimer(drainTries)
		defer t.Stop()
		select {
		case <-t.C:
			close(ch)
		case <-stop:
		}
	}()
	return ch, func() { close(stop) }
}

// conclude says what is to be reported of a turn that has ended: nothing, if the
// turn reported itself or nobody asks any more.
func (l *attachLoop) conclude(ctx context.Context, t *turn, end ending) error {
	giveUp, done := l.soon()
	defer done()
	var state string
	err := l.persist(ctx, giveUp, func() (err error) {
		state, err = l.capability(ctx, t.id)
		return err
	})
	if err != nil {
		return err
	}
	switch {
	case t.isClosed() || state == "" || state == "reported":
		return l.notes.drop(t.id)
	case t.stopped() || state == "fenced":
		t.note = t.note.ends("cancelled", "the turn was ended, as it was asked for")
	case end.err != nil:
		t.note = t.note.ends("failed", end.err.Error()+"\n"+end.tail)
	case strings.TrimSpace(end.tail) == "":
		t.note = t.note.ends("succeeded", "the turn ended without output (exit code 0)")
	default:
		t.note = t.note.ends("succeeded", end.tail)
	}
	if err := l.notes.put(t.note); err != nil {
		return err
	}
	return l.report(ctx, giveUp, t.note)
}

// report sends what the note says, at most once, and forgets the note.
func (l *attachLoop) report(ctx context.Context, giveUp <-chan struct{}, n note) error {
	err := l.persist(ctx, giveUp, func() error {
		_, err := l.hub.Send(ctx, client.MessageSend{
			Type: client.MessageSendTypeWorkerDone, Subject: n.Outcome, Body: n.Body, Outcome: n.Outcome,
			TaskId: string(n.Start.Task), DispatchId: n.id(),
		}, client.WithRequestID(n.Request))
		return err
	})
	if e, ok := errors.AsType[*client.Error](err); ok && !fatal(err) {
		l.app.note("wavehub: the report on %s was refused: %v", n.id(), e)
		err = nil // whoever refused it has the last word
	}
	if err != nil {
		return err
	}
	return l.notes.drop(n.id())
}

// fatal reports whether an error ends the whole loop: its credential or its
// mailbox is gone.
func fatal(err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	return ok && slices.Contains([]client.Code{
		client.CodeInvalidToken, client.CodeConsumerFenced, client.CodeHubIdentityMismatch, client.CodeWorkerNotFound,
	}, e.Code)
}

// ends makes a note say that its Dispatch's report is due.
func (n note) ends(outcome, body string) note {
	n.State, n.Outcome, n.Body, n.Request = over, outcome, body, id.New(requestPrefix)
	return n
}

// capability is what the worker still may do for a Dispatch of its own, "" for one
// that it does not have any more.
func (l *attachLoop) capability(ctx context.Context, id string) (state string, err error) {
	err = l.eachOwn(ctx, func(d client.OwnDispatch) {
		if d.DispatchId == id {
			state = string(d.Capability)
		}
	})
	return state, err
}

// eachOwn calls fn for what the worker has.
func (l *attachLoop) eachOwn(ctx context.Context, fn func(client.OwnDispatch)) error {
	for page := (client.Page{}); ; {
		out, err := l.hub.OwnDispatches(ctx, page)
		if err != nil {
			return err
		}
		for _, d := range out.Dispatches {
			fn(d)
		}
		if out.NextCursor == nil {
			return nil
		}
		page.Cursor = *out.NextCursor
	}
}
