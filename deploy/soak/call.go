//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/id"
)

// hand is one caller: where its hub is, and its present client. It is safe for
// concurrent use.
type hand struct {
	config func() (client.Config, error)

	mu  sync.Mutex
	rng *rand.Rand     // guarded by mu
	c   *client.Client // guarded by mu; nil: not connected
}

func (h *hand) client() (*client.Client, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.c != nil {
		return h.c, nil
	}
	cfg, err := h.config()
	if err == nil {
		h.c, err = client.New(cfg)
	}
	return h.c, err
}

// forget drops the client; the next call makes another.
func (h *hand) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.c != nil {
		h.c.Close()
		h.c = nil
	}
}

// Some tries are left by their caller before the answer can be there.
const (
	oneLeavesIn = 20
	leavesIn    = 20 * time.Millisecond
)

// try bounds one try of a call.
func (h *hand) try(ctx context.Context, b *book) (context.Context, context.CancelFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.rng.IntN(oneLeavesIn) > 0 {
		return context.WithCancel(ctx)
	}
	b.left()
	return context.WithTimeout(ctx, upTo(h.rng, leavesIn))
}

// The pauses between two tries of a call, and how long one is tried.
const (
	firstPause = 20 * time.Millisecond
	lastPause  = 500 * time.Millisecond
	patience   = 2 * time.Minute
)

// passing are the codes after which the same request is made again.
var passing = []client.Code{
	client.CodeOutcomeUnknown, client.CodeHubUnreachable, client.CodeHubDraining, client.CodeRateLimited, client.CodeWaiterExists,
}

// request is one call under one request id.
type request struct {
	key, what string
	cut       bool // its outcome was unknown for a while
}

func newRequest(what string) *request { return &request{key: id.New("req_"), what: what} }

// insist makes a call until it has an answer or is refused, always under the
// same request id. A call tells by the error outcome_unknown that its answer
// was none.
func insist[T any](ctx context.Context, b *book, h *hand, r *request, call func(context.Context, *client.Client, client.Option) (*T, error)) (*T, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for wait := firstPause; ; wait = min(2*wait, lastPause) {
		c, err := h.client()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.what, err)
		}
		try, leave := h.try(ctx, b)
		out, err := call(try, c, client.WithRequestID(r.key))
		leave()
		code, after := codeOf(err)
		if err == nil || !slices.Contains(passing, code) && ctx.Err() == nil {
			b.known(r)
			return out, err
		}
		if code == client.CodeOutcomeUnknown {
			r.cut = true
			b.unknown(r)
		}
		if code == client.CodeHubUnreachable {
			h.forget()
		}
		if !pause(ctx, max(wait, after), nil) {
			return nil, fmt.Errorf("%s (%s) had no answer within %s: %w", r.what, r.key, patience, err)
		}
	}
}

// codeOf is the code of an error, and how long the hub asks to wait.
func codeOf(err error) (client.Code, time.Duration) {
	if e, ok := errors.AsType[*client.Error](err); ok {
		return e.Code, time.Duration(e.AfterMS) * time.Millisecond
	}
	return "", 0
}

func isCode(err error, code client.Code) bool {
	got, _ := codeOf(err)
	return got == code
}
