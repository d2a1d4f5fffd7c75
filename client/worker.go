package client

import (
	"context"
	"net/http"
	"time"

	"github.com/wavehub/wavehub/openapi/api"
)

// The waits of a hub whose caller is silent.
const (
	defaultStartWait = time.Minute
	defaultStopWait  = 30 * time.Second
)

// StartWorker starts a worker for the Task and waits for the outcome of the
// start. A receipt whose State is failed or outcome_unknown is a result, not
// an error.
func (c *Client) StartWorker(ctx context.Context, task string, in api.WorkerStart, opts ...Option) (*api.StartReceipt, error) {
	return mutate[api.StartReceipt](ctx, c, waitOf(in.TimeoutMs, defaultStartWait), opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.StartWorker(ctx, task, &api.StartWorkerParams{IdempotencyKey: key}, in)
	})
}

// StartTask creates a Task in the Run and starts a worker for it under one
// receipt, which names the Task; a refused start leaves no Task.
func (c *Client) StartTask(ctx context.Context, run string, in api.TaskStart, opts ...Option) (*api.StartReceipt, error) {
	return mutate[api.StartReceipt](ctx, c, waitOf(in.Start.TimeoutMs, defaultStartWait), opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.StartRunWorker(ctx, run, &api.StartRunWorkerParams{IdempotencyKey: key}, in)
	})
}

// StopWorker fences the Dispatch and ends its process tree. State stop_unknown
// is a result, not an error.
func (c *Client) StopWorker(ctx context.Context, dispatch string, in api.WorkerStop, opts ...Option) (*api.StopResult, error) {
	return mutate[api.StopResult](ctx, c, waitOf(in.TimeoutMs, defaultStopWait), opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.StopWorker(ctx, dispatch, &api.StopWorkerParams{IdempotencyKey: key}, in)
	})
}

// AbandonWorker gives the Dispatch up without a signal to any process.
func (c *Client) AbandonWorker(ctx context.Context, dispatch string, opts ...Option) (*api.StopResult, error) {
	return mutate[api.StopResult](ctx, c, 0, opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.AbandonWorker(ctx, dispatch, &api.AbandonWorkerParams{IdempotencyKey: key}, api.Empty{})
	})
}

// DispatchFilter selects Dispatches; empty fields select all.
type DispatchFilter struct {
	Run, Task string
	Live      bool // only those without a final state
}

// Dispatches lists Dispatches, newest first.
func (c *Client) Dispatches(ctx context.Context, filter DispatchFilter, page Page, opts ...Option) (*api.DispatchPage, error) {
	return read[api.DispatchPage](ctx, c, 0, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.ListDispatches(ctx, &api.ListDispatchesParams{
			Run: filter.Run, Task: filter.Task, Live: filter.Live, Cursor: page.Cursor, Limit: page.Limit,
		})
	})
}

// Dispatch returns one Dispatch, what its owner observes, and its receipt.
func (c *Client) Dispatch(ctx context.Context, dispatch string, opts ...Option) (*api.DispatchDetail, error) {
	return read[api.DispatchDetail](ctx, c, 0, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.GetDispatch(ctx, dispatch, &api.GetDispatchParams{})
	})
}

// AwaitDispatch is Dispatch once its state is final, or when the wait is over; a
// time-out is a result whose state is not final, not an error.
func (c *Client) AwaitDispatch(ctx context.Context, dispatch string, wait time.Duration, opts ...Option) (*api.DispatchDetail, error) {
	return inParts(wait, func(part time.Duration) (*api.DispatchDetail, bool, error) {
		out, err := read[api.DispatchDetail](ctx, c, part, opts, func(ctx context.Context) (*http.Response, error) {
			return c.api.GetDispatch(ctx, dispatch, &api.GetDispatchParams{WaitMs: milliseconds(part)})
		})
		return out, err == nil && !Final(out.Dispatch.State), err
	})
}

// Final reports whether a Dispatch leaves the state no more.
func Final(s api.DispatchState) bool {
	switch s {
	case DispatchStateSucceeded, DispatchStateFailed, DispatchStateStopped, DispatchStateAbandoned:
		return true
	}
	return false
}

// Heartbeat says that the caller's own worker lives; the last one counts.
func (c *Client) Heartbeat(ctx context.Context, dispatch string, in api.Heartbeat, opts ...Option) (*api.HeartbeatResult, error) {
	return read[api.HeartbeatResult](ctx, c, 0, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.PutHeartbeat(ctx, dispatch, in)
	})
}

// AgentEvent tells the hub what a hook of the caller's own CLI said.
func (c *Client) AgentEvent(ctx context.Context, dispatch string, in api.AgentEvent, opts ...Option) (*api.AgentEventResult, error) {
	return read[api.AgentEventResult](ctx, c, 0, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.PutAgentEvent(ctx, dispatch, in)
	})
}

// OutputQuery asks for a page of output. Source is auto, transcript, terminal or
// "" for auto; Page.Limit counts messages or lines. Wait is how long to wait for
// something behind Page.Cursor.
type OutputQuery struct {
	Source string
	Page
	Wait time.Duration
}

// Output reads a page of the worker's output.
func (c *Client) Output(ctx context.Context, dispatch string, q OutputQuery, opts ...Option) (*api.OutputPage, error) {
	return read[api.OutputPage](ctx, c, q.Wait, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.ReadOutput(ctx, dispatch, &api.ReadOutputParams{
			Source: api.ReadOutputParamsSource(q.Source), Cursor: q.Cursor, Limit: q.Limit, WaitMs: q.Wait.Milliseconds(),
		})
	})
}

// Agents lists the configured launchers.
func (c *Client) Agents(ctx context.Context, opts ...Option) (*api.AgentPage, error) {
	return read[api.AgentPage](ctx, c, 0, opts, func(ctx context.Context) (*http.Response, error) { return c.api.ListAgents(ctx) })
}

// TestAgent runs an agent's version command and allows its starts again.
func (c *Client) TestAgent(ctx context.Context, name string, opts ...Option) (*api.AgentTested, error) {
	return mutate[api.AgentTested](ctx, c, 0, opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.TestAgent(ctx, name, &api.TestAgentParams{IdempotencyKey: key}, api.Empty{})
	})
}

func waitOf(ms int64, standard time.Duration) time.Duration {
	if ms == 0 {
		return standard
	}
	return time.Duration(ms) * time.Millisecond
}
