package server

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/work"
	"github.com/wavehub/wavehub/openapi/api"
)

// CreateDispatch gives the Task to a worker or terminal that there is.
func (s apiHandlers) CreateDispatch(w http.ResponseWriter, r *http.Request, id api.TaskParam, params api.CreateDispatchParams) {
	mutate(s.Server, w, r, verb[api.DispatchCreate, hub.Receipt]{
		key: params.IdempotencyKey, path: id,
		do: func(ctx context.Context, q receipt.Request, b api.DispatchCreate) (hub.Receipt, error) {
			return s.cfg.Work.Dispatch(ctx, q, dispatchInput(hub.TaskID(id), b))
		},
		show: func(o hub.Receipt) (int, any) {
			if o.DryRun {
				return http.StatusOK, startReceipt(o)
			}
			return startStatus(o), startReceipt(o)
		},
		waits: func(b api.DispatchCreate) bool { return !b.NoWait && !b.DryRun },
	})
}

// RegisterWorker mints an identity.
func (s apiHandlers) RegisterWorker(w http.ResponseWriter, r *http.Request, params api.RegisterWorkerParams) {
	mutate(s.Server, w, r, verb[api.WorkerRegister, dispatch.Identified]{
		key: params.IdempotencyKey,
		do: func(ctx context.Context, q receipt.Request, b api.WorkerRegister) (dispatch.Identified, error) {
			return s.cfg.Dispatch.Register(ctx, q, dispatch.RegisterInput{Name: b.Name})
		},
		show: answered(http.StatusCreated, workerRegistered),
	})
}

// ListWorkers shows the identities, newest first.
func (s apiHandlers) ListWorkers(w http.ResponseWriter, r *http.Request, params api.ListWorkersParams) {
	page(s.Server, w, r, list{"workers"}, params.Cursor, params.Limit, func(rx store.Rx, p store.Page) (paged, int64, error) {
		sight, err := work.SightOf(rx, callOf(r).principal)
		if err != nil {
			return nil, 0, err
		}
		ws, next, err := rx.WorkerList(p)
		if err != nil {
			return nil, 0, err
		}
		shown := make([]api.WorkerShown, len(ws))
		for i, one := range ws {
			if shown[i], err = s.workerShown(rx, sight, one); err != nil {
				return nil, 0, err
			}
		}
		return func(c *string) any { return api.WorkerPage{Workers: shown, NextCursor: c} }, next, nil
	})
}

// DrainWorker refuses later Dispatches to the identity.
func (s apiHandlers) DrainWorker(w http.ResponseWriter, r *http.Request, name api.WorkerParam, params api.DrainWorkerParams) {
	s.changeWorker(w, r, params.IdempotencyKey, name, func(ctx context.Context, q receipt.Request) (dispatch.Identified, error) {
		return s.cfg.Dispatch.Drain(ctx, q, name)
	})
}

// RevokeWorker fences the identity.
func (s apiHandlers) RevokeWorker(w http.ResponseWriter, r *http.Request, name api.WorkerParam, params api.RevokeWorkerParams) {
	s.changeWorker(w, r, params.IdempotencyKey, name, func(ctx context.Context, q receipt.Request) (dispatch.Identified, error) {
		return s.cfg.Dispatch.Revoke(ctx, q, name)
	})
}

// AttachWorker makes the caller the consumer of its identity's mailbox.
func (s apiHandlers) AttachWorker(w http.ResponseWriter, r *http.Request, params api.AttachWorkerParams) {
	s.changeWorker(w, r, params.IdempotencyKey, "", s.cfg.Dispatch.AttachLoop)
}

func (s apiHandlers) changeWorker(w http.ResponseWriter, r *http.Request, key, path string, do func(context.Context, receipt.Request) (dispatch.Identified, error)) {
	mutate(s.Server, w, r, verb[api.Empty, dispatch.Identified]{
		key: key, path: path,
		do: func(ctx context.Context, q receipt.Request, _ api.Empty) (dispatch.Identified, error) {
			return do(ctx, q)
		},
		show: answered(http.StatusOK, workerResult),
	})
}

// PutPresence notes that an attached worker lives. It is not stored, so that it
// has no receipt.
func (s apiHandlers) PutPresence(w http.ResponseWriter, r *http.Request) {
	c := callOf(r)
	in, err := decode[api.Presence](c)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	when, live, err := s.cfg.Work.Present(r.Context(), c.principal, work.WorkerPresence{
		Dispatches: each(in.Dispatches, func(id string) hub.DispatchID { return hub.DispatchID(id) }), Usage: json.RawMessage(in.Usage),
	})
	s.reply(w, r, http.StatusOK, api.PresenceResult{At: at(when), Dispatches: texts(live)}, err)
}

// ListOwnDispatches shows what an attached worker has.
func (s apiHandlers) ListOwnDispatches(w http.ResponseWriter, r *http.Request, params api.ListOwnDispatchesParams) {
	id := hub.WorkerID(callOf(r).principal.ID)
	page(s.Server, w, r, list{"own dispatches", string(id)}, params.Cursor, params.Limit, func(rx store.Rx, p store.Page) (paged, int64, error) {
		own, next, err := dispatch.Assigned(rx, id, p.Before, p.Limit)
		return func(c *string) any { return api.OwnDispatchPage{Dispatches: each(own, ownDispatch), NextCursor: c} }, next, err
	})
}

// GetSession shows one session.
func (s apiHandlers) GetSession(w http.ResponseWriter, r *http.Request, id api.SessionParam) {
	out, err := s.cfg.Dispatch.Session(r.Context(), callOf(r).principal, id)
	s.reply(w, r, http.StatusOK, api.SessionOnly{Session: sessionOf(out)}, err)
}

// UpdateSession replaces what a worker keeps with its session.
func (s apiHandlers) UpdateSession(w http.ResponseWriter, r *http.Request, id api.SessionParam, params api.UpdateSessionParams) {
	mutate(s.Server, w, r, verb[api.SessionUpdate, dispatch.SessionChanged]{
		key: params.IdempotencyKey, path: id,
		do: func(ctx context.Context, q receipt.Request, b api.SessionUpdate) (dispatch.SessionChanged, error) {
			return s.cfg.Dispatch.SetBackendCtx(ctx, q, dispatch.BackendCtxInput{Session: id, BackendCtx: b.BackendCtx})
		},
		show: answered(http.StatusOK, sessionResult),
	})
}
