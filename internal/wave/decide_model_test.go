package wave

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/wavehub/wavehub/internal/hub"
)

// TestModelOfTheEngine runs waves of any shape and policy with workers, people and
// losses of any kind in any order. After every step what must not happen has not
// happened; and when nothing goes wrong any more, the wave comes to its end.
func TestModelOfTheEngine(t *testing.T) {
	modelCases(t)
	seen := score{}
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		w.engine(false)
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			w.step()
		}
		w.settleDown()
		seen.add(w)
	})
	for _, k := range slices.Sorted(maps.Keys(seen)) {
		t.Logf("%-40s %d", k, seen[k])
	}
}

// score counts what the cases came to, so that it is seen what they try.
type score map[string]int

func (x score) add(w *play) {
	x["wave "+string(w.wave.Status)]++
	x[fmt.Sprintf("iteration %d", w.wave.Iteration)]++
	for i := range w.tasks {
		st := w.standing(i)
		x[fmt.Sprintf("task %s %.20s", st.status, st.reason)]++
		x["attempts"] += len(w.tasks[i].tries)
	}
}

// drawWorld draws a spawned wave.
func drawWorld(t *rapid.T) *play {
	w := &play{t: t, touched: map[int]bool{}, sets: map[string]bool{}, lost: map[hub.DispatchID]bool{}, now: Instant{Mono: time.Hour, Wall: 1e15, Boot: "b", SinceBoot: time.Hour}}
	p := hub.DefaultWavePolicy(90)
	p.Order = rapid.SampledFrom([]string{hub.OrderDAG, hub.OrderBarrier}).Draw(t, "order")
	p.OnFailure = rapid.SampledFrom([]string{hub.FailFast, hub.FailContinue, hub.FailContinue}).Draw(t, "on_failure")
	p.Concurrency = rapid.SampledFrom([]int{0, 0, 1, 2, 3}).Draw(t, "concurrency")
	p.Retry = rapid.IntRange(0, 2).Draw(t, "retry")
	p.TimeoutSecs = rapid.SampledFrom([]int64{100, 3600, 604800}).Draw(t, "timeout")
	if rapid.IntRange(0, 4).Draw(t, "budget") == 0 {
		p.Budget.Tokens = 10
	}
	w.wave = hub.Wave{ID: "w", UID: "u", Run: "r", Policy: p, Status: hub.WaveRunning, Iteration: 1, Version: 1, Clock: clockOf(w.now)}
	w.drawTasks(rapid.IntRange(0, 7).Draw(t, "tasks"))
	if w.wave.Total = len(w.tasks); rapid.IntRange(0, 19).Draw(t, "never spawned") == 0 {
		w.wave.Iteration, w.wave.Ending = 0, &hub.WaveEnding{As: hub.WaveCancelled, Reason: hub.EndCancelled}
	}
	w.unlock()
	return w
}

// drawTasks draws tasks with dependencies in an order of their own, sub-waves, and
// orders between tasks that do not depend on each other.
func (w *play) drawTasks(n int) {
	t, places := w.t, rapid.Permutation(make([]int, n)).Draw(w.t, "places")
	for i := range places {
		places[i] = i
	}
	places = rapid.Permutation(places).Draw(t, "declared")
	w.tasks = make([]*wtask, n)
	for k, i := range places {
		x := &wtask{WaveTask: hub.WaveTask{Wave: "w", Index: i, Level: 1, Task: hub.TaskID(fmt.Sprintf("task_%d", i))}, state: hub.TaskPending}
		x.Entry = hub.WaveEntry{Token: fmt.Sprintf("t%d", i), Worker: fmt.Sprintf("w-%d", i%2)}
		if rapid.IntRange(0, 3).Draw(t, "timed") == 0 {
			x.Entry.TimeoutSecs = 40
		}
		for _, j := range places[:k] {
			if rapid.IntRange(0, 2).Draw(t, "edge") == 0 {
				x.deps = append(x.deps, j)
				x.Entry.Dependencies = append(x.Entry.Dependencies, w.tasks[j].Entry.Token)
				x.Level = max(x.Level, w.tasks[j].Level+1)
			}
		}
		w.tasks[i] = x
	}
	divided := rapid.Bool().Draw(t, "serialize")
	for _, x := range w.tasks {
		if divided {
			x.Sub = rapid.IntRange(1, 2).Draw(t, "sub")
		}
	}
	w.drawOrders()
}

func (w *play) drawOrders() {
	for a, x := range w.tasks {
		for b, y := range w.tasks {
			before := x.Level < y.Level || x.Level == y.Level && x.Sub < y.Sub
			if x.Sub > 0 && before && !w.dependsOn(b, a) && rapid.IntRange(0, 2).Draw(w.t, "ordered") == 0 {
				w.orders = append(w.orders, hub.WaveOrder{First: a, Second: b, Path: "p"})
			}
		}
	}
}

func (w *play) dependsOn(b, a int) bool {
	return slices.ContainsFunc(w.tasks[b].deps, func(j int) bool { return j == a || w.dependsOn(j, a) })
}

