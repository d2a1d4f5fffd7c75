package sim

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/mail"
	"github.com/wavehub/wavehub/internal/store"
)

// steps is the length of a script.
const steps = 250

// seeds are those of the scale, or the one that is asked for.
func seeds(t *testing.T) []uint64 {
	t.Helper()
	if s := os.Getenv("WAVEHUB_SIM_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return []uint64{n}
	}
	scale := os.Getenv("WAVEHUB_TEST_SCALE")
	n := map[string]int{"": 20, "small": 20, "medium": 200, "full": 10_000}[scale]
	if n == 0 {
		t.Fatalf("WAVEHUB_TEST_SCALE=%q is none of small, medium, full", scale)
	}
	if raced {
		n = min(n, 40)
	}
	base := uint64(time.Now().UnixNano()) >> 16 << 16
	out := make([]uint64, n)
	for i := range out {
		out[i] = base + uint64(i)
	}
	return out
}

// scratch is where the stores are: in memory where the machine has that.
func scratch(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "wavehub-sim-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // memory that the system takes back anyway
	return dir
}

func TestSimulation(t *testing.T) {
	all, next := &totals{}, make(chan uint64)
	root := scratch(t)
	var wg sync.WaitGroup
	for range 4 * runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for seed := range next {
				if err := simulate(root, seed, all); err != nil {
					t.Errorf("WAVEHUB_SIM_SEED=%d: %v", seed, err)
				}
			}
		})
	}
	for _, seed := range seeds(t) {
		if t.Failed() {
			break
		}
		next <- seed
	}
	close(next)
	wg.Wait()
	var table strings.Builder
	if err := all.print(&table); err != nil {
		t.Fatal(err)
	}
	t.Logf("simulation\n%s", table.String())
	if all.bad() > 0 {
		t.Error("a promise was broken")
	}
	if all.accepted == 0 || all.crashes == 0 || all.faults.Cut == 0 || all.faults.Reorder == 0 {
		t.Error("the simulation tested nothing")
	}
}

// simulate runs one seed and removes its stores.
func simulate(root string, seed uint64, all *totals) (err error) {
	dir, err := os.MkdirTemp(root, "")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	n := 0
	w, err := newWorld(func() string {
		n++
		sub := fmt.Sprintf("%s/%d", dir, n)
		if err := os.Mkdir(sub, 0o700); err != nil {
			panic(err)
		}
		return sub
	}, seed)
	defer func() { err = errors.Join(err, w.close()) }()
	for i := 0; err == nil && i < steps; i++ {
		err = w.step()
	}
	if err == nil {
		err = w.finish()
	}
	if err == nil {
		err = w.judge()
	}
	for _, l := range w.links {
		f := l.net.Tally()
		w.tally.faults.Cut += f.Cut
		w.tally.faults.Truncate += f.Truncate
		w.tally.faults.Drop += f.Drop
		w.tally.faults.Duplicate += f.Duplicate
		w.tally.faults.Reorder += f.Reorder
		w.tally.faults.Delay += f.Delay
	}
	all.add(&w.tally)
	if err == nil && w.tally.bad() > 0 {
		err = errors.New("a promise was broken")
	}
	if err != nil {
		err = fmt.Errorf("%w\nafter: %s", err, strings.Join(w.trace, "; "))
	}
	return err
}

func (w *world) close() (err error) {
	for _, h := range w.all() {
		err = errors.Join(err, h.crash(func() { w.cutOf(h) }))
	}
	return err
}

// patience is how long a healed federation may take to come to rest. It is far
// beyond what it needs: a stall fails the seed.
const patience = 20 * time.Second

// finish ends the weather and every Dispatch, and waits until nothing is on its
// way.
func (w *world) finish() error {
	for _, h := range w.all() {
		if err := h.boot(); err != nil {
			return err
		}
	}
	for _, l := range w.links {
		l.heal()
		w.home.up().home.Kick(l.atHome)
	}
	for i, h := range w.hosts {
		if h.pending {
			if err := w.adopt(i); err != nil {
				return err
			}
		}
	}
	for _, b := range w.books {
		settle(b)
		if b.orphan {
			if err := w.drop(b); err != nil {
				return err
			}
			continue
		}
		if err := errors.Join(w.end(b, hub.OutcomeSucceeded), w.leave(b)); err != nil {
			return err
		}
		if b.pending != nil {
			return fmt.Errorf("%s has no answer on healthy hubs", b.id)
		}
	}
	return w.rest()
}

// drop gives up an orphan, as a person would.
func (w *world) drop(b *book) error {
	p := w.home.up()
	return p.store.Update(p.ctx, store.Settle, func(tx store.Tx) error {
		_, _, err := dispatch.Abandon(tx, b.id)
		return err
	})
}

// rest waits until every queue is acknowledged and every stop carried out.
func (w *world) rest() error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(patience)
	for {
		left, err := w.onTheWay()
		switch {
		case err != nil:
			return err
		case left == "":
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("stalled: %s", left)
		}
		<-tick.C
	}
}

