package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// proxyPath is where a hub serves operations of its API to peers.
const proxyPath = "/peer/v1/proxy"

// Limits of a forwarded request. A peer that makes its caller wait sends a space
// every 10 s; one that says nothing for forwardSilence is gone.
const (
	forwardSilence = 30 * time.Second
	forwardTime    = 15 * time.Minute
)

// Forwarded is a request of the API for a peer. Path is escaped; Body is JSON or
// empty; Key is the request id of a mutation, "" for a read.
type Forwarded struct {
	Method, Path, Query string
	Key                 string
	Body                []byte
}

// Returned is a peer's answer, a JSON document. The commands in it are left away,
// as in problemOf.
type Returned struct {
	Status int
	Body   []byte
}

// Forward has a peer carry out a request of its API as from this hub. It is asked
// first whether it does that: capability_unsupported means that nothing was sent.
// A mutation whose answer is lost is outcome_unknown: repeated under its key it
// has at most one effect.
func (c *Client) Forward(ctx context.Context, peer hub.PeerID, q Forwarded) (Returned, error) {
	ctx, cancel := context.WithTimeout(ctx, forwardTime)
	defer cancel()
	h, err := c.Hello(ctx, peer)
	if err != nil {
		return Returned{}, err
	}
	if !h.Has(hub.FeatureProxy) {
		return Returned{}, hub.Errorf(hub.CodeCapabilityUnsupported, "the peer does not offer %s; it takes no commands from here", hub.FeatureProxy)
	}
	out, err := c.forward(ctx, peer, q)
	l, wasLost := errors.AsType[*lostError](err)
	switch {
	case wasLost && q.Key == "" && errors.Is(ctx.Err(), context.Canceled):
		return out, context.Cause(ctx) // the caller's own reason
	case wasLost && q.Key == "":
		return out, unavailable(l.peer, l.err)
	case wasLost:
		e := hub.Errorf(hub.CodeOutcomeUnknown, "%v", l)
		e.Hint = "repeat the same call under request id " + q.Key + ": it has at most one effect"
		return out, e
	}
	return out, err
}

func (c *Client) forward(ctx context.Context, peer hub.PeerID, q Forwarded) (Returned, error) {
	var sent atomic.Bool
	quiet := newSilence(ctx, forwardSilence)
	defer quiet.end()
	ctx = httptrace.WithClientTrace(quiet.ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		sent.Store(true)
		quiet.heard() // connecting has its own limits
	}})
	req, err := q.request(ctx)
	if err != nil {
		return Returned{}, err
	}
	resp, err := c.doer(peer).Do(req)
	if err != nil {
		return Returned{}, c.unanswered(ctx, peer, quiet.cause(err), sent.Load())
	}
	defer resp.Body.Close()
	return q.read(resp, quiet, c.nameOf(ctx, peer))
}

// request is the request as the peer gets it: these headers and no others.
func (q Forwarded) request(ctx context.Context) (*http.Request, error) {
	target := "https://" + ServerName + proxyPath + q.Path
	if q.Query != "" {
		target += "?" + q.Query
	}
	req, err := http.NewRequestWithContext(ctx, q.Method, target, bytes.NewReader(q.Body))
	if err != nil {
		return nil, fmt.Errorf("making a request for a peer: %w", err)
	}
	if len(q.Body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	if q.Key != "" {
		req.Header.Set("Idempotency-Key", q.Key)
	}
	return req, nil
}

// read reads the answer of the peer called who, or the problem that it is: also
// one under the status of an open outcome.
func (q Forwarded) read(resp *http.Response, quiet *silence, who string) (Returned, error) {
	resp.Body = io.NopCloser(heard{resp.Body, quiet})
	media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || media != "application/json" && media != "application/problem+json" || resp.StatusCode < 200 {
		return Returned{}, lostOf(who, fmt.Errorf("status %d with what is no JSON", resp.StatusCode))
	}
	if resp.StatusCode >= 300 || media != "application/json" {
		e, err := problemOf(resp)
		if err != nil {
			return Returned{}, lostOf(who, quiet.cause(err))
		}
		return Returned{}, e
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return Returned{}, lostOf(who, quiet.cause(err))
	case len(raw) > maxAnswer && q.Key == "":
		e := hub.Errorf(hub.CodeTooLarge, "the peer's answer has more than 1 MiB, which is the limit through another hub")
		e.Hint = "ask for less at once, by a limit or a cursor"
		return Returned{}, e
	case len(raw) > maxAnswer:
		return Returned{}, lostOf(who, errors.New("it exceeds 1 MiB"))
	}
	if raw, err = withoutCommands(raw); err != nil {
		return Returned{}, lostOf(who, err)
	}
	return Returned{Status: resp.StatusCode, Body: raw}, nil
}

// silence ends a call when nothing was heard for too long.
type silence struct {
	ctx   context.Context
	stop  context.CancelCauseFunc
	timer *time.Timer
	limit time.Duration
}

func newSilence(parent context.Context, limit time.Duration) *silence {
	ctx, stop := context.WithCancelCause(parent)
	gone := fmt.Errorf("the peer said nothing for %s", limit)
	return &silence{ctx: ctx, stop: stop, limit: limit, timer: time.AfterFunc(limit, func() { stop(gone) })}
}

func (s *silence) heard() { s.timer.Reset(s.limit) }

func (s *silence) end() {
	s.timer.Stop()
	s.stop(nil)
}

// cause replaces a bare cancellation by the silence that led to it.
func (s *silence) cause(err error) error {
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	return err
}

// heard is a reader that breaks the silence.
type heard struct {
	io.Reader
	quiet *silence
}

// Read reads, and notes that something came.
func (h heard) Read(b []byte) (int, error) {
	n, err := h.Reader.Read(b)
	if n > 0 {
		h.quiet.heard()
	}
	return n, err
}
