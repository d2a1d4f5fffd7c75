package dispatch

import (
	"context"
	"encoding/json"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
)

// openSession begins the session of an attachment, or goes on with it: then what
// the former worker kept in backend_ctx is gone.
func openSession(tx store.Tx, a hub.Attachment) error {
	if a.Session == "" {
		return nil
	}
	meta, err := encode(sessionMetadata(a.Spec))
	if err != nil {
		return err
	}
	return tx.SetSession(hub.Session{
		ID: a.Session, Home: a.Home, Worker: a.Worker, Orchestrator: a.Run.Box(), Dispatch: a.Dispatch,
		Status: hub.SessionOpen, Metadata: meta, UpdatedAt: tx.Now(),
	})
}

// sessionMetadata is what a start says of its session.
func sessionMetadata(s hub.StartSpec) map[string]string {
	if w := s.Wave; w != nil {
		return map[string]string{"kind": "wave_task", "wave_id": string(w.Wave), "wave_task_id": w.Token}
	}
	return map[string]string{"display_name": s.DisplayName, "comment": s.Comment}
}

// endSession closes the session of an attachment whose Dispatch has ended, saves
// the attachment, and tells an attached worker so, once. state is what is known
// here of the end.
func endSession(tx store.Tx, a hub.Attachment, state string) error {
	if err := closeSession(tx, a); err != nil {
		return err
	}
	if !a.Attached() || a.ExitDone {
		return tx.SaveAttachment(a)
	}
	a.ExitDone, a.Fenced = true, a.Fenced || a.Fence != nil
	if err := tx.SaveAttachment(a); err != nil {
		return err
	}
	tx.Signal(hub.Signal{Topic: hub.TopicDispatch, Key: string(a.Dispatch)})
	return tellWorker(tx, a, hub.TypeSessionClose, hub.SessionControl{Action: hub.ActionClose, State: state})
}

// closeSession leaves a session alone that a later Dispatch has gone on with.
func closeSession(tx store.Tx, a hub.Attachment) error {
	s, ok, err := tx.Session(a.Home, a.Session)
	if err != nil || !ok || s.Dispatch != a.Dispatch || s.Status == hub.SessionClosed {
		return err
	}
	s.Status, s.UpdatedAt = hub.SessionClosed, tx.Now()
	return tx.SetSession(s)
}

// SessionChanged is the answer to SetBackendCtx.
type SessionChanged struct {
	Session  hub.Session  `json:"session"`
	Mutation hub.Mutation `json:"mutation"`
}

// Mut returns the mutation, for the receipt gate.
func (s *SessionChanged) Mut() *hub.Mutation { return &s.Mutation }

// Subject is the session, which its Dispatch names.
func (s *SessionChanged) Subject() (hub.RunID, string) {
	id, _ := s.Session.Orchestrator.Run()
	return id, string(s.Session.Dispatch)
}

// Session reads a session of this hub: any for the operator, else the caller's
// own.
func (s *Service) Session(ctx context.Context, p hub.Principal, id string) (out hub.Session, err error) {
	err = s.Store.View(ctx, func(rx store.Rx) error {
		out, err = findSession(rx, p, id)
		return err
	})
	return out, err
}

// BackendCtxInput is the argument of SetBackendCtx; null clears.
type BackendCtxInput struct {
	Session    string          `json:"session_id"`
	BackendCtx json.RawMessage `json:"backend_ctx"`
}

// SetBackendCtx replaces what a worker keeps with its session, and nothing else.
func (s *Service) SetBackendCtx(ctx context.Context, r receipt.Request, in BackendCtxInput) (SessionChanged, error) {
	raw, err := hub.PlainJSON(in.BackendCtx)
	switch {
	case err != nil:
		return SessionChanged{}, hub.Invalid("backend_ctx", "is no JSON document")
	case len(raw) > hub.MaxBackendCtxBytes:
		return SessionChanged{}, &hub.Error{Code: hub.CodeTooLarge, Field: "backend_ctx", Message: "backend_ctx: at most 64 KiB are taken"}
	case string(raw) == "null":
		raw = nil
	}
	return receipt.Do(ctx, s.Store, store.New, r, func(tx store.Tx) (SessionChanged, error) {
		v, err := findSession(tx, r.Principal, in.Session)
		if err != nil {
			return SessionChanged{}, err
		}
		v.BackendCtx, v.UpdatedAt = raw, tx.Now()
		return SessionChanged{Session: v}, tx.SetSession(v)
	})
}

type sessionTx interface {
	store.SessionReader
	store.WorkerReader
	run.CallerTx
}

// findSession finds the session of the id that p may use. Another's is not told
// from one that there is not.
func findSession(tx sessionTx, p hub.Principal, id string) (hub.Session, error) {
	switch p.Kind {
	case hub.Operator, hub.Reader:
		return tx.SessionNamed(id)
	case hub.DispatchCap:
		a, err := run.AttachmentOf(tx, p)
		if err != nil {
			return hub.Session{}, err
		}
		return ownSession(tx, a.Home, id, func(s hub.Session) bool { return s.Dispatch == a.Dispatch })
	case hub.AttachedWorker:
		return workerSession(tx, hub.WorkerID(p.ID), id)
	case hub.PeerKey, hub.Engine, hub.SystemPrincipal:
	}
	return hub.Session{}, hub.Errorf(hub.CodeOutOfScope, "a %s has no sessions", p.Kind)
}

// workerSession looks at what the worker has now before what it once had: two
// homes may have given a session the same id.
func workerSession(tx sessionTx, w hub.WorkerID, id string) (hub.Session, error) {
	var home *hub.PeerID
	err := eachAssigned(tx, w, func(a hub.Attachment) bool {
		if a.Session == id {
			home = &a.Home
		}
		return home == nil
	})
	if err != nil {
		return hub.Session{}, err
	}
	if home != nil {
		return ownSession(tx, *home, id, func(s hub.Session) bool { return s.Worker == w })
	}
	s, err := tx.SessionNamed(id)
	if err == nil && s.Worker != w {
		err = noSession(id)
	}
	return s, err
}

func ownSession(tx store.SessionReader, home hub.PeerID, id string, own func(hub.Session) bool) (hub.Session, error) {
	s, ok, err := tx.Session(home, id)
	if err == nil && (!ok || !own(s)) {
		err = noSession(id)
	}
	return s, err
}

func noSession(id string) error {
	return hub.Errorf(hub.CodeSessionNotFound, "the caller has no session %q", id)
}
