package client

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/wavehub/wavehub/openapi/api"
)

// CreateDispatch gives the Task to an attached worker or a terminal that there is
// and waits until that has taken it up. A receipt whose State is starting is a
// result: the Dispatch is committed and waits.
func (c *Client) CreateDispatch(ctx context.Context, task string, in api.DispatchCreate, opts ...Option) (*api.StartReceipt, error) {
	return mutate[api.StartReceipt](ctx, c, waitOf(in.TimeoutMs, defaultStartWait), opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.CreateDispatch(ctx, task, &api.CreateDispatchParams{IdempotencyKey: key}, in)
	})
}

// RegisterWorker mints the identity of an attached worker. Its token is in the
// answer, and in a replay's until it is revoked.
func (c *Client) RegisterWorker(ctx context.Context, name string, opts ...Option) (*api.WorkerRegistered, error) {
	return mutate[api.WorkerRegistered](ctx, c, 0, opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.RegisterWorker(ctx, &api.RegisterWorkerParams{IdempotencyKey: key}, api.WorkerRegister{Name: name})
	})
}

// Workers lists identities, newest first, with their presence and what they have.
func (c *Client) Workers(ctx context.Context, page Page, opts ...Option) (*api.WorkerPage, error) {
	return read[api.WorkerPage](ctx, c, 0, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.ListWorkers(ctx, &api.ListWorkersParams{Cursor: page.Cursor, Limit: page.Limit})
	})
}

// DrainWorker refuses later Dispatches to the identity, by name or id.
func (c *Client) DrainWorker(ctx context.Context, worker string, opts ...Option) (*api.WorkerResult, error) {
	return mutate[api.WorkerResult](ctx, c, 0, opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.DrainWorker(ctx, worker, &api.DrainWorkerParams{IdempotencyKey: key}, api.Empty{})
	})
}

// RevokeWorker fences the identity, by name or id, at once.
func (c *Client) RevokeWorker(ctx context.Context, worker string, opts ...Option) (*api.WorkerResult, error) {
	return mutate[api.WorkerResult](ctx, c, 0, opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.RevokeWorker(ctx, worker, &api.RevokeWorkerParams{IdempotencyKey: key}, api.Empty{})
	})
}

// Attach makes the caller, an attached worker, the consumer of its mailbox and
// fences its former loop. Give the generation of the answer to the Client that
// checks.
func (c *Client) Attach(ctx context.Context, opts ...Option) (*api.WorkerResult, error) {
	return mutate[api.WorkerResult](ctx, c, 0, opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.AttachWorker(ctx, &api.AttachWorkerParams{IdempotencyKey: key}, api.Empty{})
	})
}

// Present says that the caller, an attached worker, lives, and what it works on;
// the last one counts. It is due every 30 s.
func (c *Client) Present(ctx context.Context, in api.Presence, opts ...Option) (*api.PresenceResult, error) {
	return read[api.PresenceResult](ctx, c, 0, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.PutPresence(ctx, in)
	})
}

// OwnDispatches lists what the caller, an attached worker, has, oldest first.
func (c *Client) OwnDispatches(ctx context.Context, page Page, opts ...Option) (*api.OwnDispatchPage, error) {
	return read[api.OwnDispatchPage](ctx, c, 0, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.ListOwnDispatches(ctx, &api.ListOwnDispatchesParams{Cursor: page.Cursor, Limit: page.Limit})
	})
}

// Session returns one session of this hub.
func (c *Client) Session(ctx context.Context, session string, opts ...Option) (*api.SessionOnly, error) {
	return read[api.SessionOnly](ctx, c, 0, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.GetSession(ctx, session)
	})
}

// SetBackendCtx replaces the session's backend_ctx, and nothing else; null clears.
func (c *Client) SetBackendCtx(ctx context.Context, session string, backendCtx json.RawMessage, opts ...Option) (*api.SessionResult, error) {
	return mutate[api.SessionResult](ctx, c, 0, opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.UpdateSession(ctx, session, &api.UpdateSessionParams{IdempotencyKey: key}, api.SessionUpdate{BackendCtx: backendCtx})
	})
}
