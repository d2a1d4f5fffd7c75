package client

import (
	"context"
	"net/http"

	"github.com/wavehub/wavehub/openapi/api"
)

// Page selects a page of a list: the cursor of the page before ("" for the
// first) and how many entries at most (0: the hub's default).
type Page struct {
	Cursor string
	Limit  int
}

// Status returns what the hub is and how much it holds.
func (c *Client) Status(ctx context.Context, opts ...Option) (*api.HubStatus, error) {
	return read[api.HubStatus](ctx, c, 0, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.GetHub(ctx)
	})
}

// CreateRun creates a Run and, unless told otherwise, binds the caller to it.
func (c *Client) CreateRun(ctx context.Context, in api.RunCreate, opts ...Option) (*api.RunBound, error) {
	return mutate[api.RunBound](ctx, c, 0, opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.CreateRun(ctx, &api.CreateRunParams{IdempotencyKey: key}, in)
	})
}

// BindRun makes the caller the Run's consumer and fences the former one.
func (c *Client) BindRun(ctx context.Context, run string, opts ...Option) (*api.RunBound, error) {
	return mutate[api.RunBound](ctx, c, 0, opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.BindRun(ctx, run, &api.BindRunParams{IdempotencyKey: key}, api.Empty{})
	})
}

// Binding returns the Run that the caller is bound to.
func (c *Client) Binding(ctx context.Context, opts ...Option) (*api.RunDetail, error) {
	return read[api.RunDetail](ctx, c, 0, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.GetBinding(ctx)
	})
}

// Run returns one Run with its mailbox and its history of consumers.
func (c *Client) Run(ctx context.Context, run string, opts ...Option) (*api.RunDetail, error) {
	return read[api.RunDetail](ctx, c, 0, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.GetRun(ctx, run)
	})
}

// Runs lists Runs, newest first.
func (c *Client) Runs(ctx context.Context, page Page, opts ...Option) (*api.RunPage, error) {
	return read[api.RunPage](ctx, c, 0, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.ListRuns(ctx, &api.ListRunsParams{Cursor: page.Cursor, Limit: page.Limit})
	})
}

// CreateTask creates a Task; nothing starts.
func (c *Client) CreateTask(ctx context.Context, run string, in api.TaskCreate, opts ...Option) (*api.TaskResult, error) {
	return mutate[api.TaskResult](ctx, c, 0, opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.CreateTask(ctx, run, &api.CreateTaskParams{IdempotencyKey: key}, in)
	})
}

// UpdateTask changes a Task's text or state; ifMatch is an ETag, "" for any
// version.
func (c *Client) UpdateTask(ctx context.Context, task, ifMatch string, in api.TaskUpdate, opts ...Option) (*api.TaskResult, error) {
	return mutate[api.TaskResult](ctx, c, 0, opts, func(ctx context.Context, key string) (*http.Response, error) {
		params := &api.UpdateTaskParams{IdempotencyKey: key}
		if ifMatch != "" {
			params.IfMatch = &ifMatch
		}
		return c.api.UpdateTask(ctx, task, params, in)
	})
}

// Tasks lists the Run's Tasks, of one state or ("") of all.
func (c *Client) Tasks(ctx context.Context, run string, state api.TaskState, page Page, opts ...Option) (*api.TaskPage, error) {
	return read[api.TaskPage](ctx, c, 0, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.ListTasks(ctx, run, &api.ListTasksParams{State: state, Cursor: page.Cursor, Limit: page.Limit})
	})
}

// Task returns one Task.
func (c *Client) Task(ctx context.Context, task string, opts ...Option) (*api.TaskOnly, error) {
	return read[api.TaskOnly](ctx, c, 0, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.GetTask(ctx, task)
	})
}

// ExpandID returns the ids that an abbreviation can stand for, at most two: at
// least 12 characters from the beginning of an id, or the last 6.
func (c *Client) ExpandID(ctx context.Context, text string, opts ...Option) ([]string, error) {
	out, err := read[api.IdMatches](ctx, c, 0, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.ExpandId(ctx, text)
	})
	if err != nil {
		return nil, err
	}
	return out.Ids, nil
}

// Request returns the receipt of one of the caller's own requests.
func (c *Client) Request(ctx context.Context, request string, opts ...Option) (*api.RequestDetail, error) {
	return read[api.RequestDetail](ctx, c, 0, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.GetRequest(ctx, request)
	})
}
