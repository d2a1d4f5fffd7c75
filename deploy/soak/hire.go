//go:build unix

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/openapi/api"
)

// vacancy is a worker to start: for a new Task, or again for one whose last
// Dispatch came to nothing.
type vacancy struct{ task, retryOf string }

// hirePace is the time between two first starts of all coordinators together.
const hirePace = 100 * time.Millisecond

// hireAll fills vacancies until the soak is over. The first come one after
// another.
func (c *coordinator) hireAll(ctx context.Context) error {
	rng := c.soak.rng(uint64(2 + 2*c.number))
	gradually := cap(c.vacancies)
	for {
		if gradually > 0 && !pause(ctx, time.Duration(c.coordinators)*hirePace, c.over) {
			return nil
		}
		gradually--
		select {
		case v := <-c.vacancies:
			if err := c.hire(ctx, rng, v); err != nil {
				return err
			}
		case <-c.over:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// vacate notes that a Dispatch has ended, once.
func (c *coordinator) vacate(dispatch string, retryable bool) {
	c.mu.Lock()
	task, ok := c.team[dispatch]
	delete(c.team, dispatch)
	c.mu.Unlock()
	if !ok {
		return
	}
	c.book.ended()
	v := vacancy{}
	if retryable {
		v = vacancy{task: task, retryOf: dispatch}
	}
	c.vacancies <- v // there is room for all that can be live
}

// hire starts a worker and lets it live.
func (c *coordinator) hire(ctx context.Context, rng *rand.Rand, v vacancy) error {
	task, in := v.task, api.WorkerStart{Worktree: "path:" + c.dir, Agent: "sh", RetryOf: v.retryOf}
	if task == "" || rng.IntN(2) == 0 {
		var err error
		if task, err = c.newTask(ctx); err != nil {
			return err
		}
		in.RetryOf = ""
	}
	r := newRequest("worker start")
	begun := c.book.requested(r.key, task)
	if err := c.start(ctx, begun, r, in); err != nil {
		return err
	}
	if rng.IntN(8) == 0 {
		if err := c.start(ctx, begun, r, in); err != nil { // the same request once more
			return err
		}
	}
	if begun.state == string(api.StartReceiptStateFailed) {
		c.vacancies <- vacancy{task: task, retryOf: begun.dispatch}
		return nil
	}
	l := c.book.born(begun.dispatch)
	c.mu.Lock()
	c.team[begun.dispatch] = task
	c.mu.Unlock()
	w := &worker{coordinator: c, life: l, task: task, rng: rand.New(rand.NewPCG(c.seed, rng.Uint64()))}
	c.lives.Go(func() { w.live(ctx) })
	return nil
}

func (c *coordinator) newTask(ctx context.Context) (string, error) {
	in := api.TaskCreate{Spec: script(c.dir, c.witness.path), Title: "worker"}
	made, err := insist(ctx, c.book, c.operator, newRequest("task create"),
		func(ctx context.Context, h *client.Client, key client.Option) (*api.TaskResult, error) {
			return h.CreateTask(ctx, c.run, in, key)
		})
	if err != nil {
		return "", err
	}
	return made.Task.TaskId, nil
}

// start asks for a worker until it is known whether there is one.
func (c *coordinator) start(ctx context.Context, begun *start, r *request, in api.WorkerStart) error {
	out, err := insist(ctx, c.book, c.operator, r,
		func(ctx context.Context, h *client.Client, key client.Option) (*api.StartReceipt, error) {
			out, err := h.StartWorker(ctx, begun.task, in, key)
			if err == nil && out.State == api.StartReceiptStateOutcomeUnknown {
				err = client.Errorf(client.CodeOutcomeUnknown, "%s", orNone(out.LastError))
			}
			return out, err
		})
	if err != nil {
		return fmt.Errorf("starting a worker for %s: %w", begun.task, err)
	}
	if begun.dispatch != "" && (begun.dispatch != out.DispatchId || begun.state != string(out.State)) {
		c.book.fault("%s was answered with %s %s, then with %s %s", r.key, begun.dispatch, begun.state, out.DispatchId, out.State)
	}
	begun.dispatch, begun.state, begun.cut = out.DispatchId, string(out.State), r.cut
	return nil
}
