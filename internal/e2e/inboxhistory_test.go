//go:build unix

package e2e

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// live makes random calls until the kills are over, at least 30.
func (x *sharedInbox) live(ctx context.Context, a *asker, over <-chan struct{}) (err error) {
	for n := 0; err == nil && (n < 30 || !closed(over)); n++ {
		switch p := a.rng.IntN(100); {
		case p < 50:
			err = x.send(ctx, a)
		case p < 97:
			ack := rune(0)
			if p < 80 {
				ack = x.batch(a.rng)
			}
			_, err = x.check(ctx, a, ack, a.rng.IntN(6))
		default:
			err = x.use(ctx, a)
		}
	}
	return err
}

// empty takes the mailbox over and acknowledges all that is left.
func (x *sharedInbox) empty(ctx context.Context, a *asker) error {
	if err := x.use(ctx, a); err != nil {
		return err
	}
	ack := rune(0)
	for range 1000 {
		out, err := x.check(ctx, a, ack, 0)
		switch {
		case err != nil:
			return err
		case out.Lost || out.Code != "":
			continue
		}
		if ack = out.Batch; ack == 0 {
			return nil
		}
	}
	return errors.New("the mailbox cannot be emptied")
}

// during runs the clients while the hub is killed, and then empties the mailbox.
func (x *sharedInbox) during(t *testing.T, h *Hub, hist *history, seed uint64, kills int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	over := make(chan struct{})
	var wg sync.WaitGroup
	for i := range historyClients {
		a := hist.asker(rand.New(rand.NewPCG(seed, uint64(i))))
		wg.Go(func() {
			if err := x.live(ctx, a, over); err != nil {
				t.Error(err)
			}
		})
	}
	done, err := hist.killing(ctx, h, rand.New(rand.NewPCG(seed, historyClients)), kills, 60)
	close(over)
	wg.Wait()
	if err := errors.Join(err, ctx.Err()); err != nil || done != kills {
		t.Fatalf("%d of %d kills: %v", done, kills, err)
	}
	if err := x.empty(ctx, hist.asker(rand.New(rand.NewPCG(seed, historyClients+1)))); err != nil {
		t.Error(err) // the history may say why
	}
}

// TestHistory_Inbox: whatever clients send, check, acknowledge and take over
// while the hub is killed, one order of the calls explains all answers.
func TestHistory_Inbox(t *testing.T) {
	t.Parallel()
	const killsEach = 2
	h := StartHub(t, "mac")
	runs, first := scaled(t, 3, 8, 60), uint64(time.Now().UnixNano())
	t.Logf("seed: %d, %d kills", first, runs*killsEach)
	calls, again, lost := map[string]int{}, int64(0), int64(0)
	for n := range runs {
		x, hist, seed := newSharedInbox(t, h), newHistory(), first+uint64(n)
		x.during(t, h, hist, seed, killsEach)
		hist.ops = learned(hist.ops)
		hist.judge(t, inboxModel, seed)
		for _, op := range hist.ops {
			calls[kindOf(op.Input.(inboxIn), op.Output.(inboxOut))]++
		}
		again, lost = again+hist.repeated.Load(), lost+hist.lost.Load()
	}
	t.Logf("calls: %v; %d repeated, %d never answered", calls, again, lost)
}

// learned tells of unanswered sends what deliveries show of them. One that was
// delivered has its place, and took effect before that. One that was not, though
// the mailbox was emptied, can only take effect behind everything. The model would
// find this out by itself, but has to try all sends in all orders for it.
func learned(ops []porcupine.Operation) []porcupine.Operation {
	out, last := slices.Clone(ops), int64(0)
	for _, op := range ops {
		if op.Return < forever {
			last = max(last, op.Return)
		}
	}
	for i, op := range out {
		in := op.Input.(inboxIn)
		if in.Op != "send" || !op.Output.(inboxOut).Lost {
			continue
		}
		if seq, before := delivered(ops, in.Body); seq > 0 {
			out[i].Output, out[i].Return = inboxOut{Seq: seq}, before
		} else {
			out[i].Call = last + 1
		}
	}
	return out
}

// delivered is the place of a message, 0 if it never came, and when the first
// answer that held it had come.
func delivered(ops []porcupine.Operation, body rune) (seq, first int64) {
	first = forever
	for _, op := range ops {
		out := op.Output.(inboxOut)
		if at := slices.Index([]rune(out.Bodies), body); at >= 0 && op.Return < first {
			seq, first = out.Seq+int64(at), op.Return
		}
	}
	return seq, first
}

func kindOf(in inboxIn, out inboxOut) string {
	if in.Ack != 0 {
		in.Op = "ack"
	}
	return strings.TrimSpace(in.Op + " " + string(out.Code))
}
