package dispatch

import (
	"context"
	"encoding/json"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
)

// Tokens derives the token of an identity and hashes tokens; both are pure, so
// that a replayed answer derives the same secret again.
type Tokens interface {
	Worker(hub.WorkerID) string
	Sum(token string) string
}

// Identified is an identity as a mutation left it. Token is derived for the
// answer to its registration and never stored; it is "" once it is revoked.
type Identified struct {
	Worker   hub.Worker   `json:"worker"`
	Token    string       `json:"-"`
	Mutation hub.Mutation `json:"mutation"`
}

// Mut returns the mutation, for the receipt gate.
func (i *Identified) Mut() *hub.Mutation { return &i.Mutation }

// Subject is the identity, which belongs to no Run.
func (i *Identified) Subject() (hub.RunID, string) { return "", string(i.Worker.ID) }

// RegisterInput is the argument of Register.
type RegisterInput struct {
	Name string `json:"name"`
}

// Register mints an identity with its mailbox and its token.
func (s *Service) Register(ctx context.Context, r receipt.Request, in RegisterInput) (Identified, error) {
	if err := hub.CheckWorkerName(in.Name); err != nil {
		return Identified{}, err
	}
	out, err := receipt.Do(ctx, s.Store, store.New, r, func(tx store.Tx) (Identified, error) {
		w := hub.Worker{ID: hub.NewWorkerID(), Name: in.Name, State: hub.WorkerActive, Generation: 1, CreatedAt: tx.Now()}
		if err := tx.PutWorker(w); err != nil {
			return Identified{}, err
		}
		if err := tx.PutMailbox(store.Mailbox{Box: w.ID.Box()}); err != nil {
			return Identified{}, err
		}
		return Identified{Worker: w}, tx.PutCredential(store.Credential{
			Sum: s.Tokens.Sum(s.Tokens.Worker(w.ID)), Kind: store.CredWorker, Subject: string(w.ID),
		})
	})
	if err != nil {
		return out, err
	}
	err = s.Store.View(ctx, func(rx store.Rx) (err error) {
		out, err = s.WithToken(rx, out)
		return err
	})
	return out, err
}

// WithToken gives the answer to a registration its secret, unless that has been
// revoked since.
func (s *Service) WithToken(rx store.WorkerReader, out Identified) (Identified, error) {
	w, err := rx.Worker(out.Worker.ID)
	if err == nil && w.State != hub.WorkerRevoked {
		out.Token = s.Tokens.Worker(w.ID)
	}
	return out, err
}

// FindWorker finds an identity by its id, or by its name if it is not revoked.
func FindWorker(rx store.WorkerReader, name string) (hub.Worker, error) {
	if hub.ValidID(hub.PrefixWorker, name) {
		return rx.Worker(hub.WorkerID(name))
	}
	return rx.WorkerByName(name)
}

// TakesWork is the identity of the name if a Dispatch may be given to it now.
func TakesWork(rx store.WorkerReader, name string) (hub.Worker, error) {
	w, err := FindWorker(rx, name)
	switch {
	case err != nil:
		return w, err
	case w.State == hub.WorkerRevoked:
		return w, hub.Errorf(hub.CodeWorkerNotFound, "the identity %s is revoked", w.ID)
	case w.State == hub.WorkerDraining:
		return w, hub.Errorf(hub.CodeWorkerDraining, "%s ends what it has and takes no new Dispatches", w.Name)
	}
	return w, nil
}

// Drain lets the identity end what it has: every later Dispatch is refused. It is
// one transaction, as giving a Dispatch to it is.
func (s *Service) Drain(ctx context.Context, r receipt.Request, name string) (Identified, error) {
	return s.change(ctx, r, name, func(_ store.Tx, w *hub.Worker) error {
		if w.State == hub.WorkerRevoked {
			return hub.Errorf(hub.CodeWorkerNotFound, "the identity %s is revoked", w.ID)
		}
		w.State = hub.WorkerDraining
		return nil
	})
}

// Revoke fences the identity: its token is not known any more and its waits end.
// What it has stays as it is until it is stopped or abandoned.
func (s *Service) Revoke(ctx context.Context, r receipt.Request, name string) (Identified, error) {
	return s.change(ctx, r, name, func(tx store.Tx, w *hub.Worker) error {
		w.State = hub.WorkerRevoked
		tx.Signal(hub.Signal{Topic: hub.TopicWorker, Key: string(w.ID)})
		tx.Signal(hub.Signal{Topic: hub.TopicMailbox, Key: string(w.ID.Box())})
		return tx.DropCredential(s.Tokens.Sum(s.Tokens.Worker(w.ID)))
	})
}

func (s *Service) change(ctx context.Context, r receipt.Request, name string, fn func(store.Tx, *hub.Worker) error) (Identified, error) {
	return receipt.Do(ctx, s.Store, store.Settle, r, func(tx store.Tx) (Identified, error) {
		w, err := FindWorker(tx, name)
		if err != nil {
			return Identified{}, err
		}
		if err := fn(tx, &w); err != nil {
			return Identified{}, err
		}
		return Identified{Worker: w}, tx.SaveWorker(w)
	})
}

// AttachLoop makes the caller the consumer of its identity's mailbox: it raises
// the generation, fences the outstanding Delivery and wakes the former loop.
func (s *Service) AttachLoop(ctx context.Context, r receipt.Request) (Identified, error) {
	return s.change(ctx, r, r.Principal.ID, func(tx store.Tx, w *hub.Worker) error {
		w.Generation++
		tx.Signal(hub.Signal{Topic: hub.TopicMailbox, Key: string(w.ID.Box())})
		return run.FenceBatch(tx, w.ID.Box())
	})
}

// TakeUp notes that the worker has begun those of its Dispatches that are named,
// and what it says that it has used for them, nil for nothing. It returns the ones
// that it has and that have not ended. Others are passed over: a straggler changes
// nothing.
func TakeUp(ctx context.Context, st store.Store, p hub.Principal, ids []hub.DispatchID, usage json.RawMessage) (live []hub.DispatchID, err error) {
	var fresh, used []hub.DispatchID
	err = st.View(ctx, func(rx store.Rx) error {
		for _, id := range ids {
			a, ok, err := rx.WorkerAttachment(hub.WorkerID(p.ID), id)
			if err != nil {
				return err
			}
			if !ok || a.ExitDone {
				continue
			}
			live = append(live, id)
			if !a.TakenUp {
				fresh = append(fresh, id)
			}
			if len(usage) > 0 && string(usage) != a.Agent.Said {
				used = append(used, id)
			}
		}
		return nil
	})
	if err != nil || len(fresh)+len(used) == 0 {
		return live, err
	}
	return live, st.Update(ctx, store.Settle, func(tx store.Tx) error {
		if err := receipt.Authorize(tx, p); err != nil {
			return err
		}
		if err := takeUpAll(tx, hub.WorkerID(p.ID), fresh); err != nil {
			return err
		}
		return usedBy(tx, hub.WorkerID(p.ID), used, usage)
	})
}

func takeUpAll(tx store.Tx, w hub.WorkerID, ids []hub.DispatchID) error {
	for _, id := range ids {
		a, ok, err := tx.WorkerAttachment(w, id)
		if err == nil && ok {
			_, err = takeUp(tx, a)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