// step is one thing that happens; the engine's own are the most likely.
func (w *play) step() {
	switch k := rapid.IntRange(0, 99).Draw(w.t, "step"); {
	case k < 25:
		w.look()
	case k < 45:
		w.act()
	case k < 60:
		w.fly()
	case k < 78:
		w.worker()
	case k < 82:
		w.person()
	case k < 83:
		w.view = nil // a commit that did not happen
	case k < 86:
		w.restart()
	case k < 92:
		w.passes(time.Duration(rapid.IntRange(1, 29).Draw(w.t, "seconds")) * time.Second)
	case k < 93:
		w.spent += int64(rapid.IntRange(0, 8).Draw(w.t, "tokens"))
	default:
		w.dirty(w.all()...)
	}
	w.check()
}

func (w *play) restart() {
	w.passes(time.Duration(rapid.IntRange(0, 60).Draw(w.t, "down")) * time.Second)
	w.now.Mono = time.Second // another process
	w.engine(true)
	for i := range w.tasks {
		for _, y := range w.tasks[i].tries {
			if y.asked = false; y.State == hub.Stopping {
				w.happens(i, y, hub.Event{Kind: hub.EvStopLost})
			}
		}
	}
}

var refusals = []hub.Code{
	hub.CodeRemoteRuntimeUnavailable, hub.CodeHubDraining, hub.CodeRateLimited, hub.CodeWorkerLimit, hub.CodeTerminalBusy, hub.CodeStorageFull,
	hub.CodeReceiptsFull, hub.CodeOutcomeUnknown, hub.CodeInternal,
}

// fly brings a start call one step further: it begins or is refused, and then its
// answer comes.
func (w *play) fly() {
	if len(w.flights) == 0 {
		return
	}
	k := rapid.IntRange(0, len(w.flights)-1).Draw(w.t, "flight")
	f := w.flights[k]
	if f.landed {
		w.flights = slices.Delete(w.flights, k, k+1)
		w.loop.poke(func() { w.loop.came = append(w.loop.came, landed{f.index, f.err}) })
		w.dirty(f.index)
		return
	}
	f.landed = true
	switch how := rapid.IntRange(0, 9).Draw(w.t, "refusal"); {
	case how < 7 || w.calm:
		f.err = w.depart(f)
	case how < 9:
		f.err = hub.Errorf(rapid.SampledFrom(refusals).Draw(w.t, "code"), "not now")
	case rapid.Bool().Draw(w.t, "odd"):
		f.err = errors.New("something else")
	default:
		f.err = hub.Errorf(hub.CodeWorkerNotFound, "never")
	}
}

// depart is the transaction of a start.
func (w *play) depart(f *flight) error {
	if !admits(f.decided, w.wave, w.row(f.index)) {
		return hub.Errorf(hub.CodeTaskNotStartable, "too late")
	}
	if err := w.begin(f.index, f.behind, false); err != nil {
		return err
	}
	w.began(f.index)
	return nil
}

var reasons = []string{"", "", hub.ReasonExitedWithoutReport, string(hub.ErrorAuthFailed), string(hub.ErrorRateLimited), string(hub.ErrorQuotaExhausted), "verification_failed"}

// live picks a Dispatch that has not ended.
func (w *play) live() (int, *try) {
	var of []int
	for i := range w.tasks {
		if y := w.latest(i); y != nil && !y.State.Final() {
			of = append(of, i)
		}
	}
	if len(of) == 0 {
		return 0, nil
	}
	i := rapid.SampledFrom(of).Draw(w.t, "live")
	return i, w.latest(i)
}

// worker is what a worker does, or what is found out about it.
func (w *play) worker() {
	i, y := w.live()
	if y == nil {
		return
	}
	e := hub.Event{Kind: hub.EvReport, Evidence: hub.EvidenceReport}
	switch k := rapid.IntRange(0, 13).Draw(w.t, "what"); {
	case k < 3:
		e.Kind = hub.EvStarted
	case k < 6:
		e.Outcome = hub.OutcomeSucceeded
	case k < 8:
		e.Outcome, e.Reason = hub.OutcomeFailed, rapid.SampledFrom(reasons).Draw(w.t, "reason")
	case k == 8:
		e.Outcome = hub.OutcomeCancelled
	case k == 9:
		e.Kind = rapid.SampledFrom([]hub.EventKind{hub.EvStartFailed, hub.EvStartLost, hub.EvExit}).Draw(w.t, "start")
	case k == 10:
		w.lost[y.ID] = true
	default:
		w.proof(i, y, rapid.Bool().Draw(w.t, "proved"))
		return
	}
	w.happens(i, y, e)
	w.maybe(i)
}

// maybe tells the engine of a task, or leaves it for later.
func (w *play) maybe(i int) {
	if rapid.Bool().Draw(w.t, "told") {
		w.dirty(i)
	}
}

// proof is what a stop came to, of which its owner knows.
func (w *play) proof(i int, y *try, proved bool) {
	if !y.State.Fenced() || !y.asked {
		return
	}
	kind := hub.EvStopLost
	if proved {
		kind = hub.EvStopProved
	}
	w.happens(i, y, hub.Event{Kind: kind})
	w.maybe(i)
}

