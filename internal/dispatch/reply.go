package dispatch

import (
	"context"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/mail"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
)

// ReplyInput answers a message of a Run's mailbox.
type ReplyInput struct {
	Message hub.MessageID `json:"message_id"`
	Subject string        `json:"subject"`
	Body    string        `json:"body"`
}

// Reply answers a question, or sends guidance to the sender of any other
// message. Only the Run's consumer may.
func (s *Service) Reply(ctx context.Context, r receipt.Request, in ReplyInput) (Sent, error) {
	if err := hub.CheckMessage(hub.Message{Subject: in.Subject, Body: in.Body}); err != nil {
		return Sent{}, err
	}
	out, err := receipt.Do(ctx, s.Store, store.Settle, r, func(tx store.Tx) (Sent, error) {
		out, err := reply(tx, r.Principal, in)
		if err == nil {
			err = s.pace(tx, out)
		}
		return out, err
	})
	if err == nil && out.Mutation.Replayed {
		err = s.sameConsumer(ctx, r.Principal, out)
	}
	if err != nil {
		return Sent{}, err
	}
	return out, nil
}

// sameConsumer hands a recorded reply to the generation that made it only.
func (s *Service) sameConsumer(ctx context.Context, p hub.Principal, made Sent) error {
	return s.Store.View(ctx, func(rx store.Rx) error {
		proof, err := run.Proof(rx, p)
		if err == nil && (proof != hub.ConsumerProof{Run: made.Run, Generation: made.Generation}) {
			err = hub.OtherConsumer(made.Generation)
		}
		return err
	})
}

func reply(tx store.Tx, p hub.Principal, in ReplyInput) (Sent, error) {
	m, err := tx.Message(in.Message)
	if err != nil {
		return Sent{}, err
	}
	id, ok := m.To.Run()
	if !ok {
		return Sent{}, hub.Errorf(hub.CodeMessageNotFound, "%s is not in a Run's mailbox", m.ID)
	}
	gen, err := run.RequireConsumer(tx, p, id)
	if err != nil {
		return Sent{}, err
	}
	out, err := replyTo(tx, id, m, in)
	out.Run, out.Generation = id, gen
	return out, err
}

func replyTo(tx store.Tx, id hub.RunID, m hub.Message, in ReplyInput) (Sent, error) {
	sender, ok := hub.Box(m.From).Dispatch()
	if !ok {
		return Sent{}, hub.Invalid("id", "%s was not sent by a Dispatch; there is nobody to reply to", m.ID)
	}
	d, err := tx.Dispatch(sender)
	if err != nil {
		return Sent{}, err
	}
	back := hub.Message{
		ID: hub.NewMessageID(), From: string(id.Box()), Type: hub.TypeGuidance, Subject: in.Subject, Body: in.Body,
		Thread: threadOf(m), ReplyTo: m.ID, CreatedAt: tx.Now(),
	}
	if m.Type == hub.TypeQuestion {
		return answer(tx, d, m, back)
	}
	return sendToWorker(tx, d, back)
}

func threadOf(m hub.Message) hub.MessageID {
	if m.Thread != "" {
		return m.Thread
	}
	return m.ID
}

// answer records the first answer and brings it to the asker.
func answer(tx store.Tx, d hub.Dispatch, question, m hub.Message) (Sent, error) {
	q, err := tx.Question(question.ID)
	if err != nil {
		return Sent{}, err
	}
	m.Type, m.Run, m.To = hub.TypeAnswer, d.Run, d.ID.Box()
	changed, err := mail.Answer(tx, q, m.Body, m.ID)
	if err != nil {
		return Sent{}, err
	}
	if !changed {
		return sentBefore(tx, q.AnswerID, d.Local())
	}
	out := sentOf(m)
	if d.Local() {
		out.Seq, err = appendLocal(tx, d.ID, m)
		return out, err
	}
	if err := Reachable(tx, d); err != nil {
		return out, err
	}
	out.State = SentQueued
	item := hub.AnswerItem{Question: q.Message, Message: m.ID, Body: m.Body}
	if err := enqueue(tx, toWorker(d), hub.ItemAnswer, m.ID, item); err != nil {
		return out, err
	}
	return out, tx.Record(m)
}
