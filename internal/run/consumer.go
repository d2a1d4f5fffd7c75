package run

import (
	"fmt"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// ConsumerTx is what a consumer's proof is looked up in.
type ConsumerTx interface {
	store.RunReader
	CallerTx
}

// RequireConsumer returns the Run's present generation if p is its consumer.
// A former consumer gets consumer_fenced, anybody else consumer_required.
func RequireConsumer(tx ConsumerTx, p hub.Principal, id hub.RunID) (int64, error) {
	r, err := tx.Run(id)
	if err != nil {
		return 0, err
	}
	if p.Kind != hub.Operator && p.Kind != hub.DispatchCap {
		return 0, hub.Errorf(hub.CodeOutOfScope, "only the consumer of %s may do this", id)
	}
	if err := Operates(tx, p, id); err != nil {
		return 0, err
	}
	proof, err := Proof(tx, p)
	switch {
	case err != nil:
		return 0, err
	case proof.Run != id:
		return 0, required(tx, r)
	case proof.Generation != r.Generation:
		return 0, fenced(p, r)
	case r.Released:
		return 0, required(tx, r)
	}
	return r.Generation, nil
}

// Proof is the Run and generation that p's context or consumer token stands
// for, zero for neither; both given must agree.
func Proof(tx store.RunReader, p hub.Principal) (hub.ConsumerProof, error) {
	if p.Context == "" {
		return p.Consumer, nil
	}
	b, ok, err := tx.Binding(p.Context)
	if err != nil || !ok {
		return p.Consumer, err
	}
	byContext := hub.ConsumerProof{Run: b.Run, Generation: b.Generation}
	if p.Consumer != (hub.ConsumerProof{}) && p.Consumer != byContext {
		return hub.ConsumerProof{}, hub.Invalid("Wavehub-Consumer", "the token and the terminal stand for different consumers; give one of them")
	}
	return byContext, nil
}

func required(tx store.RunReader, r hub.Run) error {
	e := hub.Errorf(hub.CodeConsumerRequired, "only the consumer of %s may do this; it has %s", r.ID, holder(tx, r))
	e.Hint = "become its consumer, which fences the present one; a consumer token that was sent along is not of this Run"
	return e.WithNext("wavehub", "run", "use", string(r.ID))
}

func holder(tx store.RunReader, r hub.Run) string {
	b, ok, err := tx.Holder(r.ID)
	switch {
	case err == nil && ok:
		return "one bound to the terminal " + b.Context
	case r.Generation == 0:
		return "never had one"
	case r.Released:
		return "none since its terminal took another Run"
	default:
		return fmt.Sprintf("one that holds the consumer token of generation %d", r.Generation)
	}
}

func fenced(p hub.Principal, r hub.Run) error {
	e := hub.Errorf(hub.CodeConsumerFenced, "another consumer has taken %s over (generation %d)", r.ID, r.Generation)
	if p.Kind == hub.DispatchCap { // which takes nothing back
		e.Hint = "what is to be done with it is the new consumer's to say; report what you know with done"
		return e
	}
	e.Hint = "take it back only if you mean to"
	return e.WithNext("wavehub", "run", "use", string(r.ID))
}

// Detail is a Run with its mailbox and the last changes of its binding. Fenced
// says that the binding it was found by is no longer the present one.
type Detail struct {
	Run     hub.Run
	Mailbox store.Mailbox
	Audit   []hub.Audit
	Fenced  bool
}

const auditShown = 20

type detailRx interface {
	store.RunReader
	Mailbox(hub.Box) (store.Mailbox, error)
}

// Show reads one Run.
func Show(rx detailRx, id hub.RunID) (Detail, error) {
	r, err := rx.Run(id)
	if err != nil {
		return Detail{}, err
	}
	mb, err := rx.Mailbox(id.Box())
	if err != nil {
		return Detail{}, err
	}
	rows, err := rx.Audits(id, auditShown)
	return Detail{Run: r, Mailbox: mb, Audit: rows}, err
}

// unbound tells a caller that no Run is its own.
func unbound(p hub.Principal) error {
	e := hub.Errorf(hub.CodeRunRequired, "no Run is named and this caller is bound to none")
	e = e.WithNext("wavehub", "run", "create", "--objective", "Describe the goal")
	if p.Kind == hub.DispatchCap { // which uses no other
		e.Hint = "create one"
		return e
	}
	e.Hint = "create one, or use one that exists"
	return e.WithNext("wavehub", "run", "list")
}

type currentRx interface {
	detailRx
	CallerTx
}

// Current reads the Run that p is or was bound to.
func Current(rx currentRx, p hub.Principal) (Detail, error) {
	proof, err := Proof(rx, p)
	if err != nil {
		return Detail{}, err
	}
	if proof.Run == "" {
		return Detail{}, unbound(p)
	}
	if err := Operates(rx, p, proof.Run); err != nil {
		return Detail{}, err
	}
	d, err := Show(rx, proof.Run)
	d.Fenced = err == nil && d.Run.Generation != proof.Generation
	return d, err
}
