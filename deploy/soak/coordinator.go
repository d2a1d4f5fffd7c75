//go:build unix

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/openapi/api"
)

// coordinator owns one Run: it reads its mailbox, answers, guides, and starts a
// worker for each that ended. Two goroutines play it: readAll and hireAll.
type coordinator struct {
	*soak
	number    int
	run, dir  string
	operator  *hand // of calls that need no consumer
	read      reader
	vacancies chan vacancy
	rng       *rand.Rand // readAll's

	mu    sync.Mutex
	token client.Secret     // guarded by mu: the consumer's
	team  map[string]string // guarded by mu: the Tasks of the Dispatches that it takes for live
}

// hireCoordinators creates the Runs, and hires their first workers one after
// another.
func (s *soak) hireCoordinators(ctx context.Context) ([]*coordinator, error) {
	var all []*coordinator
	for n := range s.coordinators {
		team := s.workers / s.coordinators
		if n < s.workers%s.coordinators {
			team++
		}
		c, err := s.newCoordinator(ctx, n, team)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

func (s *soak) newCoordinator(ctx context.Context, n, size int) (*coordinator, error) {
	c := &coordinator{
		soak: s, number: n, dir: filepath.Join(s.dir, fmt.Sprintf("team-%d", n)), team: map[string]string{},
		vacancies: make(chan vacancy, size), rng: s.rng(uint64(1 + 2*n)),
	}
	c.operator = c.hand(func() (client.Config, error) { return s.hub.operator("") })
	if err := os.Mkdir(c.dir, 0o700); err != nil {
		return nil, err
	}
	made, err := insist(ctx, s.book, c.operator, newRequest("run create"),
		func(ctx context.Context, h *client.Client, key client.Option) (*api.RunBound, error) {
			return h.CreateRun(ctx, api.RunCreate{Objective: fmt.Sprintf("soak %d", n)}, key)
		})
	if err != nil {
		return nil, err
	}
	c.run = made.Run.RunId
	c.use(made.Binding)
	c.read = reader{hand: c.hand(c.consumer), book: s.book, inbox: s.book.inbox("run:" + c.run)}
	for range size {
		c.vacancies <- vacancy{}
	}
	return c, nil
}

// hand makes a caller; only readAll's goroutine may, for it draws.
func (c *coordinator) hand(config func() (client.Config, error)) *hand {
	return &hand{config: config, rng: rand.New(rand.NewPCG(c.seed, c.rng.Uint64()))}
}

// use makes the binding the coordinator's own and returns the former token.
func (c *coordinator) use(b *api.Binding) (former client.Secret) {
	c.mu.Lock()
	defer c.mu.Unlock()
	former, c.token = c.token, client.Secret(orNone(b.ConsumerToken))
	return former
}

func (c *coordinator) consumer() (client.Config, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hub.operator(c.token)
}

// drainLimit is how many batches can come when nothing is sent any more, and far
// more than that.
const drainLimit = 1000

// readAll reads the mailbox until it is quiet and empty. Now and then the
// coordinator crashes or binds itself anew.
func (c *coordinator) readAll(ctx context.Context) error {
	crash, rebind := time.NewTimer(soon(c.rng, c.tempo.life)), time.NewTimer(soon(c.rng, 2*c.tempo.life))
	defer crash.Stop()
	defer rebind.Stop()
	for drained := 0; ; {
		wait := time.Second
		if closed(c.quiet) {
			wait = 0
			drained++
		}
		ms, err := c.read.check(ctx, wait)
		if err != nil || drained > 0 && len(ms) == 0 {
			return err
		}
		if drained == drainLimit {
			c.book.fault("%s is not empty after %d more batches", c.read.inbox.box, drained)
			return nil
		}
		handled := c.rng.IntN(2) == 0
		select {
		case <-crash.C:
			crash.Reset(soon(c.rng, c.tempo.life))
			err = c.crash(ctx, ms, handled)
		case <-rebind.C:
			rebind.Reset(soon(c.rng, 2*c.tempo.life))
			err = c.rebind(ctx, ms, handled)
		default:
			err = c.handle(ctx, ms)
		}
		if err != nil {
			return err
		}
	}
}

// crash forgets the batch, dealt with or not; or it was leaving, with the ack
// on its way.
func (c *coordinator) crash(ctx context.Context, ms []note, handled bool) error {
	c.book.crashed()
	if handled {
		if err := c.handle(ctx, ms); err != nil {
			return err
		}
		if err := c.read.cut(ctx, upTo(c.rng, 20*time.Millisecond)); err != nil {
			return err
		}
	}
	c.read.crash()
	return nil
}

// rebind becomes the Run's next consumer: all that was not acknowledged has to
// come again, and the former consumer's ack is refused.
func (c *coordinator) rebind(ctx context.Context, ms []note, handled bool) error {
	c.book.rebound()
	if handled {
		if err := c.handle(ctx, ms); err != nil {
			return err
		}
	}
	bound, err := insist(ctx, c.book, c.operator, newRequest("run use"),
		func(ctx context.Context, h *client.Client, key client.Option) (*api.RunBound, error) {
			return h.BindRun(ctx, c.run, key)
		})
	if err != nil {
		return err
	}
	former, delivery := c.use(bound.Binding), c.read.ack
	c.read.crash()
	c.read.inbox.rebound()
	if delivery == "" {
		return nil
	}
	return c.ackLate(ctx, former, delivery)
}

// ackLate acknowledges as the former consumer.
func (c *coordinator) ackLate(ctx context.Context, former client.Secret, delivery string) error {
	h := c.hand(func() (client.Config, error) { return c.hub.operator(former) })
	defer h.forget()
	_, err := insist(ctx, c.book, h, newRequest("late ack"), func(ctx context.Context, h *client.Client, key client.Option) (*api.CheckResult, error) {
		return h.Check(ctx, c.read.inbox.box, client.CheckOptions{Ack: delivery}, key)
	})
	if ctx.Err() == nil {
		c.book.lateAck(isCode(err, client.CodeConsumerFenced))
	}
	return nil
}

func (c *coordinator) handle(ctx context.Context, ms []note) error {
	for _, m := range ms {
		var err error
		switch m.kind {
		case kindQuestion:
			err = c.reply(ctx, m)
		case kindDone:
			c.vacate(m.done.dispatch, m.done.outcome != "succeeded")
		case kindStatus:
			if c.rng.IntN(12) == 0 {
				err = c.guide(ctx, m)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// reply answers a question, the same each time it comes.
func (c *coordinator) reply(ctx context.Context, m note) error {
	body := "the answer to " + m.body
	sent, err := c.give(ctx, m, newRequest("reply"), func(ctx context.Context, h *client.Client, key client.Option) (*api.SendResult, error) {
		return h.Reply(ctx, m.id, api.Reply{Body: body}, key)
	})
	if err != nil || sent == "" {
		return err
	}
	l := c.lifeOf(m)
	if _, before := l.replies[m.id]; !before {
		l.replies[m.id] = body
		l.given = append(l.given, note{id: sent, from: "run:" + c.run, kind: kindAnswer, body: body})
	}
	return nil
}

// guide sends guidance to the sender of a status message, as a reply or not.
func (c *coordinator) guide(ctx context.Context, m note) error {
	l := c.lifeOf(m)
	body := fmt.Sprintf("guidance %d on %s", len(l.given), m.body)
	call := func(ctx context.Context, h *client.Client, key client.Option) (*api.SendResult, error) {
		return h.Send(ctx, api.MessageSend{To: m.from, Type: client.MessageSendTypeGuidance, Subject: "guidance", Body: body}, key)
	}
	if c.rng.IntN(2) == 0 {
		call = func(ctx context.Context, h *client.Client, key client.Option) (*api.SendResult, error) {
			return h.Reply(ctx, m.id, api.Reply{Body: body}, key)
		}
	}
	sent, err := c.give(ctx, m, newRequest("guidance"), call)
	if err == nil && sent != "" {
		l.given = append(l.given, note{id: sent, from: "run:" + c.run, kind: kindGuidance, body: body})
	}
	return err
}

// give sends to the sender of m and returns the message, "" if that has ended.
func (c *coordinator) give(ctx context.Context, m note, r *request, call func(context.Context, *client.Client, client.Option) (*api.SendResult, error)) (string, error) {
	if c.lifeOf(m) == nil {
		c.book.fault("%s %s came from %s, which is no worker", m.kind, m.id, m.from)
		return "", nil
	}
	sent, err := insist(ctx, c.book, c.read.hand, r, call)
	if isCode(err, client.CodeDispatchInactive) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("%s for %s: %w", r.what, m.from, err)
	}
	return sent.Message.MessageId, nil
}

func (c *coordinator) lifeOf(m note) *life {
	return c.book.life(strings.TrimPrefix(m.from, "dispatch:"))
}
