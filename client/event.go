package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/wavehub/wavehub/internal/backoff"
	"github.com/wavehub/wavehub/openapi/api"
)

const (
	// eventSilence is how long a stream of events may be silent: three heartbeats.
	eventSilence = 45 * time.Second
	leastPause   = 200 * time.Millisecond
	mostPause    = 10 * time.Second
)

// lastEventID is a header that this client does not need: it gives the cursor.
const lastEventID = "Last-Event-ID"

// EventFilter selects events: exactly one of a wave, a Run and all of the hub's.
type EventFilter struct {
	Wave, Run string
	All       bool
}

// Event is one event of the hub's log. Raw is its JSON document, in one line, as
// the hub sent it.
type Event struct {
	api.WaveEvent
	Raw json.RawMessage
}

// EventOptions say where following begins and how it ends. All fields are optional.
type EventOptions struct {
	// After is the seq to begin behind; nil: with the oldest event that is kept.
	After *int64
	// Once ends behind the newest event.
	Once bool
	// Beat is called when all that was there has been handed over, and about every
	// 15 s: what is selected up to seq has been. Its error ends the following.
	Beat func(seq int64) error
	// Cut is called when the connection is lost, before it is made again.
	Cut func(cause error)
}

// Events follows the hub's log of events: take gets each selected event once, in
// the order of seq, whatever becomes of the connection in between. It is made again
// from the last seq, at growing distances of at most 10 s, as long as that may help;
// a stream that is silent for 45 s counts as cut. Events returns when ctx ends, with
// the error of take, with a refusal by the hub, and, Once, with nil at the end of the
// log. That the hub cannot be reached is an error only before the first connection.
//
// cursor_expired means that events behind After are gone: its hint names the cursor
// to go on from.
func (c *Client) Events(ctx context.Context, f EventFilter, o EventOptions, take func(Event) error) error {
	t := &tailing{c: c, filter: f, opts: o, take: take, pace: backoff.New(leastPause, mostPause), silence: c.eventSilence}
	if o.After != nil {
		t.seq, t.known = *o.After, true
	}
	for {
		done, err := t.stream(ctx)
		switch {
		case done || t.stop != nil:
			return t.stop
		case ctx.Err() != nil:
			return cancelled(ctx)
		case !t.begun || !mayResume(err):
			return err
		}
		if o.Cut != nil {
			o.Cut(err)
		}
		t.pace.Rest(ctx)
	}
}

// Transient reports whether the same call may do better a little later, without
// anybody doing something about it: the hub is away, stops, fails or is busy.
func Transient(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && (e.Code == CodeHubUnreachable || e.Status >= 500 || e.Status == http.StatusTooManyRequests)
}

// mayResume reports whether the next connection may do better than one that ended
// with err: a stream that was cut has no code.
func mayResume(err error) bool {
	_, coded := errors.AsType[*Error](err)
	return !coded || Transient(err)
}

// tailing is one following of the log. Events up to seq, if known, were handed over.
type tailing struct {
	c      *Client
	filter EventFilter
	opts   EventOptions
	take   func(Event) error
	pace   *backoff.Pace
	// silence is how long a stream may be silent.
	silence time.Duration

	seq   int64
	known bool
	begun bool  // a stream was opened
	whole bool  // the last word of this stream is that all was handed over
	stop  error // of take or Beat, or for what the hub would send again
}

// stream follows over one connection; done says that the end was reached.
func (t *tailing) stream(ctx context.Context) (done bool, err error) {
	t.whole = false
	p := newPatience(ctx, t.silence)
	defer p.stop()
	resp, err := t.c.api.StreamEvents(p.ctx, t.params())
	cl := &call{} // a read: what is lost is lost
	if err != nil {
		return false, cl.lost(ctx, p.cause(err))
	}
	if resp.StatusCode != http.StatusOK || !isEventStream(resp.Header.Get("Content-Type")) {
		raw, err := readAnswer(resp, p)
		if err != nil {
			return false, cl.lost(ctx, p.cause(err))
		}
		if e := failure(resp, raw); e != nil {
			return false, e
		}
		e := Errorf(CodeInternal, "the hub answers with %q instead of events", resp.Header.Get("Content-Type"))
		e.Status = resp.StatusCode
		return false, e
	}
	t.begun = true
	err = t.read(newSSEReader(heard{resp.Body, p}))
	_ = resp.Body.Close() // whatever it says: the stream is over
	if errors.Is(err, io.EOF) && t.opts.Once && t.whole {
		return true, nil
	}
	return false, p.cause(err)
}

func (t *tailing) params() *api.StreamEventsParams {
	q := &api.StreamEventsParams{Wave: t.filter.Wave, Run: t.filter.Run, All: t.filter.All}
	if t.known {
		q.Cursor = &t.seq
	}
	if t.opts.Once {
		q.Follow = new(false)
	}
	return q
}

// read hands events over until the stream ends.
func (t *tailing) read(r *sseReader) error {
	for {
		e, err := r.next()
		if errors.Is(err, errTooLongEvent) {
			t.stop = err
		}
		if err != nil {
			return err
		}
		if err := t.event(e); err != nil {
			return err
		}
	}
}

func (t *tailing) event(e sseEvent) error {
	if t.whole = e.name == "heartbeat"; t.whole {
		return t.beat(e.data)
	}
	var out Event
	if err := json.Unmarshal(e.data, &out.WaveEvent); err != nil {
		t.stop = fmt.Errorf("the hub sent an event that is none: %w", err)
		return t.stop
	}
	if t.known && out.Seq <= t.seq {
		return nil // it came before
	}
	out.Raw = e.data
	if t.stop = t.take(out); t.stop != nil {
		return t.stop
	}
	t.advance(out.Seq)
	return nil
}

func (t *tailing) beat(data []byte) error {
	var beat struct {
		Seq int64 `json:"seq"`
	}
	if err := json.Unmarshal(data, &beat); err != nil {
		t.stop = fmt.Errorf("the hub sent a heartbeat that is none: %w", err)
		return t.stop
	}
	t.advance(beat.Seq)
	if t.opts.Beat != nil {
		t.stop = t.opts.Beat(t.seq)
	}
	return t.stop
}

// advance notes that the stream works, and how far it has come.
func (t *tailing) advance(seq int64) {
	t.pace.Reset()
	t.seq, t.known = max(t.seq, seq), true
}
