//go:build unix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/openapi/api"
)

// contested is a Dispatch that several clients want to end. It is safe for
// concurrent use.
type contested struct {
	Worker
	operator, worker *client.Client

	mu    sync.Mutex
	stops int // guarded by mu
}

func (c *contested) nextStop() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stops++
	return c.stops
}

// tell makes one call and notes it in the history.
func (c *contested) tell(ctx context.Context, a *asker, call func(client.Option) (attemptOut, error), ins ...attemptIn) error {
	began := a.now()
	var out attemptOut
	lost, err := a.mutate(ctx, func(key client.Option) (err error) {
		out, err = call(key)
		return err
	})
	if err != nil {
		return fmt.Errorf("%+v: %w", ins, err)
	}
	out.Lost = lost
	for _, in := range ins {
		in.Dispatch = c.DispatchId
		a.note(began, in, out, lost)
	}
	return nil
}

func (c *contested) report(ctx context.Context, a *asker) error {
	in := attemptIn{Op: "report"}
	in.Outcome = []string{"succeeded", "failed", "cancelled"}[a.rng.IntN(3)]
	in.Body = []string{"one", "other"}[a.rng.IntN(2)]
	return c.tell(ctx, a, func(key client.Option) (attemptOut, error) {
		r, err := c.worker.Send(ctx, api.MessageSend{
			Type: "worker_done", Subject: "s", Body: in.Body, TaskId: c.TaskId, DispatchId: c.DispatchId, Outcome: in.Outcome,
		}, key)
		if err != nil {
			return attemptOut{}, err
		}
		return attemptOut{Verdict: orNone(r.Verdict), State: strings.TrimPrefix(r.Reason, "the Dispatch is ")}, nil
	}, in)
}

func (c *contested) stop(ctx context.Context, a *asker) error {
	stop := c.nextStop()
	return c.tell(ctx, a, func(key client.Option) (attemptOut, error) {
		return ended(c.operator.StopWorker(ctx, c.DispatchId, api.WorkerStop{GraceMs: 40}, key))
	}, attemptIn{Op: "fence", Stop: stop}, attemptIn{Op: "end", Stop: stop})
}

func (c *contested) abandon(ctx context.Context, a *asker) error {
	return c.tell(ctx, a, func(key client.Option) (attemptOut, error) {
		return ended(c.operator.AbandonWorker(ctx, c.DispatchId, key))
	}, attemptIn{Op: "abandon"})
}

func ended(r *api.StopResult, err error) (attemptOut, error) {
	if err != nil {
		return attemptOut{}, err
	}
	return attemptOut{State: string(r.State), Already: r.AlreadySettled}, nil
}

// show and task read, so that asking again under another id is the same.
func (c *contested) show(ctx context.Context, a *asker) error {
	return c.tell(ctx, a, func(client.Option) (attemptOut, error) {
		d, err := c.operator.Dispatch(ctx, c.DispatchId)
		if err != nil {
			return attemptOut{}, err
		}
		return attemptOut{State: string(d.Dispatch.State)}, nil
	}, attemptIn{Op: "show"})
}

func (c *contested) task(ctx context.Context, a *asker) error {
	return c.tell(ctx, a, func(client.Option) (attemptOut, error) {
		r, err := c.operator.Task(ctx, c.TaskId)
		if err != nil {
			return attemptOut{}, err
		}
		return attemptOut{State: string(r.Task.State)}, nil
	}, attemptIn{Op: "task"})
}

// live makes two random calls.
func (c *contested) live(ctx context.Context, a *asker) error {
	for range 2 {
		call := c.report
		switch p := a.rng.IntN(100); {
		case p < 20:
			call = c.stop
		case p < 28:
			call = c.abandon
		case p < 40:
			call = c.show
		case p < 52:
			call = c.task
		}
		if err := call(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// contestants are the beginnings of the scripts whose Dispatches are contested:
// half of them do not end at once when they are asked to, so that their stop
// takes time.
var contestants = []string{"", stubborn, "", stubborn, "", stubborn}

const stubborn = "trap '' TERM\n"

// contest starts workers, lets all clients end them at the same time while the
// hub is killed once, and returns how often each state was reached.
func contest(t *testing.T, h *Hub, hist *history, seed uint64) (kills int, ends map[string]int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	run := h.NewRun("contest")
	var all []*contested
	for _, w := range run.heldWorkers(t, contestants...) {
		all = append(all, &contested{Worker: w, operator: h.Client(""), worker: w.Client()})
	}
	until, over := context.WithCancel(ctx)
	var wg sync.WaitGroup
	for i := range historyClients {
		a := hist.asker(rand.New(rand.NewPCG(seed, uint64(i))))
		wg.Go(func() {
			for _, c := range all {
				if err := c.live(ctx, a); err != nil {
					t.Error(err)
				}
			}
		})
	}
	killed := begin(t, func() (int, error) {
		return hist.killing(until, h, rand.New(rand.NewPCG(seed, historyClients)), 1, int64(historyClients*len(all)))
	})
	wg.Wait()
	over()
	got := killed.get(t, startLimit)
	must(t, errors.Join(got.err, ctx.Err()))
	ends = map[string]int{}
	a := hist.asker(rand.New(rand.NewPCG(seed, historyClients+1)))
	for _, c := range all {
		must(t, errors.Join(c.abandon(ctx, a), c.show(ctx, a), c.task(ctx, a)))
		ends[c.mailedOnce(t, run)]++
		c.gate.open(t, 1)
	}
	return got.value, ends
}

// mailedOnce checks that the Run was told of a report that settled the Dispatch
// once, and of nothing else twice. It returns the final state.
func (c *contested) mailedOnce(t *testing.T, run Coordinator) string {
	t.Helper()
	d, err := c.operator.Dispatch(t.Context(), c.DispatchId)
	must(t, err)
	page, err := c.operator.History(t.Context(), run.Box(), "all", []string{"worker_done"}, client.Page{Limit: 200})
	must(t, err)
	n := 0
	for _, m := range page.Messages {
		if !m.Stale && reportOf(m).Dispatch == c.DispatchId {
			n++
		}
	}
	byReport := d.Dispatch.Evidence != nil && *d.Dispatch.Evidence == "report"
	if state := d.Dispatch.State; byReport && n != 1 || state == "abandoned" && n != 0 || n > 1 {
		t.Errorf("%s is %s (by a report: %v) and was mailed %d times", c.DispatchId, state, byReport, n)
	}
	return string(d.Dispatch.State)
}

// TestHistory_Settlement: whoever reports, stops and abandons while the hub is
// killed, the first one settles the Dispatch, everybody is told so, and the Task
// agrees.
func TestHistory_Settlement(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	rounds, first := scaled(t, 2, 12, 120), uint64(time.Now().UnixNano())
	t.Logf("seed: %d", first)
	kills, calls, ends := 0, map[string]int{}, map[string]int{}
	var again, lost int64
	for n := range rounds {
		hist, seed := newHistory(), first+uint64(n)
		killed, ended := contest(t, h, hist, seed)
		hist.judge(t, attemptModel, seed)
		for _, op := range hist.ops {
			calls[strings.TrimSpace(op.Input.(attemptIn).Op+" "+op.Output.(attemptOut).Verdict)]++
		}
		for state, n := range ended {
			ends[state] += n
		}
		kills, again, lost = kills+killed, again+hist.repeated.Load(), lost+hist.lost.Load()
	}
	t.Logf("%d kills; %d Dispatches: %v", kills, rounds*len(contestants), ends)
	t.Logf("calls: %v; %d repeated, %d never answered", calls, again, lost)
}