// onTheWay names something that has not arrived, "" if there is nothing.
func (w *world) onTheWay() (string, error) {
	home := w.home.up()
	for i, l := range w.links {
		worker := w.hosts[i].up()
		for _, side := range []struct {
			p    *process
			peer hub.PeerID
			dir  hub.Direction
		}{{worker, l.atWorker, hub.ToHome}, {home, l.atHome, hub.ToWorker}} {
			items, err := side.p.dispatch.After(side.p.ctx, side.peer, side.dir, 0, 1<<30)
			if err != nil {
				return "", err
			}
			for _, it := range items {
				if w.orphaned(it.Dispatch) {
					continue
				}
				return fmt.Sprintf("%s item %d of %s for %s, parked %q, link %+v", it.Kind, it.Seq, it.Dispatch, side.dir,
					parked(side.p, store.QueueKey{Peer: side.peer, Dispatch: it.Dispatch, Direction: side.dir}), home.home.State(l.atHome)), nil
			}
		}
		left := ""
		err := worker.store.View(worker.ctx, func(rx store.Rx) error {
			open, err := rx.OpenAttachments()
			if len(open) > 0 {
				left = fmt.Sprintf("%s is open at its owner", open[0].Dispatch)
			}
			return err
		})
		if left != "" || err != nil {
			return left, err
		}
	}
	return "", nil
}

// parked is why a queue waits.
func parked(p *process, k store.QueueKey) (reason string) {
	err := p.store.View(p.ctx, func(rx store.Rx) error {
		q, err := rx.Queue(k)
		reason = q.Parked
		return err
	})
	if err != nil {
		reason = err.Error()
	}
	return reason
}

func (w *world) orphaned(d hub.DispatchID) bool {
	return slices.ContainsFunc(w.books, func(b *book) bool { return b.id == d && b.orphan })
}

// judge compares what the hubs hold with what was promised.
func (w *world) judge() error {
	home := w.home.up()
	inbox, err := home.mail.History(home.ctx, w.by, mail.HistoryInput{Box: w.run.Box(), Limit: 10_000})
	if err != nil {
		return err
	}
	came := map[string][]string{}
	for _, m := range inbox.Messages {
		if m.Type == hub.TypeStatus {
			came[m.From] = append(came[m.From], m.Body)
		}
	}
	for _, b := range w.books {
		got := came[string(b.id.Box())]
		want, err := w.due(b, got)
		if err != nil {
			return err
		}
		w.tally.compare(want, b.loose, got)
		if err := errors.Join(w.judgeOwner(b), w.judgeEnd(b), w.judgeVerdicts(b), w.judgeQuestions(b)); err != nil {
			return err
		}
	}
	return nil
}

// due are the texts that have to be at home: all that were accepted but those
// that came after the end, beyond the quota of history, whose owner knows it.
func (w *world) due(b *book, got []string) (want []string, err error) {
	kept := map[string]bool{}
	for _, s := range got {
		kept[s] = true
	}
	p := w.hosts[b.at].up()
	err = p.store.View(p.ctx, func(rx store.Rx) error {
		for _, id := range b.said {
			v, _, err := rx.VerdictOf(id)
			if err != nil && !hub.IsCode(err, hub.CodeMessageNotFound) {
				return err
			}
			if v == hub.VerdictStale && !kept[b.texts[id]] {
				w.tally.late++
				continue
			}
			want = append(want, b.texts[id])
		}
		return nil
	})
	return want, err
}

// judgeOwner compares the guidance that came to the worker, also to one whose
// owner had lost it again.
func (w *world) judgeOwner(b *book) error {
	if b.orphan {
		return nil
	}
	p := w.hosts[b.at].up()
	box, err := p.mail.History(p.ctx, worker(b.id), mail.HistoryInput{Box: b.id.Box(), Limit: 10_000})
	if err != nil {
		return err
	}
	var got []string
	for _, m := range box.Messages {
		if m.Type == hub.TypeGuidance {
			got = append(got, m.Body)
		}
	}
	w.tally.compare(b.guided, nil, got)
	return nil
}

// judgeEnd: an attempt that the home did not give up has ended as its first
// report said; without one, its exit made it failed.
func (w *world) judgeEnd(b *book) error {
	p := w.home.up()
	return p.store.View(p.ctx, func(rx store.Rx) error {
		d, err := rx.Dispatch(b.id)
		if err != nil {
			return err
		}
		want := hub.Failed
		if b.first == hub.OutcomeSucceeded {
			want = hub.Succeeded
		}
		if !d.State.Final() || !b.given && d.State != want {
			w.tally.unequal++
			return fmt.Errorf("%s is %s (%s), its first report said %q", b.id, d.State, d.Reason, b.first)
		}
		return nil
	})
}

// judgeVerdicts: both hubs say the same of every report.
func (w *world) judgeVerdicts(b *book) error {
	for _, id := range b.reports {
		var at [2]hub.Verdict
		for i, h := range []*host{w.home, w.hosts[b.at]} {
			p := h.up()
			err := p.store.View(p.ctx, func(rx store.Rx) (err error) {
				at[i], _, err = rx.VerdictOf(id)
				return err
			})
			if err != nil {
				return fmt.Errorf("the verdict on %s at %s: %w", id, h.name, err)
			}
		}
		if at[0] != at[1] || at[0] == hub.VerdictNone {
			w.tally.unequal++
			return fmt.Errorf("%s: %q at home, %q at its owner", id, at[0], at[1])
		}
	}
	return nil
}

// judgeQuestions: both hubs agree on what became of every question.
func (w *world) judgeQuestions(b *book) error {
	for _, id := range b.asked {
		var at [2]hub.Question
		for i, h := range []*host{w.home, w.hosts[b.at]} {
			p := h.up()
			err := p.store.View(p.ctx, func(rx store.Rx) (err error) {
				at[i], err = rx.Question(id)
				return err
			})
			if err != nil {
				return fmt.Errorf("question %s at %s: %w", id, h.name, err)
			}
		}
		if at[0].State != at[1].State || at[0].State == hub.QuestionPending {
			w.tally.unequal++
			return fmt.Errorf("question %s is %s at home, %s at its owner", id, at[0].State, at[1].State)
		}
	}
	return nil
}
