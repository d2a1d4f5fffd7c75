package dispatch

import (
	"context"
	"errors"
	"fmt"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

// MaxSendBatch is how many messages one batch takes.
const MaxSendBatch = 100

// SentBatch is the answer to a batch, one entry for each message.
type SentBatch struct {
	Results  []Sent       `json:"results"`
	Mutation hub.Mutation `json:"mutation"`
}

// Mut returns the mutation, for the receipt gate.
func (b *SentBatch) Mut() *hub.Mutation { return &b.Mutation }

// Subject is the first message.
func (b *SentBatch) Subject() (hub.RunID, string) { return b.Results[0].Subject() }

// SendBatch accepts the messages in their order, all of them or none, in one
// transaction. The error of a refused one names it in its field.
func (s *Service) SendBatch(ctx context.Context, r receipt.Request, in []SendInput) (SentBatch, error) {
	if len(in) == 0 || len(in) > MaxSendBatch {
		return SentBatch{}, hub.Invalid("messages", "1 to %d are taken", MaxSendBatch)
	}
	class, ms := store.New, make([]SendInput, len(in))
	for i, m := range in {
		var err error
		if ms[i], err = m.checked(); err != nil {
			return SentBatch{}, ofMessage(i, err)
		}
		class = min(class, m.class())
	}
	return receipt.Do(ctx, s.Store, class, r, func(tx store.Tx) (SentBatch, error) {
		out := SentBatch{Results: make([]Sent, len(ms))}
		for i, m := range ms {
			var err error
			if out.Results[i], err = Accept(tx, r.Principal, m); err != nil {
				return SentBatch{}, ofMessage(i, err)
			}
		}
		for i := range ms {
			if err := s.pace(tx, out.Results[i]); err != nil {
				return SentBatch{}, ofMessage(i, err)
			}
		}
		return out, nil
	})
}

// ofMessage names the message of a batch that an error is about.
func ofMessage(i int, err error) error {
	e, ok := errors.AsType[*hub.Error](err)
	if !ok {
		return err
	}
	named := *e
	named.Field = fmt.Sprintf("messages[%d]", i)
	if e.Field != "" {
		named.Field += "." + e.Field
	}
	return &named
}
