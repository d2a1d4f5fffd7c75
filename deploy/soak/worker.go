//go:build unix

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/capfile"
	"github.com/wavehub/wavehub/openapi/api"
)

// worker is the mind of one Dispatch: its process only waits for its end, and
// all that an agent would say is said here, with the Dispatch's capability.
type worker struct {
	*coordinator
	life *life
	task string
	body effect
	hand *hand
	read reader
	rng  *rand.Rand
	end  time.Time
	said int // numbers what it says
}

// live speaks, listens and ends. What a live worker is refused is wrong.
func (w *worker) live(ctx context.Context) {
	if err := w.play(ctx); err != nil && ctx.Err() == nil {
		w.book.fault("%s: %v", w.life.dispatch, err)
	}
}

func (w *worker) play(ctx context.Context) (err error) {
	if w.body, err = w.witness.await(ctx, w.life.dispatch); err != nil {
		return err
	}
	w.hand = &hand{config: w.capability, rng: rand.New(rand.NewPCG(w.seed, w.rng.Uint64()))}
	defer w.hand.forget()
	w.read = reader{hand: w.hand, book: w.book, inbox: &w.life.mail}
	w.end = time.Now().Add(around(w.rng, w.tempo.life))
	for time.Now().Before(w.end) && pause(ctx, soon(w.rng, w.tempo.think), w.over) {
		if err := w.act(ctx); err != nil {
			return fmt.Errorf("while it lived: %w", err)
		}
	}
	if ctx.Err() != nil {
		return nil // the soak was broken off
	}
	if err := w.die(ctx); err != nil {
		return fmt.Errorf("at its end: %w", err)
	}
	return nil
}

// capability reads the credential as the worker's own tools do, anew after each
// loss: a restarted hub may have another address.
func (w *worker) capability() (client.Config, error) {
	raw, err := os.ReadFile(w.body.capability)
	if err != nil {
		return client.Config{}, err
	}
	cap, err := capfile.Decode(raw)
	return client.Config{URL: cap.URL, Fingerprint: cap.Fingerprint, Token: client.Secret(cap.Token)}, err
}

func (w *worker) act(ctx context.Context) error {
	switch lot := w.rng.IntN(100); {
	case lot < 50:
		return w.say(ctx)
	case lot < 60:
		return w.sayMany(ctx, 2+w.rng.IntN(6))
	case lot < 70:
		return w.ask(ctx)
	case lot < 90:
		return w.listen(ctx)
	default:
		return w.beat(ctx)
	}
}

// listen reads the mailbox. Some workers have forgotten what they read last, and
// have to get it again.
func (w *worker) listen(ctx context.Context) error {
	if w.rng.IntN(10) == 0 {
		w.read.crash()
	}
	_, err := w.read.check(ctx, upTo(w.rng, w.tempo.think))
	return err
}

// next is what the worker says next.
func (w *worker) next(kind string) note {
	w.said++
	return note{from: "dispatch:" + w.life.dispatch, kind: kind, body: fmt.Sprintf("%s %d of %s", kind, w.said, w.life.dispatch)}
}

// accepted notes that the hub has taken n.
func (w *worker) accepted(n note, id string) {
	n.id = id
	w.life.sent = append(w.life.sent, n)
}

func (w *worker) say(ctx context.Context) error {
	n := w.next(kindStatus)
	sent, err := w.send(ctx, api.MessageSend{Type: client.MessageSendTypeStatus, Subject: "status", Body: n.body})
	if err == nil {
		w.accepted(n, sent.Message.MessageId)
	}
	return err
}

func (w *worker) send(ctx context.Context, in api.MessageSend) (*api.SendResult, error) {
	return insist(ctx, w.book, w.hand, newRequest(string(in.Type)), func(ctx context.Context, c *client.Client, key client.Option) (*api.SendResult, error) {
		return c.Send(ctx, in, key)
	})
}

// sayMany sends several messages in one request.
func (w *worker) sayMany(ctx context.Context, n int) error {
	notes, in := make([]note, n), make([]api.MessageSend, n)
	for i := range n {
		notes[i] = w.next(kindStatus)
		in[i] = api.MessageSend{Type: client.MessageSendTypeStatus, Subject: "status", Body: notes[i].body}
	}
	out, err := insist(ctx, w.book, w.hand, newRequest("batch"), func(ctx context.Context, c *client.Client, key client.Option) (*api.BatchResult, error) {
		return c.SendBatch(ctx, in, key)
	})
	if err != nil {
		return err
	}
	if len(out.Results) != n {
		return fmt.Errorf("a batch of %d messages has %d results", n, len(out.Results))
	}
	for i, r := range out.Results {
		w.accepted(notes[i], r.Message.MessageId)
	}
	return nil
}

// ask asks, and waits for the answer in parts, as agents' tools do, until the
// time comes to end.
func (w *worker) ask(ctx context.Context) error {
	question, err := w.question(ctx)
	if err != nil {
		return err
	}
	for time.Now().Before(w.end) && !closed(w.over) {
		got, err := insist(ctx, w.book, w.hand, newRequest("answer"), func(ctx context.Context, c *client.Client, _ client.Option) (*api.Answer, error) {
			return c.Answer(ctx, question, w.tempo.think)
		})
		if err != nil {
			return err
		}
		if !got.TimedOut {
			w.life.asked[len(w.life.asked)-1].answer = orNone(got.Answer)
			return nil
		}
	}
	return nil
}

// question asks without waiting.
func (w *worker) question(ctx context.Context) (id string, err error) {
	n := w.next(kindQuestion)
	sent, err := w.send(ctx, api.MessageSend{Type: client.MessageSendTypeQuestion, Subject: "question", Body: n.body, Options: []string{"yes", "no"}})
	if err != nil {
		return "", err
	}
	w.accepted(n, sent.Message.MessageId)
	w.life.asked = append(w.life.asked, asked{question: sent.Message.MessageId})
	return sent.Message.MessageId, nil
}

func (w *worker) beat(ctx context.Context) error {
	_, err := insist(ctx, w.book, w.hand, newRequest("heartbeat"), func(ctx context.Context, c *client.Client, _ client.Option) (*api.HeartbeatResult, error) {
		return c.Heartbeat(ctx, w.life.dispatch, api.Heartbeat{WaitingFor: api.HeartbeatWaitingForNone})
	})
	return err
}

func (w *worker) fifo() string { return filepath.Join(w.dir, w.life.dispatch) }
