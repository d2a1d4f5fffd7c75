package wave

import (
	"slices"

	"github.com/wavehub/wavehub/internal/hub"
)

// began checks a start that the engine has made, at the moment of its transaction.
func (w *play) began(i int) {
	x := w.tasks[i]
	if w.wave.Ending != nil || w.wave.Status != hub.WaveRunning || x.EndedAs != "" {
		w.t.Fatalf("task %d starts after an end", i)
	}
	for _, j := range x.deps {
		if w.standing(j).status != hub.WaveCompleted {
			w.t.Fatalf("task %d starts before its dependency %d", i, j)
		}
	}
	for _, o := range w.orders {
		if y := w.latest(o.First); o.Second == i && (!w.standing(o.First).status.Final() || y != nil && !y.State.Final() && !y.byPerson) {
			w.t.Fatalf("task %d starts before %d, which comes first, is gone", i, o.First)
		}
	}
	w.beganInItsTurn(i)
	w.beganByRight(i)
}

// beganInItsTurn checks concurrency and barriers.
func (w *play) beganInItsTurn(i int) {
	live, x := 0, w.tasks[i]
	for j, y := range w.tasks {
		if z := w.latest(j); z != nil && !z.State.Final() && !z.byPerson {
			live++
		}
		if w.wave.Policy.Order != hub.OrderBarrier || y.Level > x.Level || y.Level == x.Level && y.Sub >= x.Sub {
			continue
		}
		if st := w.standing(j).status; !st.Final() || y.Level < x.Level && st != hub.WaveCompleted {
			w.t.Fatalf("task %d of %d/%d starts while %d of %d/%d is %s", i, x.Level, x.Sub, j, y.Level, y.Sub, st)
		}
	}
	if limit := w.wave.Policy.Concurrency; limit > 0 && live > limit {
		w.t.Fatalf("%d workers are alive, at most %d may be", live, limit)
	}
}

// beganByRight checks that an attempt behind others is one that the policy allows.
func (w *play) beganByRight(i int) {
	tries := w.tasks[i].tries
	tries = tries[:len(tries)-1]
	base := w.tasks[i].Base
	failed := 0
	for _, y := range tries {
		if !y.State.Final() {
			w.t.Fatalf("task %d has two live Dispatches", i)
		}
		if y.ID == base {
			failed = 0
		} else if y.State == hub.Failed && !poolClosed(y.Dispatch) {
			failed++
		}
	}
	if len(tries) == 0 || tries[len(tries)-1].ID == base {
		return
	}
	last := tries[len(tries)-1]
	opened := w.tasks[i].openedByPerson(last)
	switch {
	case opened, poolClosed(last.Dispatch):
	case last.State != hub.Failed:
		w.t.Fatalf("task %d is retried behind a Dispatch that is %s", i, last.State)
	case failed > w.wave.Policy.Retry:
		w.t.Fatalf("task %d is retried after %d failures", i, failed)
	case last.Reason == string(hub.ErrorAuthFailed):
		w.t.Fatalf("task %d is retried after auth_failed", i)
	}
}

// openedByPerson reports whether somebody set the Task ready behind a Dispatch.
func (x *wtask) openedByPerson(y *try) bool { return slices.Contains(x.opened, y.ID) }

// checkEnd checks what was written down of a task.
func (w *play) checkEnd(i int, was hub.WaveProgress) {
	now := w.tasks[i].WaveProgress
	if was.Iteration == now.Iteration && was.EndedAs != "" && (was.EndedAs != now.EndedAs || was.EndedReason != now.EndedReason) {
		w.t.Fatalf("task %d was %s (%s) and is %s (%s)", i, was.EndedAs, was.EndedReason, now.EndedAs, now.EndedReason)
	}
	if now.EndedAs == "" || was.EndedAs == now.EndedAs && was.Iteration == now.Iteration {
		return
	}
	if now.EndedAs == hub.WaveFailed && (now.EndedReason == string(hub.ErrorRateLimited) || now.EndedReason == string(hub.ErrorQuotaExhausted)) {
		w.t.Fatalf("task %d has failed since its provider gave no work", i)
	}
	if now.EndedReason == hub.EndBlocked && !w.blocked(i) {
		w.t.Fatalf("task %d is cancelled as blocked, and nothing blocks it", i)
	}
}

// blocked tells by the graph whether what a task waits for will not complete.
func (w *play) blocked(i int) bool {
	dead := func(j int) bool { st := w.standing(j).status; return st.Final() && st != hub.WaveCompleted }
	if slices.ContainsFunc(w.tasks[i].deps, dead) {
		return true
	}
	return w.wave.Policy.Order == hub.OrderBarrier && w.deadBefore(w.tasks[i].Level)
}

// deadBefore reports whether a level before this one has ended and not passed.
func (w *play) deadBefore(level int) bool {
	for l := 1; l < level; l++ {
		open, short := false, false
		for j, y := range w.tasks {
			st := w.standing(j).status
			if y.Level == l {
				open, short = open || !st.Final(), short || st != hub.WaveCompleted
			}
		}
		if short && !open {
			return true
		}
	}
	return false
}

