//go:build unix

package e2e

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/wavehub/wavehub/openapi/api"
)

// passage is shell text of a worker that writes down when it comes and goes.
func (l ledger) passage() string { return l.note("in") + "sleep 0.1\n" + l.note("out") + done + "fine" }

// most is how many were in at once.
func (l ledger) most(t testing.TB) (most int) {
	t.Helper()
	now := 0
	for _, d := range l.read(t) {
		if d.word == "in" {
			now++
		} else {
			now--
		}
		most = max(most, now)
	}
	return most
}

// TestWave_BarrierAcrossHubs: no task of a level begins before all of the level
// before have ended, though it depends on one of them only, wherever they run.
func TestWave_BarrierAcrossHubs(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	run, l := p.Home.NewRun("barrier"), newLedger(t)
	w := run.spawned(t, []waveEntry{
		shTask(t, "a1", l.passage()), p.far("a2", "sleep 0.5\n"+l.passage()), p.far("a3", l.passage()),
		p.far("b1", l.passage(), "a1"), shTask(t, "b2", "sleep 0.5\n"+l.passage(), "a1"), shTask(t, "b3", l.passage(), "a3"),
		shTask(t, "c1", l.passage(), "b1"), p.far("c2", l.passage(), "b3"),
	}, "--order", "barrier")
	s := run.waveEnds(t, w, "completed")
	left := map[byte]int{}
	for _, x := range s.Tasks {
		left[x.TaskId[0]]++
	}
	for _, d := range l.read(t) {
		level := d.token[0]
		for before := byte('a'); before < level; before++ {
			if left[before] != 0 {
				t.Errorf("%s is %s while %d of level %c are not done", d.token, d.word, left[before], before)
			}
		}
		if d.word == "out" {
			left[level]--
		}
	}
	if !maps.Equal(left, map[byte]int{'a': 0, 'b': 0, 'c': 0}) {
		t.Errorf("of the levels are left %v", left)
	}
}

// TestWave_ConcurrencyIsNeverPassed, over both hubs.
func TestWave_ConcurrencyIsNeverPassed(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	run, l, g := p.Home.NewRun("concurrency"), newLedger(t), newGate(t)
	var tasks []waveEntry
	for i := range 5 {
		tasks = append(tasks, shTask(t, "near"+itoa(i), g.wait()+l.passage()), p.far("far"+itoa(i), g.wait()+l.passage()))
	}
	w := run.spawned(t, tasks, "--concurrency", "3")
	eventually(t, "three run and the others wait for them", waveLimit, func() bool {
		waits, running := waitsIn(run.waveNow(t, w))
		return running == 3 && maps.Equal(waits, map[string]int{"concurrency": 7})
	})
	g.open(t, len(tasks))
	run.waveEnds(t, w, "completed")
	if n := l.most(t); n > 3 || len(l.read(t)) != 2*len(tasks) {
		t.Errorf("%d ran at once: %v", n, l.read(t))
	}
}

// waitsIn counts what tasks wait for, and those that run and wait for nothing.
func waitsIn(s api.WaveSnapshot) (waits map[string]int, running int) {
	waits = map[string]int{}
	for _, x := range s.Tasks {
		switch {
		case x.WaitingFor != nil:
			waits[*x.WaitingFor]++
		case x.Status == "running":
			running++
		}
	}
	return waits, running
}

// TestWave_AHubsLimitHoldsTasksBack: what a hub has no room for waits, says so, and
// runs when there is room, here and on a peer.
func TestWave_AHubsLimitHoldsTasksBack(t *testing.T) {
	t.Parallel()
	limited := withConfig("limits: {workers: 2}\n")
	p := Pairing{Home: StartHub(t, "home", limited), Worker: StartHub(t, "worker", limited), Root: t.TempDir()}
	Pair(t, p.Home, p.Worker, p.Root, "")
	run, l, g := p.Home.NewRun("limits"), newLedger(t), newGate(t)
	var tasks []waveEntry
	for i := range 4 {
		tasks = append(tasks, shTask(t, "near"+itoa(i), g.wait()+l.passage()), p.far("far"+itoa(i), g.wait()+l.passage()))
	}
	w := run.spawned(t, tasks)
	eventually(t, "two run at each hub, and the others wait for room", waveLimit, func() bool {
		waits, running := waitsIn(run.waveNow(t, w))
		return running == 4 && maps.Equal(waits, map[string]int{"limit": 4})
	})
	g.open(t, len(tasks))
	run.waveEnds(t, w, "completed")
	if n := l.most(t); n > 4 || len(l.read(t)) != 2*len(tasks) {
		t.Errorf("%d ran at once: %v", n, l.read(t))
	}
}

// TestWave_APeerThatIsDownIsWaitedFor: its tasks wait, the others go on; within 5 s of
// link-up they run.
func TestWave_APeerThatIsDownIsWaitedFor(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	run, l := p.Home.NewRun("down"), newLedger(t)
	p.Worker.Kill()
	w := run.spawned(t, []waveEntry{
		p.far("far", l.note("ran")+done+"fine"), shTask(t, "near", l.note("ran")+done+"fine"), p.far("later", l.note("ran")+done+"fine", "near"), shTask(t, "last", l.note("ran")+done+"fine", "far"),
	})
	eventually(t, "what can be done is done, and the rest waits for the peer", waveLimit, func() bool {
		s := run.waveNow(t, w)
		waits, running := waitsIn(s)
		return running == 0 && taskIn(t, s, "near").Status == "completed" && maps.Equal(waits, map[string]int{"peer": 2, "dependency": 1})
	})
	pause(5 * time.Second) // the pause between tries has grown
	if s := run.waveNow(t, w); s.Wave.Status != "running" || !slices.Equal(l.tokens(t), []string{"near"}) {
		t.Errorf("while the peer is down: %v, there ran %v", standings(s), l.tokens(t))
	}
	p.Worker.Start()
	eventually(t, "the link is up", 20*time.Second, func() bool { return p.Home.shown(t, "worker").Link.State == "up" })
	up := time.Now()
	eventually(t, "the tasks run within 5 s of link-up", 5*time.Second, func() bool { n := l.times(t, "ran"); return n["far"] == 1 && n["later"] == 1 })
	t.Logf("they ran %s after link-up", time.Since(up).Round(time.Millisecond))
	s := run.waveEnds(t, w, "completed")
	for _, x := range s.Tasks {
		if x.Attempts != 1 {
			t.Errorf("%s had %d attempts", x.TaskId, x.Attempts)
		}
	}
}

// tokens are the tasks that wrote anything, in that order.
func (l ledger) tokens(t testing.TB) (all []string) {
	t.Helper()
	for _, d := range l.read(t) {
		all = append(all, d.token)
	}
	return all
}
