package server

import (
	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/work"
	"github.com/wavehub/wavehub/openapi/api"
)

func dispatchInput(task hub.TaskID, b api.DispatchCreate) work.DispatchInput {
	return work.DispatchInput{
		Task: task, To: b.To, RetryOf: hub.DispatchID(b.RetryOf), Quiet: b.Reports == api.DispatchReportsHistory,
		Inject: b.Inject, DryRun: b.DryRun, NoWait: b.NoWait, TimeoutMS: b.TimeoutMs, LivenessSecs: b.LivenessSecs,
	}
}

func workerOf(w hub.Worker) api.WorkerIdentity {
	return api.WorkerIdentity{
		WorkerId: string(w.ID), Name: w.Name, State: api.WorkerState(w.State), Generation: w.Generation, CreatedAt: at(w.CreatedAt),
	}
}

func workerResult(i dispatch.Identified) api.WorkerResult {
	return api.WorkerResult{Worker: workerOf(i.Worker), Mutation: mutationOf(i.Mutation)}
}

func workerRegistered(i dispatch.Identified) api.WorkerRegistered {
	out := api.WorkerRegistered{Mutation: mutationOf(i.Mutation)}
	w := &out.Worker
	w.WorkerId, w.Name, w.State = string(i.Worker.ID), i.Worker.Name, api.WorkerState(i.Worker.State)
	w.Generation, w.CreatedAt, w.Token = i.Worker.Generation, at(i.Worker.CreatedAt), null(i.Token)
	if i.Token == "" {
		w.SecretState = api.WorkerRegisteredWorkerSecretState(hub.WorkerRevoked)
	}
	return out
}

// shownDispatches is how many of its Dispatches the list of identities shows.
const shownDispatches = 20

func (s *Server) workerShown(rx store.Rx, sight work.Sight, w hub.Worker) (api.WorkerShown, error) {
	read := func(p store.Page) ([]hub.Attachment, int64, error) { return rx.WorkerAttachments(w.ID, p) }
	as, next, err := work.Visible(store.Page{Limit: shownDispatches}, read, sight.Attachment)
	out := api.WorkerShown{
		WorkerId: string(w.ID), Name: w.Name, State: api.WorkerState(w.State), Generation: w.Generation, CreatedAt: at(w.CreatedAt),
		Dispatches: each(as, workerDispatch), MoreDispatches: next != 0,
	}
	seen := s.cfg.Work.Seen(w.ID)
	out.Presence.State, out.Presence.At = api.WorkerShownPresenceState(seen.State), maybeAt(seen.At)
	if seen.At != 0 {
		out.Presence.AgeMs = new(seen.Age.Milliseconds())
	}
	return out, err
}

func workerDispatch(a hub.Attachment) api.WorkerDispatch {
	return api.WorkerDispatch{
		DispatchId: string(a.Dispatch), TaskId: string(a.Task), RunId: string(a.Run), SessionId: a.Session, TakenUp: a.TakenUp,
		Capability: api.WorkerDispatchCapability(a.Capability),
	}
}

func ownDispatch(a dispatch.Assignment) api.OwnDispatch {
	return api.OwnDispatch{
		DispatchId: string(a.Dispatch), TaskId: string(a.Task), RunId: string(a.Run), SessionId: a.Session, TakenUp: a.TakenUp,
		Capability: api.OwnDispatchCapability(a.Capability), Delivered: a.Handed, Payload: a.Start, BackendCtx: orNull(a.BackendCtx),
	}
}

// orNull is a JSON document, null for none.
func orNull(raw []byte) []byte {
	if len(raw) == 0 {
		return []byte("null")
	}
	return raw
}

func sessionOf(s hub.Session) api.Session {
	return api.Session{
		SessionId: s.ID, Worker: null(s.Worker), Orchestrator: string(s.Orchestrator), DispatchId: string(s.Dispatch), Status: api.SessionStatus(s.Status),
		BackendCtx: orNull(s.BackendCtx), Metadata: orNull(s.Metadata), UpdatedAt: at(s.UpdatedAt),
	}
}

func sessionResult(c dispatch.SessionChanged) api.SessionResult {
	return api.SessionResult{Session: sessionOf(c.Session), Mutation: mutationOf(c.Mutation)}
}
