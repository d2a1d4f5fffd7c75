package store

import "github.com/wavehub/wavehub/internal/hub"

// WorkerReader reads the identities of attached workers and what is assigned to
// them.
type WorkerReader interface {
	Worker(hub.WorkerID) (hub.Worker, error)
	// WorkerByName finds an identity that is not revoked.
	WorkerByName(name string) (hub.Worker, error)
	// WorkerList is newest first.
	WorkerList(Page) (ws []hub.Worker, next int64, err error)
	// WorkerAttachment is the attachment of a Dispatch if it was given to the
	// worker, ended or not.
	WorkerAttachment(hub.WorkerID, hub.DispatchID) (hub.Attachment, bool, error)
	// WorkerAttachments are the worker's that have not ended, oldest first:
	// Page.Before counts upwards, rows after it.
	WorkerAttachments(hub.WorkerID, Page) (as []hub.Attachment, next int64, err error)
}

// Workers keeps identities. Names are unique among those that are not revoked.
type Workers interface {
	WorkerReader
	PutWorker(hub.Worker) error
	SaveWorker(hub.Worker) error
}

// SessionReader reads sessions.
type SessionReader interface {
	// Session is that of a home, "" for this hub, as in AttachmentReader.
	Session(home hub.PeerID, id string) (hub.Session, bool, error)
	// SessionNamed is this hub's own session of the id, else that of the first
	// home that has one.
	SessionNamed(id string) (hub.Session, error)
}

// Sessions keeps sessions.
type Sessions interface {
	SessionReader
	// SetSession replaces the session of the home and id, or makes it.
	SetSession(hub.Session) error
}
