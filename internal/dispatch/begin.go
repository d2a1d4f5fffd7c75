package dispatch

import (
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

// Attempt is the argument of Begin: a start that has been validated.
type Attempt struct {
	ID          hub.DispatchID
	Task        hub.TaskID
	RetryOf     hub.DispatchID
	Server      hub.Server
	Pin         hub.Pin
	Request     hub.RequestID
	Quiet       bool
	Receipt     hub.Receipt
	PeerRequest []byte // the exact body for the peer; nil for a local start
}

// Begin creates the Dispatch and moves its Task, in one transaction, if the
// Task may be started.
func Begin(tx store.Tx, in Attempt) (hub.Dispatch, error) {
	t, err := tx.Task(in.Task)
	if err != nil {
		return hub.Dispatch{}, err
	}
	if err := Startable(tx, t, in.RetryOf); err != nil {
		return hub.Dispatch{}, err
	}
	d := hub.Dispatch{
		ID: in.ID, Task: t.ID, Run: t.Run, State: hub.Starting, RetryOf: in.RetryOf, Server: in.Server,
		Pin: in.Pin, Request: in.Request, Quiet: in.Quiet, CreatedAt: tx.Now(), Version: 1,
	}
	if err := tx.PutDispatch(d, in.Receipt, in.PeerRequest); err != nil {
		return d, err
	}
	t.Latest, t.State, t.UpdatedAt = d.ID, hub.TaskStateFor(d.State), tx.Now()
	t.Version++
	return d, tx.SaveTask(t)
}

// Startable tells why a start of t would be refused, nil if it would not.
func Startable(tx store.DispatchReader, t hub.Task, retryOf hub.DispatchID) error {
	var latest *hub.Dispatch
	if t.Latest != "" {
		d, err := tx.Dispatch(t.Latest)
		if err != nil {
			return err
		}
		latest = &d
	}
	if e := hub.Startable(t, latest, retryOf); e != nil {
		return e
	}
	return nil
}

// Attach records the owner's side of a Dispatch: its attachment, its mailbox, its
// session and the hash of its capability, which an attached worker does not have.
func Attach(tx store.Tx, a hub.Attachment, capability string) error {
	if err := tx.PutAttachment(a); err != nil {
		return err
	}
	if err := tx.PutMailbox(store.Mailbox{Box: a.Dispatch.Box()}); err != nil {
		return err
	}
	if err := openSession(tx, a); err != nil || a.Attached() {
		return err
	}
	return tx.PutCredential(store.Credential{
		Sum: capability, Kind: store.CredDispatch, Subject: string(a.Dispatch), Home: a.Home,
	})
}

// Start is how a start ended, as its home learns it.
type Start struct {
	Event   hub.EventKind // EvStarted, EvStartFailed or EvStartLost
	Reason  string
	Receipt hub.Receipt
	// Answered says that a call returns this end to the coordinator.
	Answered bool
}

// EndStart applies the end of a start and returns its receipt with the state
// that the Dispatch has now: a quick worker may have settled it already. An end
// that no call answers is mailed.
func EndStart(tx store.Tx, id hub.DispatchID, in Start) (hub.Receipt, error) {
	d, err := tx.Dispatch(id)
	if err != nil {
		return in.Receipt, err
	}
	nd, changed, _, err := apply(tx, d, hub.Event{Kind: in.Event, Reason: in.Reason}, saying{})
	if err != nil {
		return in.Receipt, err
	}
	if in.Receipt, err = withSetup(tx, id, in.Receipt); err != nil {
		return in.Receipt, err
	}
	in.Receipt.DispatchState = nd.State
	silent := nd.State == hub.Failed && !in.Answered || nd.State == hub.Stopped && d.State == hub.StopUnknown
	if changed && silent {
		text := "The start failed: " + in.Receipt.LastError
		if nd.State == hub.Stopped {
			text = "The worker never ran: " + in.Receipt.LastError
		}
		if err := postEnd(tx, nd, text); err != nil {
			return in.Receipt, err
		}
	}
	if err := tx.SaveStartReceipt(id, in.Receipt); err != nil {
		return in.Receipt, err
	}
	return in.Receipt, CloseStart(tx, hub.Principal{Kind: hub.Operator}, d.Request, in.Receipt)
}

// NoteOpen keeps what is known of a start whose outcome is open still. One that has
// come to an end meanwhile stays as it is.
func NoteOpen(tx store.Tx, id hub.DispatchID, r hub.Receipt) error {
	had, err := tx.StartReceipt(id)
	if err != nil || had.State != hub.StartOutcomeUnknown {
		return err
	}
	d, err := tx.Dispatch(id)
	if err != nil {
		return err
	}
	if r, err = withSetup(tx, id, r); err != nil {
		return err
	}
	r.DispatchState = d.State
	if err := tx.SaveStartReceipt(id, r); err != nil {
		return err
	}
	return CloseStart(tx, hub.Principal{Kind: hub.Operator}, d.Request, r)
}

// withSetup adds to a receipt an end of the setup that was heard of before it.
func withSetup(tx store.DispatchReader, id hub.DispatchID, r hub.Receipt) (hub.Receipt, error) {
	known, err := tx.StartReceipt(id)
	if err == nil && known.Setup.Terminal != "" {
		r.NoteSetup(known.Setup.Later(r.Setup))
	}
	return r, err
}

// RecordQueued records that the owner has committed a start to the mailbox of an
// attached worker, unless it is known already that the worker took it up.
func RecordQueued(tx store.Tx, id hub.DispatchID, r hub.Receipt) (hub.Receipt, error) {
	d, err := tx.Dispatch(id)
	if err != nil {
		return r, err
	}
	had, err := tx.StartReceipt(id)
	if err != nil {
		return r, err
	}
	if had.State == hub.StartReady {
		had.Mutation = r.Mutation
		r = had
	}
	r.DispatchState = d.State
	if err := tx.SaveStartReceipt(id, r); err != nil {
		return r, err
	}
	return r, CloseStart(tx, hub.Principal{Kind: hub.Operator}, d.Request, r)
}

// CloseStart brings the record of the request that began a start up to date, so
// that it is known there also when nobody repeats it. by is of the key space
// that the request was made in.
func CloseStart(tx store.Receipts, by hub.Principal, key hub.RequestID, r hub.Receipt) error {
	r.Mutation = hub.Mutation{RequestID: key}
	return receipt.Close(tx, by.Space(), key, &r, r.State != hub.StartOutcomeUnknown)
}
