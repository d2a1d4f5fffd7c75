//go:build unix

package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/openapi/api"
)

// reader reads one mailbox. Each check acknowledges the batch before.
type reader struct {
	hand  *hand
	book  *book
	inbox *inbox
	ack   string // of the batch in hand
}

// check returns the next batch; the one before counts as dealt with.
func (r *reader) check(ctx context.Context, wait time.Duration) ([]note, error) {
	in := client.CheckOptions{Ack: r.ack, Wait: wait}
	if r.ack != "" {
		r.inbox.ack()
	}
	out, err := insist(ctx, r.book, r.hand, newRequest("check of "+r.inbox.box),
		func(ctx context.Context, c *client.Client, key client.Option) (*api.CheckResult, error) {
			return c.Check(ctx, r.inbox.box, in, key)
		})
	if err != nil {
		return nil, err
	}
	if r.ack != "" {
		if orNone(out.Acknowledged) != r.ack {
			r.inbox.fault("the ack of %s was answered with %q", r.ack, orNone(out.Acknowledged))
		}
		r.inbox.acked()
	}
	ms := make([]note, len(out.Messages))
	for i, m := range out.Messages {
		ms[i] = noteOf(m)
	}
	r.ack = orNone(out.DeliveryId)
	r.inbox.got(r.ack, ms)
	return ms, nil
}

// cut begins a check, with its ack, and leaves before it is answered.
func (r *reader) cut(ctx context.Context, after time.Duration) error {
	c, err := r.hand.client()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, after)
	defer cancel()
	if r.ack != "" {
		r.inbox.ack()
	}
	// Whatever came of it, nobody is left to know.
	_, _ = c.Check(ctx, r.inbox.box, client.CheckOptions{Ack: r.ack, Wait: time.Minute})
	return nil
}

// crash forgets the batch in hand and the client.
func (r *reader) crash() {
	r.ack = ""
	r.hand.forget()
}

func noteOf(m api.Message) note {
	n := note{id: m.MessageId, from: m.From, kind: string(m.Type), body: m.Body}
	if n.kind != kindDone {
		return n
	}
	var report struct {
		Dispatch string `json:"dispatch_id"`
		Outcome  string `json:"outcome"`
		Evidence string `json:"evidence"`
	}
	if json.Unmarshal(m.Payload, &report) == nil { // one that cannot be read is of no Dispatch
		n.done = done{report.Dispatch, report.Outcome, report.Evidence}
	}
	return n
}

func orNone(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
