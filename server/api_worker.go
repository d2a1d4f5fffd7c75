package server

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/work"
	"github.com/wavehub/wavehub/openapi/api"
)

// StartWorker starts a worker and waits for the outcome.
func (s apiHandlers) StartWorker(w http.ResponseWriter, r *http.Request, id api.TaskParam, params api.StartWorkerParams) {
	mutate(s.Server, w, r, verb[api.WorkerStart, hub.Receipt]{
		key: params.IdempotencyKey, path: id,
		do: func(ctx context.Context, q receipt.Request, b api.WorkerStart) (hub.Receipt, error) {
			return s.cfg.Work.Start(ctx, q, startInput(hub.TaskID(id), b))
		},
		show:  func(o hub.Receipt) (int, any) { return startStatus(o), startReceipt(o) },
		waits: func(b api.WorkerStart) bool { return !b.NoWait },
	})
}

// StartRunWorker creates a Task and starts a worker for it.
func (s apiHandlers) StartRunWorker(w http.ResponseWriter, r *http.Request, id api.RunParam, params api.StartRunWorkerParams) {
	mutate(s.Server, w, r, verb[api.TaskStart, hub.Receipt]{
		key: params.IdempotencyKey, path: id,
		do: func(ctx context.Context, q receipt.Request, b api.TaskStart) (hub.Receipt, error) {
			return s.cfg.Work.StartNew(ctx, q, hub.RunID(id), newTask(b.Task), startInput("", b.Start))
		},
		show:  func(o hub.Receipt) (int, any) { return startStatus(o), startReceipt(o) },
		waits: func(b api.TaskStart) bool { return !b.Start.NoWait },
	})
}

func startStatus(o hub.Receipt) int {
	if o.State == hub.StartOutcomeUnknown {
		return http.StatusAccepted
	}
	return http.StatusCreated
}

// StopWorker fences the Dispatch and ends its process tree.
func (s apiHandlers) StopWorker(w http.ResponseWriter, r *http.Request, id api.DispatchParam, params api.StopWorkerParams) {
	mutate(s.Server, w, r, verb[api.WorkerStop, hub.StopResult]{
		key: params.IdempotencyKey, path: id,
		do: func(ctx context.Context, q receipt.Request, b api.WorkerStop) (hub.StopResult, error) {
			return s.cfg.Work.Stop(ctx, q, work.StopInput{Dispatch: hub.DispatchID(id), TimeoutMS: b.TimeoutMs, GraceMS: b.GraceMs})
		},
		show:  func(o hub.StopResult) (int, any) { return stopStatus(o), stopResult(o) },
		waits: func(api.WorkerStop) bool { return true },
	})
}

func stopStatus(o hub.StopResult) int {
	if o.State == hub.StopUnknown || o.State == hub.Stopping {
		return http.StatusAccepted
	}
	return http.StatusOK
}

// AbandonWorker gives the Dispatch up.
func (s apiHandlers) AbandonWorker(w http.ResponseWriter, r *http.Request, id api.DispatchParam, params api.AbandonWorkerParams) {
	mutate(s.Server, w, r, verb[api.Empty, hub.StopResult]{
		key: params.IdempotencyKey, path: id,
		do: func(ctx context.Context, q receipt.Request, _ api.Empty) (hub.StopResult, error) {
			return s.cfg.Work.Abandon(ctx, q, hub.DispatchID(id))
		},
		show: answered(http.StatusOK, stopResult),
	})
}

// ListDispatches shows Dispatches, newest first.
func (s apiHandlers) ListDispatches(w http.ResponseWriter, r *http.Request, params api.ListDispatchesParams) {
	l := list{"dispatches", params.Run, params.Task, strconv.FormatBool(params.Live)}
	f := store.DispatchFilter{Run: hub.RunID(params.Run), Task: hub.TaskID(params.Task), Live: params.Live}
	page(s.Server, w, r, l, params.Cursor, params.Limit, func(rx store.Rx, p store.Page) (paged, int64, error) {
		if who := callOf(r).principal; who.Kind == hub.PeerKey {
			ds, next, err := s.cfg.Work.OwnDispatches(rx, who, work.OwnFilter{Run: f.Run, Task: f.Task, Live: f.Live}, p)
			return s.dispatchPage(ds), next, err
		}
		if err := ownRun(rx, callOf(r).principal, &f.Run); err != nil {
			return nil, 0, err
		}
		if err := exist(rx, f.Run, f.Task); err != nil {
			return nil, 0, err
		}
		ds, next, err := rx.DispatchList(f, p)
		return s.dispatchPage(ds), next, err
	})
}

