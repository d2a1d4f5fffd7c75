package run

import (
	"context"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

// Tokens derives the consumer token of a generation and hashes tokens; both
// are pure, so a replayed answer derives the same secret again.
type Tokens interface {
	Consumer(run hub.RunID, generation int64) string
	Sum(token string) string
}

// Service is the Runs' use-cases behind the receipt gate.
type Service struct {
	Store  store.Store
	Tokens Tokens
}

// How Create treats the caller's context.
const (
	BindAuto   = "auto"   // bind it if it is free, else already_bound
	BindRebind = "rebind" // bind it, releasing what it was bound to
	BindNone   = "none"   // no consumer: generation 0
)

// CreateInput is the argument of Create.
type CreateInput struct {
	Objective string    `json:"objective"`
	Bind      string    `json:"bind"`
	Context   string    `json:"context"`
	Parent    hub.RunID `json:"parent"`
}

// Bound is a Run and the binding that the call made, nil if it made none.
type Bound struct {
	Run      hub.Run      `json:"run"`
	Binding  *Bond        `json:"binding"`
	Mutation hub.Mutation `json:"mutation"`
}

// Mut returns the mutation, for the receipt gate.
func (b *Bound) Mut() *hub.Mutation { return &b.Mutation }

// Subject is the Run.
func (b *Bound) Subject() (hub.RunID, string) { return b.Run.ID, string(b.Run.ID) }

// Bond is one consumer generation. Token is derived for every answer and never
// stored; it is empty once the generation is fenced.
type Bond struct {
	Run        hub.RunID `json:"run_id"`
	Generation int64     `json:"generation"`
	Token      string    `json:"-"`
	// Withheld says that the consumer is known by its terminal and is never
	// given the token.
	Withheld bool `json:"withheld,omitempty"`
}

// MaxObjectiveBytes bounds the objective of a Run.
const MaxObjectiveBytes = 4096

type createTx interface {
	store.Runs
	store.Credentials
	PutMailbox(store.Mailbox) error
	Now() hub.Micros
	Signal(hub.Signal)
}

// Create makes a Run with its mailbox and, unless told otherwise, binds the
// context at generation 1.
func Create(tx createTx, tok Tokens, p hub.Principal, in CreateInput) (Bound, error) {
	if err := in.check(); err != nil {
		return Bound{}, err
	}
	if err := refuseBound(tx, in); err != nil {
		return Bound{}, err
	}
	r := hub.Run{ID: hub.NewRunID(), Objective: in.Objective, Parent: in.Parent, CreatedAt: tx.Now()}
	if err := nest(tx, &r); err != nil {
		return Bound{}, err
	}
	if err := put(tx, p, r); err != nil {
		return Bound{}, err
	}
	if in.Bind == BindNone {
		return Bound{Run: r}, nil
	}
	return bind(tx, tok, p, r, in.Context)
}

// put stores a new Run with its mailbox.
func put(tx createTx, p hub.Principal, r hub.Run) error {
	if err := tx.PutRun(r); err != nil {
		return err
	}
	if err := tx.PutMailbox(store.Mailbox{Box: r.ID.Box()}); err != nil {
		return err
	}
	return audit(tx, r, "created", p)
}

func (in CreateInput) check() error {
	if strings.TrimSpace(in.Objective) == "" {
		return hub.Invalid("objective", "say in a sentence what the Run is for")
	}
	switch in.Bind {
	case "", BindAuto, BindRebind, BindNone:
	default:
		return hub.Invalid("bind", "must be auto, rebind or none")
	}
	return hub.CheckText("objective", in.Objective, MaxObjectiveBytes)
}

func refuseBound(tx store.RunReader, in CreateInput) error {
	if in.Context == "" || in.Bind == BindRebind || in.Bind == BindNone {
		return nil
	}
	b, ok, err := tx.Binding(in.Context)
	if err != nil || !ok {
		return err
	}
	r, err := tx.Run(b.Run)
	if err != nil || r.Generation != b.Generation {
		return err
	}
	e := hub.Errorf(hub.CodeAlreadyBound, "this terminal is bound to %s (%s)", r.ID, r.Objective)
	e.Hint = "use that Run, or create another one with --bind to release it"
	return e.WithNext("wavehub", "run", "show", string(r.ID))
}

func nest(tx store.RunReader, r *hub.Run) error {
	if r.Parent == "" {
		return nil
	}
	parent, err := tx.Run(r.Parent)
	if err != nil {
		return err
	}
	if r.Depth = parent.Depth + 1; r.Depth > hub.MaxRunDepth {
		return tooDeep()
	}
	return nil
}

func tooDeep() error {
	return hub.Invalid("parent_run_id", "child Runs nest at most %d deep", hub.MaxRunDepth)
}

type bindTx interface {
	store.Runs
	store.Credentials
	Now() hub.Micros
	Signal(hub.Signal)
}

// bind raises the generation and makes the context (if any) its consumer.
func bind(tx bindTx, tok Tokens, p hub.Principal, r hub.Run, context string) (Bound, error) {
	if err := release(tx, p, context, r.ID); err != nil {
		return Bound{}, err
	}
	r.Generation, r.Released = r.Generation+1, false
	if err := tx.SaveRun(r); err != nil {
		return Bound{}, err
	}
	if context != "" {
		b := hub.Binding{Run: r.ID, Generation: r.Generation, Context: context, At: tx.Now()}
		if err := tx.SetBinding(b); err != nil {
			return Bound{}, err
		}
	}
	sum := tok.Sum(tok.Consumer(r.ID, r.Generation))
	cred := store.Credential{Sum: sum, Kind: store.CredConsumer, Subject: string(r.ID), Generation: r.Generation}
	if err := tx.PutCredential(cred); err != nil {
		return Bound{}, err
	}
	if err := audit(tx, r, "bound", p); err != nil {
		return Bound{}, err
	}
	return Bound{Run: r, Binding: &Bond{Run: r.ID, Generation: r.Generation}}, nil
}

// release ends the generation whose consumer the context was: the Run keeps it
// and has no consumer, so that the token of that generation is good for nothing
// any more.
func release(tx bindTx, p hub.Principal, context string, next hub.RunID) error {
	if context == "" {
		return nil
	}
	b, ok, err := tx.Binding(context)
	if err != nil || !ok || b.Run == next {
		return err
	}
	former, err := tx.Run(b.Run)
	if err != nil || former.Generation != b.Generation {
		return err
	}
	former.Released = true
	if err := tx.SaveRun(former); err != nil {
		return err
	}
	tx.Signal(hub.Signal{Topic: hub.TopicMailbox, Key: string(former.ID.Box())})
	return audit(tx, former, "released", p)
}

func audit(tx bindTx, r hub.Run, action string, p hub.Principal) error {
	return tx.AddAudit(hub.Audit{
		Run: r.ID, At: tx.Now(), Action: action, Principal: p.Name(), Context: p.Context, Generation: r.Generation,
	})
}

type useTx interface {
	bindTx
	batchTx
}

// Use makes the caller the Run's consumer: it raises the generation, fences
// the outstanding Delivery and wakes the former consumer's waiter.
func Use(tx useTx, tok Tokens, p hub.Principal, id hub.RunID, context string) (Bound, error) {
	r, err := tx.Run(id)
	if err != nil {
		return Bound{}, err
	}
	if err := FenceBatch(tx, id.Box()); err != nil {
		return Bound{}, err
	}
	tx.Signal(hub.Signal{Topic: hub.TopicMailbox, Key: string(id.Box())})
	return bind(tx, tok, p, r, context)
}

type batchTx interface {
	Mailbox(hub.Box) (store.Mailbox, error)
	SaveMailbox(store.Mailbox) error
	Delivery(hub.DeliveryID) (hub.Delivery, bool, error)
	SaveDelivery(hub.Delivery) error
}

// FenceBatch fences the outstanding Delivery of a mailbox, if there is one: its
// messages come again, under another id, to the next consumer.
func FenceBatch(tx batchTx, box hub.Box) error {
	mb, err := tx.Mailbox(box)
	if err != nil || mb.Outstanding == "" {
		return err
	}
	d, _, err := tx.Delivery(mb.Outstanding)
	if err != nil {
		return err
	}
	d.State = hub.FencedBatch
	if err := tx.SaveDelivery(d); err != nil {
		return err
	}
	mb.Outstanding = ""
	return tx.SaveMailbox(mb)
}

// Create is the verb behind the gate. A worker creates its child Run.
func (s *Service) Create(ctx context.Context, r receipt.Request, in CreateInput) (Bound, error) {
	b, err := receipt.Do(ctx, s.Store, store.New, r, func(tx store.Tx) (Bound, error) {
		if r.Principal.Kind == hub.DispatchCap {
			return CreateChild(tx, s.Tokens, r.Principal, in)
		}
		return Create(tx, s.Tokens, r.Principal, in)
	})
	return s.withToken(ctx, b, err)
}

// Use is the verb behind the gate.
func (s *Service) Use(ctx context.Context, r receipt.Request, id hub.RunID, context string) (Bound, error) {
	b, err := receipt.Do(ctx, s.Store, store.Settle, r, func(tx store.Tx) (Bound, error) {
		return Use(tx, s.Tokens, r.Principal, id, context)
	})
	return s.withToken(ctx, b, err)
}

// withToken gives an answer the secret of its binding.
func (s *Service) withToken(ctx context.Context, b Bound, err error) (Bound, error) {
	if err != nil || b.Binding == nil {
		return b, err
	}
	err = s.Store.View(ctx, func(rx store.Rx) (err error) {
		b.Binding.Token, err = s.Token(rx, *b.Binding)
		return err
	})
	return b, err
}

// Token derives the secret of a generation, "" for one that is not the present
// one any more or has been released, and for one that is withheld.
func (s *Service) Token(rx store.RunReader, b Bond) (string, error) {
	r, err := rx.Run(b.Run)
	if err != nil || b.Withheld || r.Generation != b.Generation || r.Released {
		return "", err
	}
	return s.Tokens.Consumer(b.Run, b.Generation), nil
}
