package server

import (
	"context"
	"net/http"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/openapi/api"
)

// CreateTask creates a Task; nothing starts.
func (s apiHandlers) CreateTask(w http.ResponseWriter, r *http.Request, id api.RunParam, params api.CreateTaskParams) {
	mutate(s.Server, w, r, verb[api.TaskCreate, run.Created]{
		key: params.IdempotencyKey, path: id,
		do: func(ctx context.Context, q receipt.Request, b api.TaskCreate) (run.Created, error) {
			return s.cfg.Runs.CreateTask(ctx, q, hub.RunID(id), newTask(b))
		},
		show: answered(http.StatusCreated, taskResult),
	})
}

// ListTasks shows a Run's Tasks in the order they were created.
func (s apiHandlers) ListTasks(w http.ResponseWriter, r *http.Request, id api.RunParam, params api.ListTasksParams) {
	l := list{"tasks", id, string(params.State)}
	page(s.Server, w, r, l, params.Cursor, params.Limit, func(rx store.Rx, p store.Page) (paged, int64, error) {
		if err := run.Operates(rx, callOf(r).principal, hub.RunID(id)); err != nil {
			return nil, 0, err
		}
		if _, err := rx.Run(hub.RunID(id)); err != nil {
			return nil, 0, err
		}
		tasks, next, err := rx.TaskList(hub.RunID(id), hub.TaskState(params.State), p)
		return func(c *string) any { return api.TaskPage{Tasks: each(tasks, taskOf), NextCursor: c} }, next, err
	})
}

// GetTask shows one Task and its latest Dispatch.
func (s apiHandlers) GetTask(w http.ResponseWriter, r *http.Request, id api.TaskParam) {
	var t hub.Task
	out := api.TaskOnly{}
	err := s.cfg.Store.View(r.Context(), func(rx store.Rx) (err error) {
		if t, err = rx.Task(hub.TaskID(id)); err != nil {
			return err
		}
		if err := run.Operates(rx, callOf(r).principal, t.Run); err != nil || t.Latest == "" {
			return err
		}
		d, err := rx.Dispatch(t.Latest)
		latest := dispatchOf(d)
		out.LatestDispatch = &latest
		return err
	})
	if err == nil {
		w.Header().Set("ETag", run.ETag(t))
	}
	out.Task = taskOf(t)
	s.reply(w, r, http.StatusOK, out, err)
}

// UpdateTask changes a Task's text or state.
func (s apiHandlers) UpdateTask(w http.ResponseWriter, r *http.Request, id api.TaskParam, params api.UpdateTaskParams) {
	match := ""
	if params.IfMatch != nil {
		match = *params.IfMatch
	}
	mutate(s.Server, w, r, verb[api.TaskUpdate, run.Created]{
		key: params.IdempotencyKey, path: id, condition: match,
		do: func(ctx context.Context, q receipt.Request, b api.TaskUpdate) (run.Created, error) {
			return s.cfg.Runs.UpdateTask(ctx, q, run.UpdateInput{
				Task: hub.TaskID(id), IfMatch: match,
				Change: hub.TaskChange{Title: b.Title, Spec: b.Spec, State: hub.TaskState(b.State)},
			})
		},
		show: func(c run.Created) (int, any) {
			w.Header().Set("ETag", run.ETag(c.Task))
			return http.StatusOK, taskResult(c)
		},
	})
}