func (s *Server) dispatchPage(ds []hub.Dispatch) paged {
	return func(c *string) any { return api.DispatchPage{Dispatches: each(ds, s.dispatchInList), NextCursor: c} }
}

// exist refuses a filter by what there is not: an empty list would not tell.
func exist(rx store.Rx, run hub.RunID, task hub.TaskID) error {
	if run != "" {
		if _, err := rx.Run(run); err != nil {
			return err
		}
	}
	if task != "" {
		if _, err := rx.TaskState(task); err != nil {
			return err
		}
	}
	return nil
}

// GetDispatch shows one Dispatch and what its owner observes, if asked once it
// has ended.
func (s apiHandlers) GetDispatch(w http.ResponseWriter, r *http.Request, id api.DispatchParam, params api.GetDispatchParams) {
	if callOf(r).principal.Kind == hub.PeerKey {
		s.showOwn(w, r, hub.DispatchID(id), params.WaitMs)
		return
	}
	if err := s.operates(r, hub.DispatchID(id)); err != nil {
		s.fail(w, r, err)
		return
	}
	s.waitFor(w, r, params.WaitMs, func(ctx context.Context, wait time.Duration) (any, error) {
		shown, err := s.cfg.Work.AwaitEnd(ctx, hub.DispatchID(id), wait)
		return dispatchDetail(shown), err
	})
}

// PutHeartbeat notes that a worker lives. It changes nothing that is stored, so
// that it has no receipt.
func (s apiHandlers) PutHeartbeat(w http.ResponseWriter, r *http.Request, id api.DispatchParam) {
	c := callOf(r)
	in, err := decode[api.Heartbeat](c)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	when, err := s.cfg.Work.Heartbeat(r.Context(), c.principal, hub.DispatchID(id), work.Heartbeat{
		WaitingFor: string(in.WaitingFor), Usage: json.RawMessage(in.Usage),
	})
	s.reply(w, r, http.StatusOK, api.HeartbeatResult{DispatchId: id, At: at(when)}, err)
}

// PutAgentEvent takes what a hook of a worker's own CLI said. It has no receipt:
// the latest word counts.
func (s apiHandlers) PutAgentEvent(w http.ResponseWriter, r *http.Request, id api.DispatchParam) {
	c := callOf(r)
	in, err := decode[api.AgentEvent](c)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	kind, err := s.cfg.Work.AgentEvent(r.Context(), c.principal, hub.DispatchID(id), in.Event, []byte(in.Data))
	s.reply(w, r, http.StatusOK, api.AgentEventResult{DispatchId: id, Kind: string(kind)}, err)
}

// ReadOutput shows a page of the worker's output; with a cursor it may wait for
// one.
func (s apiHandlers) ReadOutput(w http.ResponseWriter, r *http.Request, id api.DispatchParam, params api.ReadOutputParams) {
	if err := s.operates(r, hub.DispatchID(id)); err != nil {
		s.fail(w, r, err)
		return
	}
	q := work.OutputQuery{Source: string(params.Source), Limit: params.Limit, Cursor: params.Cursor, WaitMS: params.WaitMs}
	read := func(ctx context.Context) (int, any, error) {
		out, err := s.cfg.Work.Read(ctx, hub.DispatchID(id), q)
		return http.StatusOK, outputPage(out), err
	}
	if q.WaitMS > 0 {
		s.patiently(w, r, read)
		return
	}
	status, body, err := read(r.Context())
	s.reply(w, r, status, body, err)
}
