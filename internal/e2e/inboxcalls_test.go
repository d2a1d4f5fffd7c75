//go:build unix

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/openapi/api"
)

// sharedInbox is one Run's mailbox with what its clients tell each other. It is
// safe for concurrent use.
type sharedInbox struct {
	run      Coordinator
	operator *client.Client
	cfg      client.Config

	mu        sync.Mutex       // guards what follows
	consumers []*client.Client // by generation; nil where nobody knows the token
	batches   []string         // Deliveries, in the order in which somebody was told
	bodies    rune             // the last one sent
}

func newSharedInbox(t *testing.T, h *Hub) *sharedInbox {
	t.Helper()
	e := h.Endpoint()
	x := &sharedInbox{run: h.NewRun("history"), operator: h.Client(""), bodies: 'a' - 1}
	x.cfg = client.Config{URL: e.URL, Fingerprint: e.Fingerprint, Token: client.Secret(h.Token())}
	must(t, x.bound(1, &x.run.Token))
	t.Cleanup(x.close)
	return x
}

func (x *sharedInbox) close() {
	for _, c := range x.consumers {
		if c != nil {
			c.Close()
		}
	}
}

// bound notes a generation and its token, nil if that was fenced at once.
func (x *sharedInbox) bound(gen int64, token *string) error {
	var c *client.Client
	if token != nil {
		cfg := x.cfg
		cfg.Consumer = client.Secret(*token)
		var err error
		if c, err = client.New(cfg); err != nil {
			return err
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for int64(len(x.consumers)) <= gen {
		x.consumers = append(x.consumers, nil)
	}
	x.consumers[gen] = c
	return nil
}

// consumer is the newest generation that is known, or at times a former one.
func (x *sharedInbox) consumer(rng *rand.Rand) (gen int64, c *client.Client) {
	x.mu.Lock()
	defer x.mu.Unlock()
	last := len(x.consumers)
	if rng.IntN(8) == 0 {
		last = 2 + rng.IntN(last-1)
	}
	for last--; x.consumers[last] == nil; last-- {
	}
	return int64(last), x.consumers[last]
}

// number is the rune of a Delivery, 0 for none.
func (x *sharedInbox) number(batch *string) rune {
	if batch == nil {
		return 0
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	at := slices.Index(x.batches, *batch)
	if at < 0 {
		at, x.batches = len(x.batches), append(x.batches, *batch)
	}
	return rune(at + 1)
}

// batch is the newest Delivery or at times an older one, 0 before the first.
func (x *sharedInbox) batch(rng *rand.Rand) rune {
	x.mu.Lock()
	defer x.mu.Unlock()
	last := len(x.batches)
	if last > 0 && rng.IntN(5) == 0 {
		last = 1 + rng.IntN(last)
	}
	return rune(last)
}

func (x *sharedInbox) id(batch rune) string {
	if batch == 0 {
		return ""
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.batches[batch-1]
}

func (x *sharedInbox) nextBody() rune {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.bodies++
	return x.bodies
}

// tell makes one call and notes it in the history.
func (x *sharedInbox) tell(ctx context.Context, a *asker, in inboxIn, call func(client.Option) (inboxOut, error)) (inboxOut, error) {
	began := a.now()
	var out inboxOut
	lost, err := a.mutate(ctx, func(key client.Option) (err error) {
		out, err = call(key)
		return err
	})
	for _, code := range []client.Code{client.CodeConsumerFenced, client.CodeStaleDelivery} {
		if isCode(err, code) {
			out.Code, err = code, nil
		}
	}
	if err != nil {
		return out, fmt.Errorf("%+v: %w", in, err)
	}
	out.Lost = lost
	a.note(began, in, out, lost)
	return out, nil
}

func (x *sharedInbox) send(ctx context.Context, a *asker) error {
	in := inboxIn{Op: "send", Body: x.nextBody()}
	_, err := x.tell(ctx, a, in, func(key client.Option) (inboxOut, error) {
		r, err := x.operator.Send(ctx, message(x.run, "status", string(in.Body)), key)
		if err != nil {
			return inboxOut{}, err
		}
		return inboxOut{Seq: r.Message.Seq}, nil
	})
	return err
}

func (x *sharedInbox) use(ctx context.Context, a *asker) error {
	_, err := x.tell(ctx, a, inboxIn{Op: "use"}, func(key client.Option) (inboxOut, error) {
		r, err := x.operator.BindRun(ctx, x.run.Run, key)
		if err != nil {
			return inboxOut{}, err
		}
		return inboxOut{Gen: r.Binding.Generation}, x.bound(r.Binding.Generation, r.Binding.ConsumerToken)
	})
	return err
}

func (x *sharedInbox) check(ctx context.Context, a *asker, ack rune, limit int) (inboxOut, error) {
	gen, c := x.consumer(a.rng)
	in := inboxIn{Op: "check", Gen: gen, Ack: ack, Limit: limit}
	return x.tell(ctx, a, in, func(key client.Option) (inboxOut, error) {
		r, err := c.Check(ctx, x.run.Box(), client.CheckOptions{Ack: x.id(ack), Limit: limit}, key)
		if err != nil {
			return inboxOut{}, err
		}
		return x.received(r)
	})
}

func (x *sharedInbox) received(r *api.CheckResult) (inboxOut, error) {
	out := inboxOut{Batch: x.number(r.DeliveryId), Replayed: r.Replayed, Behind: r.WaitingBehind}
	for i, m := range r.Messages {
		if i == 0 {
			out.Seq = m.Seq
		}
		if m.Seq != out.Seq+int64(i) || len(r.Messages) != r.Count {
			return out, fmt.Errorf("a batch of %d has the sequence %d behind %d", r.Count, m.Seq, out.Seq)
		}
		out.Bodies += m.Body
	}
	return out, nil
}
