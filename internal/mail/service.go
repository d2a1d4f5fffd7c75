package mail

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

// Access proves who may consume and read a mailbox.
type Access interface {
	// Consume returns the caller's generation and the mailbox's Run if p is
	// the consumer of the box.
	Consume(tx AccessTx, p hub.Principal, box hub.Box) (generation int64, run hub.RunID, err error)
	// Proven is the generation that p's proof stands for, fenced or not.
	Proven(tx AccessTx, p hub.Principal, box hub.Box) (int64, error)
	// Read returns the mailbox's Run if p may read its history.
	Read(tx AccessTx, p hub.Principal, box hub.Box) (hub.RunID, error)
	// Consumed is told, in its transaction, which Delivery an ack consumed.
	Consumed(tx store.Tx, d hub.Delivery) error
}

// AccessTx is what Access may look at.
type AccessTx interface {
	store.RunReader
	store.AttachmentReader
	store.CredentialReader
	store.WorkerReader
	Peer(hub.PeerID) (hub.Peer, error)
}

// Bus wakes waiters after a commit.
type Bus interface {
	Subscribe(topic, key string) (woken <-chan struct{}, cancel func())
}

// Service is the mailboxes' use-cases.
type Service struct {
	Store  store.Store
	Access Access
	Bus    Bus
	// Draining is closed when the hub stops; waits end with hub_draining.
	Draining <-chan struct{}

	waiters   waiters
	listeners listeners
	flights   receipt.Flights
}

// Check acknowledges in.Ack, then returns the next batch, waiting for it up to
// in.WaitMS. If ctx ends while it waits, the recorded ack stays.
func (s *Service) Check(ctx context.Context, r receipt.Request, in CheckInput) (Batch, error) {
	if err := in.Validate(); err != nil {
		return Batch{}, err
	}
	for {
		fl, mine, err := s.flights.Join(r)
		if err != nil {
			return Batch{}, err
		}
		if mine {
			b, err := s.check(ctx, r, in)
			s.flights.Land(fl, b, err)
			return b, err
		}
		answer, err := fl.Wait(ctx)
		if ctx.Err() != nil || err != nil && !errors.Is(err, context.Canceled) {
			return Batch{}, errors.Join(err, ctx.Err())
		}
		if err == nil {
			return s.joined(ctx, r.Principal, in.Box, answer.(Batch))
		}
		// Its caller left before there was an answer: this call takes its place.
	}
}

// joined hands the answer of an equal request on, to the same consumer only.
func (s *Service) joined(ctx context.Context, p hub.Principal, box hub.Box, b Batch) (Batch, error) {
	err := s.Store.View(ctx, func(rx store.Rx) error { return s.sameConsumer(rx, p, box, b.generation) })
	if err != nil {
		return Batch{}, err
	}
	b.Mutation.Replayed = true
	return b, nil
}

func (s *Service) check(ctx context.Context, r receipt.Request, in CheckInput) (Batch, error) {
	if in.WaitMS == 0 {
		return s.ackAndLook(ctx, r, in, false)
	}
	recorded, ok, err := s.recorded(ctx, r, in.Box)
	if err != nil || ok {
		return recorded, err
	}
	release, gen, err := s.claim(ctx, r.Principal, in.Box)
	if err != nil {
		return Batch{}, err
	}
	defer release()
	defer s.listeners.enter(in.Box)()
	if r.Principal.Kind == hub.AttachedWorker {
		r.Principal.Generation = gen // a loop that attaches meanwhile fences this wait
	}
	woken, cancel := s.Bus.Subscribe(string(hub.TopicMailbox), string(in.Box))
	defer cancel()
	deadline := time.NewTimer(time.Duration(in.WaitMS) * time.Millisecond)
	defer deadline.Stop()
	for {
		b, err := s.ackAndLook(ctx, r, in, true)
		if err != nil || b.Delivery != "" || b.Mutation.Replayed {
			return b, err
		}
		select {
		case <-woken:
		case <-deadline.C:
			return s.timedOut(ctx, r, b)
		case <-ctx.Done():
			return b, errors.Join(ctx.Err(), s.cut(r, b))
		case <-s.Draining:
			return b, errors.Join(hub.Errorf(hub.CodeHubDraining, "the hub is stopping; nothing was consumed"), s.cut(r, b))
		}
	}
}

// recorded is the answer of a check that is on record as finished: it waits for
// nobody and takes nobody's place.
func (s *Service) recorded(ctx context.Context, r receipt.Request, box hub.Box) (b Batch, ok bool, err error) {
	err = s.Store.View(ctx, func(rx store.Rx) error {
		rec, found, err := receipt.Find(rx, r)
		if err != nil || !found {
			return err
		}
		b, ok, err = s.answered(rx, r.Principal, box, rec)
		return err
	})
	return b, ok, err
}

