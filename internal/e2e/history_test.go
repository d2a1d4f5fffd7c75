//go:build unix

package e2e

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/id"
)

// historyClients is how many clients call at the same time.
const historyClients = 8

// forever is when an operation returns whose answer never came. It may have its
// effect at any time after its call. That it had none is the same as an effect
// behind everything that was seen, so models need no case for that.
const forever = math.MaxInt64

// history collects what concurrent clients asked and were told, for porcupine.
// An operation lasts from its first try to its answer, over all repetitions. It
// is safe for concurrent use.
type history struct {
	began    time.Time
	askers   atomic.Int64 // numbers given to askers
	answered atomic.Int64
	repeated atomic.Int64 // calls made again because no answer came
	lost     atomic.Int64 // operations that were never answered

	mu  sync.Mutex
	ops []porcupine.Operation // guarded by mu
}

func newHistory() *history { return &history{began: time.Now()} }

func (h *history) now() int64 { return int64(time.Since(h.began)) }

// asker is one client of a history; it makes one call at a time.
type asker struct {
	*history
	number int // in drawings
	rng    *rand.Rand
}

func (h *history) asker(rng *rand.Rand) *asker {
	a := &asker{history: h, rng: rng}
	a.renew()
	return a
}

func (a *asker) renew() { a.number = int(a.askers.Add(1)) - 1 }

// note adds an operation that began at the given time and ends now, or never.
func (a *asker) note(began int64, in, out any, lost bool) {
	op := porcupine.Operation{ClientId: a.number, Input: in, Output: out, Call: began, Return: a.now()}
	if lost {
		op.Return = forever
		a.lost.Add(1)
		a.renew() // its operation stays open
	} else {
		a.answered.Add(1)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ops = append(a.ops, op)
}

// patience is how often an operation is tried at most: longer than any restart,
// or once by a client that dies of a lost answer.
func (a *asker) patience() int {
	if a.rng.IntN(10) == 0 {
		return 1
	}
	return 2000
}

// mutate repeats a mutation under one request id until it is answered; lost
// says that it gave up.
func (a *asker) mutate(ctx context.Context, call func(key client.Option) error) (lost bool, err error) {
	key := client.WithRequestID(id.New("req_"))
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for left := a.patience(); ; a.repeated.Add(1) {
		if err := call(key); err == nil || !passing(err) {
			return false, err
		}
		if left--; left == 0 {
			return true, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return true, nil
		}
	}
}

// killing kills the hub and starts it again up to n times, each within so many
// answers of the time before, and returns how often. It ends with ctx.
func (h *history) killing(ctx context.Context, hub *Hub, rng *rand.Rand, n int, within int64) (kills int, err error) {
	for range n {
		if !h.await(ctx, h.answered.Load()+1+rng.Int64N(within)) {
			break
		}
		hub.Kill()
		if err := hub.start(); err != nil {
			return kills, err
		}
		kills++
	}
	return kills, nil
}

// await returns when so many operations are answered; false says that ctx ended
// first.
func (h *history) await(ctx context.Context, answers int64) bool {
	ticker := time.NewTicker(200 * time.Microsecond)
	defer ticker.Stop()
	for h.answered.Load() < answers {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// undecidedAfter bounds the search for an order that explains a history; that
// of a right one usually takes milliseconds.
const undecidedAfter = time.Minute

// judge fails the test if no order of the operations explains the answers, and
// keeps a drawing of the history where it outlives the test.
func (h *history) judge(t *testing.T, m porcupine.Model, seed uint64) {
	t.Helper()
	result := porcupine.CheckOperationsTimeout(m, h.ops, undecidedAfter)
	if result == porcupine.Ok {
		return
	}
	_, info := porcupine.CheckOperationsVerbose(m, h.ops, undecidedAfter)
	dir, err := os.MkdirTemp("", "wavehub-history-")
	must(t, err)
	path := filepath.Join(dir, "history.html")
	must(t, porcupine.VisualizePath(m, info, path))
	t.Errorf("%s: no order was found that explains the answers to %d operations; seed %d; see %s", result, len(h.ops), seed, path)
}

// step is an operation of a history in which one follows the other.
type step struct{ in, out any }

func inTurn(steps ...step) []porcupine.Operation {
	var ops []porcupine.Operation
	for i, s := range steps {
		ops = append(ops, porcupine.Operation{Input: s.in, Output: s.out, Call: int64(2 * i), Return: int64(2*i + 1)})
	}
	return ops
}

// explains checks what a model makes of right and wrong histories.
func explains(t *testing.T, m porcupine.Model, want bool, histories map[string][]porcupine.Operation) {
	t.Helper()
	for name, ops := range histories {
		if got := porcupine.CheckOperations(m, ops); got != want {
			t.Errorf("%s: explained %v, want %v", name, got, want)
		}
	}
}
