package wave

import (
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

const day = 24 * time.Hour

// at is a look at the clocks of a host: mono of its process, since its boot, and by
// the wall.
func at(mono, boot, wall time.Duration, id string) Instant {
	return Instant{Mono: mono, SinceBoot: boot, Wall: hub.Micros(1e15).Add(wall), Boot: id}
}

func TestDowntime(t *testing.T) {
	was := clockOf(at(0, time.Hour, time.Hour, "b1"))
	for name, x := range map[string]struct {
		was  hub.WaveClock
		now  Instant
		want time.Duration
	}{
		"never written":                      {hub.WaveClock{}, at(0, 2*time.Hour, day, "b1"), 0},
		"one boot":                           {was, at(0, time.Hour+time.Minute, time.Hour+time.Minute, "b1"), time.Minute},
		"one boot, a day forwards":           {was, at(0, time.Hour+time.Minute, time.Hour+day, "b1"), time.Minute},
		"one boot, a day back":               {was, at(0, time.Hour+time.Minute, time.Hour-day, "b1"), time.Minute},
		"another boot":                       {was, at(0, time.Minute, time.Hour+10*time.Minute, "b2"), 10 * time.Minute},
		"another boot, a day back":           {was, at(0, time.Minute, time.Hour-day, "b2"), 0},
		"another boot, a day forwards":       {was, at(0, time.Minute, time.Hour+day, "b2"), day},
		"a boot that is not known":           {clockOf(at(0, 0, time.Hour, "")), at(0, 0, 2*time.Hour, ""), time.Hour},
		"a boot that is not known any more":  {was, at(0, 0, 2*time.Hour, ""), time.Hour},
		"a clock of the boot that went back": {was, at(0, 0, 2*time.Hour, "b1"), 0},
	} {
		if got := downtime(x.was, x.now); got != x.want {
			t.Errorf("%s: %v, not %v", name, got, x.want)
		}
	}
}

// begunAt is the time of a wave as a hub goes on with it.
func begunAt(w hub.Wave, now Instant, recovered bool) *elapsed {
	e := &elapsed{recovered: recovered}
	e.look(now)
	e.begin(w)
	return e
}

func TestElapsedIsAwakeTimeAndDowntime(t *testing.T) {
	w := hub.Wave{Status: hub.WaveRunning, Iteration: 1, ElapsedMS: 60_000, DowntimeMS: 1000, Clock: clockOf(at(0, time.Hour, 0, "b1"))}
	e := begunAt(w, at(time.Second, time.Hour+5*time.Minute, -day, "b1"), true)
	if e.elapsed() != 6*time.Minute || e.down != 5*time.Minute+time.Second || !e.patient() || e.atStart != 6*time.Minute {
		t.Fatalf("at start-up: %v, of it %v", e.elapsed(), e.down)
	}
	e.look(at(11*time.Second, 0, day, "b1")) // the wall does not matter while it runs
	if e.elapsed() != 6*time.Minute+10*time.Second || !e.due() {
		t.Errorf("ten seconds later: %v", e.elapsed())
	}
	stamped := e.stamp(w)
	if stamped.ElapsedMS != 370_000 || stamped.DowntimeMS != 301_000 || stamped.Clock.At != hub.Micros(1e15).Add(day) {
		t.Errorf("written down: %+v", stamped)
	}
	if e.saved(); e.due() || e.elapsed() != 6*time.Minute+10*time.Second {
		t.Errorf("after that: %v", e.elapsed())
	}
	e.look(at(11*time.Second+day, 0, 0, "b1")) // a process that was held up
	if e.elapsed() != 6*time.Minute+10*time.Second+lateLook {
		t.Errorf("after a late look: %v", e.elapsed())
	}
	e.look(at(0, 0, 0, "b1")) // no clock of a process goes back; if it did, nothing is taken off
	if e.elapsed() != 6*time.Minute+10*time.Second+lateLook {
		t.Errorf("after a step back: %v", e.elapsed())
	}
	for mono := time.Second; mono < patience; mono += 10 * time.Second {
		e.look(at(mono, 0, 0, "b1"))
	}
	if e.patient() {
		t.Error("a minute later it is patient still")
	}
}

func TestElapsedBeginsAnewWithEachIteration(t *testing.T) {
	w := hub.Wave{Status: hub.WaveRunning, Iteration: 1, Clock: clockOf(at(0, time.Hour, 0, "b1"))}
	e := begunAt(w, at(time.Second, time.Hour, 0, "b1"), false)
	e.look(at(21*time.Second, 0, 0, "b1"))
	if e.begin(w); e.elapsed() != 20*time.Second || e.patient() || e.down != 0 {
		t.Errorf("in its first iteration: %v", e.elapsed())
	}
	w.Iteration, w.Clock = 2, clockOf(at(0, time.Hour+20*time.Second, 0, "b1"))
	e.last = at(21*time.Second, time.Hour+20*time.Second, 0, "b1")
	if e.begin(w); e.elapsed() != 0 {
		t.Errorf("in its second: %v", e.elapsed())
	}
	if e.look(at(26*time.Second, 0, 0, "b1")); e.elapsed() != 5*time.Second {
		t.Errorf("and then: %v", e.elapsed())
	}
}

func TestUsageIsSummedAndHeldAgainstTheBudget(t *testing.T) {
	sum := Usage{}.plus(usageOf([]byte(`{"cost_usd":0.5,"tokens":10}`))).plus(usageOf(nil)).plus(usageOf([]byte(`{"cost_usd":0.25,"tokens":5}`)))
	if sum != (Usage{CostUSD: 0.75, Tokens: 15, Unmetered: 1}) {
		t.Errorf("the sum is %+v", sum)
	}
	for b, over := range map[hub.Budget]bool{
		{}: false, {Tokens: 15}: false, {Tokens: 14}: true, {CostUSD: 0.75}: false, {CostUSD: 0.7}: true, {CostUSD: 1, Tokens: 1}: true,
	} {
		if sum.over(b) != over {
			t.Errorf("%+v of %+v is over: %v", sum, b, !over)
		}
	}
}