func (s *Service) claim(ctx context.Context, p hub.Principal, box hub.Box) (release func(), gen int64, err error) {
	err = s.Store.View(ctx, func(rx store.Rx) error {
		if gen, _, err = s.Access.Consume(rx, p, box); err != nil {
			return err
		}
		_, err = rx.Mailbox(box)
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	release, err = s.waiters.claim(box, gen, time.Now())
	return release, gen, err
}

// ackAndLook is one transaction. waiting says that the caller goes on waiting
// if there is no mail: an ack is then recorded as running.
func (s *Service) ackAndLook(ctx context.Context, r receipt.Request, in CheckInput, waiting bool) (Batch, error) {
	var b Batch
	err := s.Store.Update(ctx, store.Settle, func(tx store.Tx) error {
		rec, found, err := receipt.Find(tx, r)
		if err != nil {
			return err
		}
		if found {
			var ok bool
			if b, ok, err = s.answered(tx, r.Principal, in.Box, rec); err != nil || ok {
				return err
			}
		}
		b, err = s.step(tx, r, in, found, waiting)
		return err
	})
	return b, err
}

func (s *Service) step(tx store.Tx, r receipt.Request, in CheckInput, found, waiting bool) (Batch, error) {
	gen, run, err := s.Access.Consume(tx, r.Principal, in.Box)
	if err != nil {
		return Batch{}, err
	}
	if in.Ack != "" && !found {
		consumed, err := ack(tx, in.Box, gen, in.Ack)
		if err == nil && consumed != nil {
			err = s.Access.Consumed(tx, *consumed)
		}
		if err != nil {
			return Batch{}, err
		}
	}
	b, err := look(tx, gen, in, waiting)
	if err != nil {
		return Batch{}, err
	}
	b.Run, b.Acknowledged, b.generation = run, in.Ack, gen
	b.Mutation.RequestID = r.Key
	if b.Messages == nil {
		b.Messages = []hub.Message{}
	}
	return b, s.record(tx, r, b, found, waiting && b.Delivery == "")
}

// record keeps what the check changed; a step that changed nothing is not kept.
func (s *Service) record(tx store.Tx, r receipt.Request, b Batch, found, running bool) error {
	state := store.ReceiptDone
	if running {
		state = store.ReceiptRunning
	}
	if b.Delivery == "" && (b.Acknowledged == "" || found) {
		return nil
	}
	rec, err := recordOf(tx, r, state, b)
	if err != nil {
		return err
	}
	if found {
		return receipt.Save(tx, rec)
	}
	return tx.PutReceipt(rec)
}

func recordOf(tx store.Tx, r receipt.Request, state store.ReceiptState, b Batch) (store.Receipt, error) {
	rec, err := r.Record(tx.Now(), state, &b)
	rec.Generation = b.generation
	return rec, err
}

type replayTx interface {
	AccessTx
	store.MailReader
}

// answered rebuilds the answer of a check from its record, for the consumer
// that it was given to, fenced since or not. It is false while the request goes
// on: it is under way, or its wait was cut before there was anything to answer.
func (s *Service) answered(tx replayTx, p hub.Principal, box hub.Box, rec store.Receipt) (b Batch, ok bool, err error) {
	if rec.State != store.ReceiptDone {
		return b, false, nil
	}
	if err := json.Unmarshal(rec.Body, &b); err != nil || b.ConnectionLost {
		return Batch{}, false, err
	}
	if err := s.sameConsumer(tx, p, box, rec.Generation); err != nil {
		return Batch{}, false, err
	}
	b.generation, b.Mutation.Replayed, b.Messages = rec.Generation, true, []hub.Message{}
	if b.Delivery == "" {
		return b, true, nil
	}
	d, _, err := tx.Delivery(b.Delivery)
	if err != nil {
		return b, false, err
	}
	b.Messages, err = tx.Between(d.Box, d.FirstSeq, d.LastSeq)
	return b, true, err
}

func (s *Service) sameConsumer(tx AccessTx, p hub.Principal, box hub.Box, generation int64) error {
	proven, err := s.Access.Proven(tx, p, box)
	if err == nil && proven != generation {
		err = hub.OtherConsumer(generation)
	}
	return err
}

// cut ends the wait of a recorded ack that nobody can be answered any more. A
// repeated request goes on where it was.
func (s *Service) cut(r receipt.Request, b Batch) error {
	b.ConnectionLost = true
	return s.finish(context.Background(), r, b)
}

// timedOut ends a wait.
func (s *Service) timedOut(ctx context.Context, r receipt.Request, b Batch) (Batch, error) {
	b.TimedOut = true
	return b, s.finish(ctx, r, b)
}

// finish makes the record of an ack whose wait found nothing final; without an
// ack nothing is on record.
func (s *Service) finish(ctx context.Context, r receipt.Request, b Batch) error {
	if b.Acknowledged == "" {
		return nil
	}
	return s.Store.Update(ctx, store.Settle, func(tx store.Tx) error {
		rec, err := recordOf(tx, r, store.ReceiptDone, b)
		if err != nil {
			return err
		}
		return receipt.Save(tx, rec)
	})
}