// person is somebody with a hand in it.
func (w *play) person() {
	if w.wave.Status.Final() {
		w.retry()
		return
	}
	if rapid.IntRange(0, 11).Draw(w.t, "cancel") == 0 && w.wave.Ending == nil {
		v := w.wave
		v.Ending = &hub.WaveEnding{As: hub.WaveCancelled, Reason: hub.EndCancelled}
		w.save(v)
		return
	}
	if len(w.tasks) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.tasks)-1).Draw(w.t, "of")
	defer w.maybe(i)
	y := w.latest(i)
	w.touched[i] = true
	switch k := rapid.IntRange(0, 6).Draw(w.t, "does"); {
	case k < 2 && y != nil:
		if w.happens(i, y, hub.Event{Kind: hub.EvStop, Reason: "stop requested"}); y.State == hub.Stopping {
			y.asked = true
		}
	case k == 2 && y != nil:
		w.happens(i, y, hub.Event{Kind: hub.EvAbandon})
	case k == 3 && y != nil:
		_ = w.begin(i, y.ID, true) // refused where it may not be
	case k == 4:
		_ = w.begin(i, "", true)
	case k == 5:
		w.taskUpdate(i, rapid.SampledFrom([]hub.TaskState{hub.TaskReady, hub.TaskCompleted, hub.TaskFailed, hub.TaskCancelled}).Draw(w.t, "to"))
	default:
		w.updateTask(i, rapid.SampledFrom([]hub.WaveStatus{hub.WaveCompleted, hub.WaveFailed, hub.WaveCancelled}).Draw(w.t, "as"))
	}
}

// taskUpdate is task update, which may be refused.
func (w *play) taskUpdate(i int, to hub.TaskState) {
	y := w.latest(i)
	if err := w.set(i, to); err == nil && to == hub.TaskReady && y != nil {
		w.tasks[i].opened = append(w.tasks[i].opened, y.ID)
	}
}

// updateTask is wave task update.
func (w *play) updateTask(i int, as hub.WaveStatus) {
	if st := w.standing(i); st.status.Final() {
		return
	}
	tried, err := triesOf(rx{w: w}, w.row(i))
	if err != nil {
		w.t.Fatal(err)
	}
	c := setBy(w.wave, task{WaveRow: w.row(i), tries: tried}, standing{status: as, reason: hub.EndSetByOperator})
	c.index = i
	w.apply(c)
}

// retry is wave retry.
func (w *play) retry() {
	if w.wave.Status == hub.WaveCompleted || w.wave.Iteration >= w.wave.Policy.MaxIterations {
		return
	}
	for i := range w.tasks {
		if y := w.latest(i); y != nil && !y.State.Final() {
			return
		}
	}
	v := w.wave
	v.Status, v.Ending, v.ElapsedMS, v.DowntimeMS, v.Clock = hub.WaveRunning, nil, 0, 0, clockOf(w.now)
	v.Policy.Budget.Tokens *= 100
	v.Iteration++
	w.save(v)
	if rapid.Bool().Draw(w.t, "new loop") {
		w.engine(false)
	}
}

// settleDown has everybody do what is theirs to do until the wave is final: in no
// more rounds than the tasks and their attempts make.
func (w *play) settleDown() {
	w.calm, w.view = true, nil
	for round := 0; w.wave.Status == hub.WaveRunning; round++ {
		if round > 60*(len(w.tasks)+1) {
			w.t.Fatalf("it does not end: %+v\nwaits %q", w.wave, w.plan.waits)
		}
		w.dirty(w.all()...)
		w.look()
		w.check()
		w.act()
		w.check()
		for len(w.flights) > 0 {
			w.fly()
			w.check()
		}
		for i := range w.tasks {
			w.finishWork(i)
			w.check()
		}
		w.passes(time.Duration(round%30) * time.Second)
	}
	w.atEnd()
}

// finishWork brings what is live of a task to an end.
func (w *play) finishWork(i int) {
	y := w.latest(i)
	switch {
	case y == nil || y.State.Final() && w.tasks[i].state != hub.TaskBlocked:
	case y.State == hub.StopUnknown || y.State == hub.Stopping:
		if y.asked || y.byPerson || w.tasks[i].EndedAs == "" { // a person's stop goes on after a restart
			w.happens(i, y, hub.Event{Kind: hub.EvStopProved})
		}
	case !y.State.Final():
		e := hub.Event{Kind: hub.EvReport, Outcome: hub.OutcomeSucceeded, Evidence: hub.EvidenceReport}
		switch rapid.IntRange(0, 9).Draw(w.t, "outcome") {
		case 8:
			e.Outcome = hub.OutcomeCancelled
		case 9:
			e.Outcome, e.Reason = hub.OutcomeFailed, rapid.SampledFrom(reasons).Draw(w.t, "reason")
		}
		w.happens(i, y, e)
	case w.standing(i).held:
		w.touched[i] = true
		w.updateTask(i, hub.WaveCancelled)
	}
}
