package dispatch

import (
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/mail"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
)

// Access decides who may use which mailbox; it implements mail.Access.
type Access struct{}

// dispatchGeneration is the one generation of a Dispatch's mailbox.
const dispatchGeneration = 1

// Consume returns the generation and Run of a caller that may consume the box.
func (Access) Consume(tx mail.AccessTx, p hub.Principal, box hub.Box) (int64, hub.RunID, error) {
	if id, ok := box.Run(); ok {
		gen, err := run.RequireConsumer(tx, p, id)
		return gen, id, err
	}
	if w, ok := box.Worker(); ok {
		gen, err := loopOf(tx, p, w)
		return gen, "", err
	}
	a, err := own(tx, p, box)
	if err != nil {
		return 0, "", err
	}
	if a.Capability.Ended() {
		return 0, "", inactive(a.Dispatch, "has ended")
	}
	return dispatchGeneration, a.Run, nil
}

// Proven returns the generation that p's proof stands for, fenced or not.
func (Access) Proven(tx mail.AccessTx, p hub.Principal, box hub.Box) (int64, error) {
	if id, ok := box.Run(); ok {
		proof, err := run.Proof(tx, p)
		if err != nil || proof.Run != id {
			return 0, err
		}
		return proof.Generation, nil
	}
	if w, ok := box.Worker(); ok {
		if gen, err := loopOf(tx, p, w); !hub.IsCode(err, hub.CodeConsumerFenced) {
			return gen, err
		}
		return p.Generation, nil
	}
	_, err := own(tx, p, box)
	return dispatchGeneration, err
}

// Read returns the Run of a mailbox whose history p may read.
func (Access) Read(tx mail.AccessTx, p hub.Principal, box hub.Box) (hub.RunID, error) {
	if id, ok := box.Run(); ok {
		if err := run.Operates(tx, p, id); err != nil {
			return "", err
		}
		_, err := tx.Run(id)
		return id, err
	}
	if w, ok := box.Worker(); ok {
		return "", readsWorker(tx, p, w)
	}
	if id, ok := box.Dispatch(); ok && string(id) != p.ID {
		return others(tx, p, id)
	}
	a, err := own(tx, p, box)
	return a.Run, err
}

// readsWorker refuses who may not read the mailbox of an attached worker.
func readsWorker(tx store.WorkerReader, p hub.Principal, id hub.WorkerID) error {
	if p.Kind != hub.Operator && p.Kind != hub.Reader && !isWorker(p, id) {
		return notYours(id.Box())
	}
	_, err := tx.Worker(id)
	return err
}

// others is the Run of a Dispatch that is not p's own.
func others(tx mail.AccessTx, p hub.Principal, id hub.DispatchID) (hub.RunID, error) {
	if p.Kind == hub.AttachedWorker || p.Kind == hub.DispatchCap && !p.Coordinator {
		return "", notYours(id.Box())
	}
	a, ok, err := tx.Attachment("", id)
	if err == nil && !ok {
		err = hub.Errorf(hub.CodeMailboxNotFound, "%s is not a mailbox of this hub", id.Box())
	}
	if err == nil {
		err = run.Operates(tx, p, a.Run)
	}
	if err == nil && a.Attached() {
		e := hub.Errorf(hub.CodeMailboxNotFound, "the mail of %s lies in %s, its attached worker's mailbox", id, boxOf(a))
		err = e.WithNext("wavehub", "check", "--all", "--mailbox", string(boxOf(a)))
	}
	return a.Run, err
}

// loopOf is the generation of an attached worker's loop; a former loop is fenced.
func loopOf(tx store.WorkerReader, p hub.Principal, id hub.WorkerID) (int64, error) {
	if !isWorker(p, id) {
		return 0, notYours(id.Box())
	}
	w, err := tx.Worker(id)
	if err == nil && p.Generation != 0 && p.Generation != w.Generation {
		e := hub.Errorf(hub.CodeConsumerFenced, "another loop has taken the mailbox of %s over (generation %d)", w.Name, w.Generation)
		e.Hint = "end this loop: the other one has the Dispatches now"
		return 0, e
	}
	return w.Generation, err
}

func isWorker(p hub.Principal, id hub.WorkerID) bool {
	return p.Kind == hub.AttachedWorker && p.ID == string(id)
}

func notYours(box hub.Box) error {
	return hub.Errorf(hub.CodeOutOfScope, "only its own worker uses %s", box)
}

// Own returns the attachment of a Dispatch that has not ended, if p is its
// worker.
func Own(tx mail.AccessTx, p hub.Principal, id hub.DispatchID) (hub.Attachment, error) {
	a, err := own(tx, p, id.Box())
	if err == nil && a.Capability.Ended() {
		err = inactive(a.Dispatch, "has ended")
	}
	return a, err
}

// own returns the attachment whose mailbox the box is, if p is its worker.
func own(tx mail.AccessTx, p hub.Principal, box hub.Box) (hub.Attachment, error) {
	id, ok := box.Dispatch()
	if !ok {
		return hub.Attachment{}, hub.Errorf(hub.CodeMailboxNotFound, "%q is no mailbox: run:<id>, dispatch:<id> or worker:<id>", box)
	}
	if p.Kind != hub.DispatchCap || p.ID != string(id) {
		return hub.Attachment{}, notYours(box)
	}
	return run.AttachmentOf(tx, p)
}

func inactive(id hub.DispatchID, why string) error {
	return hub.Errorf(hub.CodeDispatchInactive, "%s %s", id, why)
}
