package peer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/openapi/peerapi"
)

// ErrAnswerLost is matched by errors of Start and Stop after which the peer
// may have accepted the request. The same request id asks again.
var ErrAnswerLost = errors.New("the peer's answer was lost")

// maxAnswer bounds an answer, in bytes.
const maxAnswer = 1 << 20

// OutputQuery asks for a page of a worker's output; zero values are the
// owner's defaults.
type OutputQuery struct {
	Source string
	Limit  int
	Cursor string
	WaitMS int64
}

// Client asks peers over their peer API. A refusal of the peer is a *hub.Error
// with its code; a peer that cannot be reached is remote_runtime_unavailable,
// one with another key peer_changed, with another store peer_store_changed:
// then nothing was sent. ctx bounds each call. It is safe for concurrent use.
type Client struct{ links *Links }

// NewClient makes a Client over links.
func NewClient(links *Links) *Client { return &Client{links: links} }

type send func(*peerapi.Client, context.Context) (*http.Response, error)

// Hello returns what the peer says of itself.
func (c *Client) Hello(ctx context.Context, peer hub.PeerID) (hub.Hello, error) {
	return read[hub.Hello](ctx, c, peer, func(a *peerapi.Client, ctx context.Context) (*http.Response, error) {
		return a.PeerHello(ctx)
	})
}

// Probe validates a start (hub.PeerStart as JSON) without any effect.
func (c *Client) Probe(ctx context.Context, peer hub.PeerID, body []byte) (hub.Probe, error) {
	return read[hub.Probe](ctx, c, peer, func(a *peerapi.Client, ctx context.Context) (*http.Response, error) {
		return a.PeerProbeWithBody(ctx, "application/json", bytes.NewReader(body))
	})
}

// Start starts a worker. body is sent as it is, so that a repetition under the
// same request id is the same request.
func (c *Client) Start(ctx context.Context, peer hub.PeerID, key hub.RequestID, body []byte) (hub.Receipt, error) {
	return call[hub.Receipt](ctx, c, peer, func(a *peerapi.Client, ctx context.Context) (*http.Response, error) {
		params := &peerapi.PeerStartParams{IdempotencyKey: string(key)}
		return a.PeerStartWithBody(ctx, params, "application/json", bytes.NewReader(body))
	})
}

// Show returns what the owner observes of a Dispatch.
func (c *Client) Show(ctx context.Context, peer hub.PeerID, d hub.DispatchID) (hub.PeerShow, error) {
	return read[hub.PeerShow](ctx, c, peer, func(a *peerapi.Client, ctx context.Context) (*http.Response, error) {
		return a.PeerShow(ctx, string(d))
	})
}

// Stop ends a Dispatch's process tree, or makes sure that it never starts.
func (c *Client) Stop(ctx context.Context, peer hub.PeerID, key hub.RequestID, d hub.DispatchID, in hub.PeerStop) (hub.StopEvidence, error) {
	return call[hub.StopEvidence](ctx, c, peer, func(a *peerapi.Client, ctx context.Context) (*http.Response, error) {
		return a.PeerStop(ctx, string(d), &peerapi.PeerStopParams{IdempotencyKey: string(key)}, in)
	})
}

// Output reads one page of a worker's output.
func (c *Client) Output(ctx context.Context, peer hub.PeerID, d hub.DispatchID, q OutputQuery) (hub.OutputPage, error) {
	return read[hub.OutputPage](ctx, c, peer, func(a *peerapi.Client, ctx context.Context) (*http.Response, error) {
		params := &peerapi.PeerOutputParams{Source: q.Source, Limit: q.Limit, Cursor: q.Cursor, WaitMs: q.WaitMS}
		return a.PeerOutput(ctx, string(d), params, dropUnset)
	})
}

// dropUnset leaves out what the caller did not ask for.
func dropUnset(_ context.Context, req *http.Request) error {
	q := req.URL.Query()
	for k := range q {
		if v := q.Get(k); v == "" || v == "0" && (k == "limit" || k == "wait_ms") {
			q.Del(k)
		}
	}
	req.URL.RawQuery = q.Encode()
	return nil
}

// read is a call without effects: a lost answer only means that the peer is
// not to be had.
func read[T any](ctx context.Context, c *Client, peer hub.PeerID, f send) (T, error) {
	out, err := call[T](ctx, c, peer, f)
	if l, ok := errors.AsType[*lostError](err); ok {
		err = unavailable(l.peer, l.err)
	}
	return out, err
}

func call[T any](ctx context.Context, c *Client, peer hub.PeerID, f send) (T, error) {
	var out T
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent.Store(true) }})
	api, err := peerapi.NewClient("https://"+ServerName, peerapi.WithHTTPClient(c.doer(peer)))
	if err != nil {
		return out, fmt.Errorf("making a peer client: %w", err)
	}
	resp, err := f(api, ctx)
	if err != nil {
		return out, c.unanswered(ctx, peer, err, sent.Load())
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		e, err := problemOf(resp)
		if err != nil {
			return out, c.lost(ctx, peer, err)
		}
		return out, e
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return out, c.lost(ctx, peer, err)
	case len(raw) > maxAnswer:
		return out, c.lost(ctx, peer, errors.New("it exceeds 1 MiB"))
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return out, c.lost(ctx, peer, err)
	}
	return out, nil
}

func (c *Client) doer(peer hub.PeerID) *http.Client {
	return &http.Client{
		Transport:     c.links.transport(peer),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// problemOf reads a problem document; an error means that the answer is none.
// The commands in it are left away: they are about the other hub, and whoever
// pastes one here would run what a peer has written.
func problemOf(resp *http.Response) (*hub.Error, error) {
	var p peerapi.PeerProblem
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxHello))
	if err == nil {
		err = json.Unmarshal(raw, &p)
	}
	code := hub.Code(p.Code)
	if err != nil || p.Code == "" {
		return nil, fmt.Errorf("status %d without a problem document", resp.StatusCode)
	}
	if !code.Known() {
		code = hub.CodeInternal
	}
	e := &hub.Error{Code: code, Message: p.Detail, Hint: p.Hint, Field: p.Field, AfterMS: p.AfterMs}
	if e.Message == "" {
		e.Message = p.Title
	}
	return e, nil
}
