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

// CreateRun creates a Run and binds the caller.
func (s apiHandlers) CreateRun(w http.ResponseWriter, r *http.Request, params api.CreateRunParams) {
	mutate(s.Server, w, r, verb[api.RunCreate, run.Bound]{
		key: params.IdempotencyKey,
		do: func(ctx context.Context, q receipt.Request, b api.RunCreate) (run.Bound, error) {
			return s.cfg.Runs.Create(ctx, q, run.CreateInput{
				Objective: b.Objective, Bind: string(b.Bind), Context: q.Principal.Context, Parent: hub.RunID(b.ParentRunId),
			})
		},
		show: answered(http.StatusCreated, runBound),
	})
}

// BindRun makes the caller the Run's consumer.
func (s apiHandlers) BindRun(w http.ResponseWriter, r *http.Request, id api.RunParam, params api.BindRunParams) {
	mutate(s.Server, w, r, verb[api.Empty, run.Bound]{
		key: params.IdempotencyKey, path: id,
		do: func(ctx context.Context, q receipt.Request, _ api.Empty) (run.Bound, error) {
			return s.cfg.Runs.Use(ctx, q, hub.RunID(id), q.Principal.Context)
		},
		show: answered(http.StatusOK, runBound),
	})
}

// ListRuns shows Runs, newest first.
func (s apiHandlers) ListRuns(w http.ResponseWriter, r *http.Request, params api.ListRunsParams) {
	page(s.Server, w, r, list{"runs"}, params.Cursor, params.Limit, func(rx store.Rx, p store.Page) (paged, int64, error) {
		runs, next, err := rx.RunList(p)
		return func(c *string) any { return api.RunPage{Runs: each(runs, runOf), NextCursor: c} }, next, err
	})
}

// GetRun shows one Run.
func (s apiHandlers) GetRun(w http.ResponseWriter, r *http.Request, id api.RunParam) {
	var d run.Detail
	err := s.cfg.Store.View(r.Context(), func(rx store.Rx) (err error) {
		if err = run.Operates(rx, callOf(r).principal, hub.RunID(id)); err != nil {
			return err
		}
		d, err = run.Show(rx, hub.RunID(id))
		return err
	})
	s.reply(w, r, http.StatusOK, runDetail(d), err)
}

// GetBinding shows the Run that the caller is or was bound to.
func (s apiHandlers) GetBinding(w http.ResponseWriter, r *http.Request) {
	var d run.Detail
	err := s.cfg.Store.View(r.Context(), func(rx store.Rx) (err error) {
		d, err = run.Current(rx, callOf(r).principal)
		return err
	})
	out := runDetail(d)
	out.BindingState = api.RunDetailBindingStateLive
	if d.Fenced {
		out.BindingState = api.RunDetailBindingStateFenced
	}
	s.reply(w, r, http.StatusOK, out, err)
}
