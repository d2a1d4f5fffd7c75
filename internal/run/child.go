package run

import (
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

// A worker that was started with --may-coordinate may create one child Run on
// the hub that owns it, and is that Run's operator and consumer.
//
// The child Run is written on the worker's attachment, and there alone: whoever
// presents the capability is looked up anew in the transaction of each effect.
// The consumer's proof needs no token: the hub knows the terminal of the
// capability, and binds the child Run to that terminal's context, as it binds a
// person's. An operator who uses the Run takes it over, and the worker is fenced.
// The authority ends with the capability; the Run and its Dispatches do not, and
// are the operator's to go on with.

// CallerTx is what a worker's capability is looked up in.
type CallerTx interface {
	store.AttachmentReader
	store.CredentialReader
	Peer(hub.PeerID) (hub.Peer, error)
}

// AttachmentOf returns the attachment that p's capability names. The capability
// has no effect while the home that it was made for is not paired.
func AttachmentOf(tx CallerTx, p hub.Principal) (hub.Attachment, error) {
	c, ok, err := tx.Credential(p.Credential)
	if err != nil {
		return hub.Attachment{}, err
	}
	if !ok || c.Kind != store.CredDispatch || c.Subject != p.ID {
		return hub.Attachment{}, hub.Errorf(hub.CodeInvalidToken, "the capability is not known here")
	}
	a, ok, err := tx.Attachment(c.Home, hub.DispatchID(p.ID))
	if err == nil && !ok {
		err = hub.Errorf(hub.CodeDispatchNotFound, "%s is not attached here", p.ID)
	}
	if err == nil {
		err = receipt.Paired(tx, a.Home)
	}
	return a, err
}

// ContextOf is the context of an attachment's worker: the terminal that this hub
// made for it, which no other process has.
func ContextOf(a hub.Attachment) string { return "terminal:" + string(a.Terminal) }

// Operates refuses a worker that is not the coordinator of the Run, or is it no
// more; an attached one coordinates none. What other principals may do is not its
// business.
func Operates(tx CallerTx, p hub.Principal, id hub.RunID) error {
	if p.Kind == hub.AttachedWorker {
		return hub.Errorf(hub.CodeOutOfScope, "an attached worker coordinates no Run")
	}
	if p.Kind != hub.DispatchCap {
		return nil
	}
	a, err := AttachmentOf(tx, p)
	if err != nil {
		return err
	}
	if a.Child == "" || a.Child != id {
		return hub.Errorf(hub.CodeOutOfScope, "%s is not a Run that %s coordinates", id, a.Dispatch)
	}
	return coordinates(a)
}

// Child is the Run that p's worker coordinates.
func Child(tx CallerTx, p hub.Principal) (hub.RunID, error) {
	a, err := AttachmentOf(tx, p)
	if err != nil {
		return "", err
	}
	if a.Child == "" {
		return "", unbound(p)
	}
	return a.Child, coordinates(a)
}

// coordinates refuses an attachment whose worker may not coordinate now. One that
// has reported is done, even before its home has said so.
func coordinates(a hub.Attachment) error {
	switch {
	case !a.Spec.MayCoordinate:
		return hub.Errorf(hub.CodeOutOfScope, "%s was not started with --may-coordinate", a.Dispatch)
	case a.Capability != hub.CapActive:
		e := hub.Errorf(hub.CodeDispatchInactive, "%s has reported or ended, and with it its authority over a child Run", a.Dispatch)
		e.Hint = "the operator can go on with that Run"
		return e
	}
	return nil
}

type childTx interface {
	createTx
	store.Attachments
	Peer(hub.PeerID) (hub.Peer, error)
}

// CreateChild makes the one Run that p's worker coordinates, below the Run of its
// Dispatch, and binds the worker's terminal to it. That Run may be another hub's:
// its depth came with the start.
func CreateChild(tx childTx, tok Tokens, p hub.Principal, in CreateInput) (Bound, error) {
	a, err := AttachmentOf(tx, p)
	if err != nil {
		return Bound{}, err
	}
	if err := admitChild(a, in); err != nil {
		return Bound{}, err
	}
	r := hub.Run{ID: hub.NewRunID(), Objective: in.Objective, Parent: a.Run, Depth: a.Depth + 1, CreatedAt: tx.Now()}
	if r.Depth > hub.MaxRunDepth {
		return Bound{}, tooDeep()
	}
	a.Child = r.ID
	if err := tx.SaveAttachment(a); err != nil {
		return Bound{}, err
	}
	if err := put(tx, p, r); err != nil {
		return Bound{}, err
	}
	out, err := bind(tx, tok, p, r, ContextOf(a))
	if err == nil {
		out.Binding.Withheld = true
	}
	return out, err
}

func admitChild(a hub.Attachment, in CreateInput) error {
	if err := coordinates(a); err != nil {
		return err
	}
	if a.Child != "" {
		e := hub.Errorf(hub.CodeAlreadyBound, "this worker coordinates %s already, and may create no other Run", a.Child)
		return e.WithNext("wavehub", "run", "show", string(a.Child))
	}
	switch {
	case in.Parent != "" && in.Parent != a.Run:
		return hub.Errorf(hub.CodeOutOfScope, "a worker's child Run is below its own Run, %s", a.Run)
	case in.Bind != "" && in.Bind != BindAuto:
		return hub.Invalid("bind", "a worker's child Run is always bound to its terminal")
	}
	return in.check()
}