// check is what holds after every step.
func (w *play) check() {
	for i, x := range w.tasks {
		live := 0
		for _, y := range x.tries {
			if !y.State.Final() {
				live++
			}
		}
		if live > 1 {
			w.t.Fatalf("task %d has %d live Dispatches", i, live)
		}
		if x.EndedAs == hub.WaveFailed && x.Iteration == w.wave.Iteration && w.wave.Policy.OnFailure == hub.FailFast && w.wave.Ending == nil && !w.byOperator(i) {
			w.t.Fatalf("task %d has failed and the wave goes on", i)
		}
		w.checkLog(i)
	}
	if n := w.count(func(e logged) bool { return e.index == -1 && e.iteration == w.wave.Iteration }); n > 1 {
		w.t.Fatalf("the wave has ended %d times", n)
	}
}

func (w *play) count(is func(logged) bool) (n int) {
	for _, e := range w.log {
		if is(e) {
			n++
		}
	}
	return n
}

// byOperator reports an end that the engine has still to see.
func (w *play) byOperator(i int) bool { return w.tasks[i].EndedReason == hub.EndSetByOperator }

// checkLog checks that of a task in an iteration come its Dispatches, each once, and
// then its end, once and last.
func (w *play) checkLog(i int) {
	x := w.tasks[i]
	over, iteration := false, 0
	var had []hub.DispatchID
	for _, e := range w.log {
		if e.index != i {
			continue
		}
		if e.iteration != iteration {
			over, iteration = false, e.iteration
		}
		switch {
		case over:
			w.t.Fatalf("task %d: %s comes after its end: %+v", i, e.kind, w.log)
		case e.kind == hub.EventTaskDispatched && slices.Contains(had, e.dispatch):
			w.t.Fatalf("task %d: %s was dispatched twice", i, e.dispatch)
		case e.kind == hub.EventTaskDispatched:
			had = append(had, e.dispatch)
		case e.kind == hub.EventTaskCompleted || e.kind == hub.EventTaskFailed || e.kind == hub.EventTaskCancelled:
			over = true
			if e.dispatch != "" && !slices.Contains(had, e.dispatch) {
				w.t.Fatalf("task %d: %s has ended and was never dispatched", i, e.dispatch)
			}
		}
	}
	ended := x.EndedAs != "" && x.Iteration == iteration
	if iteration == w.wave.Iteration && over != ended {
		w.t.Fatalf("task %d ended as %q, in the log %v", i, x.EndedAs, over)
	}
	if over && iteration == w.wave.Iteration {
		w.checkDispatched(i, had)
	}
}

// checkDispatched checks that no attempt of the engine is missing in the log.
func (w *play) checkDispatched(i int, had []hub.DispatchID) {
	for _, y := range w.tasks[i].tries {
		if !y.byPerson && !slices.Contains(had, y.ID) {
			w.t.Fatalf("task %d: %s is not in the log", i, y.ID)
		}
	}
}

// checkFinal checks the end of the wave.
func (w *play) checkFinal(as hub.WaveStatus) {
	counts := map[hub.WaveStatus]int{}
	for i := range w.tasks {
		st := w.standing(i)
		counts[st.status]++
		y := w.latest(i)
		if w.tasks[i].EndedAs == "" || !st.status.Final() || y != nil && alive(y.State) && (!y.byPerson || w.tasks[i].Noted == y.ID) {
			w.t.Fatalf("the wave is final, and task %d is %+v", i, st)
		}
		if y != nil && w.tasks[i].Noted == y.ID && y.State == hub.StopUnknown && !y.asked {
			w.t.Fatalf("the wave is final, and nobody was asked to stop task %d", i)
		}
	}
	want := hub.WaveCancelled
	switch {
	case w.wave.Ending != nil:
		want = w.wave.Ending.As
	case counts[hub.WaveFailed] > 0:
		want = hub.WaveFailed
	case counts[hub.WaveCompleted] == len(w.tasks):
		want = hub.WaveCompleted
	}
	if as != want {
		w.t.Fatalf("the wave is %s with %v (%+v)", as, counts, w.wave.Ending)
	}
	if len(w.flights) > 0 {
		w.t.Fatal("the wave is final, and a start is on its way")
	}
}

// atEnd checks a wave that has come to its end: of one that was not ended, exactly
// what is blocked was not tried.
func (w *play) atEnd() {
	if n := w.count(func(e logged) bool { return e.index == -1 && e.iteration == w.wave.Iteration }); n != 1 {
		w.t.Fatalf("the log has %d ends of the wave", n)
	}
	if w.cut {
		return
	}
	for i, x := range w.tasks {
		if w.blocked(i) != (x.EndedReason == hub.EndBlocked) && !w.touched[i] {
			w.t.Fatalf("task %d is %s (%s); blocked: %v", i, x.EndedAs, x.EndedReason, w.blocked(i))
		}
	}
}
