package sqlite

import "github.com/wavehub/wavehub/internal/hub"

const (
	sessionCols  = "home, id, worker, orchestrator, dispatch, status, backend_ctx, metadata, updated_at"
	sessionQuery = `SELECT ` + sessionCols + ` FROM sessions WHERE id = ? AND home = ?`
	sessionNamed = `SELECT ` + sessionCols + ` FROM sessions WHERE id = ? ORDER BY home LIMIT 1`
)

var setSession = insertInto("sessions", sessionCols) + ` ON CONFLICT (id, home) DO UPDATE SET worker = excluded.worker,
	orchestrator = excluded.orchestrator, dispatch = excluded.dispatch, status = excluded.status,
	backend_ctx = excluded.backend_ctx, metadata = excluded.metadata, updated_at = excluded.updated_at`

func scanSession(s scanner, v *hub.Session) error {
	return s.Scan(&v.Home, &v.ID, &v.Worker, &v.Orchestrator, &v.Dispatch, &v.Status, (*[]byte)(&v.BackendCtx), (*[]byte)(&v.Metadata), &v.UpdatedAt)
}

// Session implements store.SessionReader.
func (q querier) Session(home hub.PeerID, id string) (hub.Session, bool, error) {
	s, ok, err := one(q, scanSession, sessionQuery, id, home)
	return s, ok, wrap(err, "reading a session")
}

// SessionNamed implements store.SessionReader.
func (q querier) SessionNamed(id string) (hub.Session, error) {
	s, err := must(q, scanSession, hub.Errorf(hub.CodeSessionNotFound, "there is no session %q on this hub", id), sessionNamed, id)
	return s, wrap(err, "reading a session")
}

// SetSession implements store.Sessions.
func (tx *Tx) SetSession(s hub.Session) error {
	_, err := tx.exec(setSession, s.Home, s.ID, s.Worker, s.Orchestrator, s.Dispatch, s.Status, blob(s.BackendCtx), blob(s.Metadata), s.UpdatedAt)
	return wrap(err, "setting a session")
}
