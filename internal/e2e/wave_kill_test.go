//go:build unix

package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/openapi/api"
)

// killed is what waves came to under kills, over all of them.
type killed struct {
	kills, waves, tasks, attempts, flaky, cut int
}

// TestAcceptance_V10_HubsAreKilledWhileAWaveRuns: one of the two hubs that a wave of
// 50 tasks runs on is killed at any moment, again and again. Every attempt has its
// effect once, and the wave ends as it would have: one retry is all that it needs, since
// a start that a kill has cut is no failure.
func TestAcceptance_V10_HubsAreKilledWhileAWaveRuns(t *testing.T) {
	t.Parallel()
	kills, seed := scaled(t, 4, 20, 100), uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	p, rng := NewPair(t), rand.New(rand.NewPCG(seed, 10))
	run := p.Home.NewRun("killed")
	var sum killed
	for sum.kills < kills {
		l := newLedger(t)
		w := run.spawned(t, crossed(t, p, l), "--retry", "1")
		sum.kills += p.killDuring(t, run, w, rng, kills-sum.kills)
		judgeKilled(t, run, run.endsWithin(t, w, 4*waveLimit), l, &sum)
	}
	t.Logf("%d kills, %d waves, %d tasks, %d attempts, %d of them failed as they were told, %d starts cut by a kill; every effect happened once",
		sum.kills, sum.waves, sum.tasks, sum.attempts, sum.flaky, sum.cut)
}

// crossed are 50 tasks, each behind one of the other hub. Each seventh fails in its
// first attempt.
func crossed(t testing.TB, p Pairing, l ledger) (tasks []waveEntry) {
	t.Helper()
	once := t.TempDir()
	for i := range 50 {
		id, script := "t"+itoa(i), l.note("ran")+"sleep 0.0$(( $$ % 10 ))\n"
		if i%7 == 0 {
			script += "if mkdir '" + filepath.Join(once, id) + "'; then exit 3; fi\n"
		}
		var behind []string
		if i >= 10 {
			behind = []string{"t" + itoa(i-10)}
		}
		if script += done + id; (i+i/10)%2 == 0 {
			tasks = append(tasks, shTask(t, id, script, behind...))
		} else {
			tasks = append(tasks, p.far(id, script, behind...))
		}
	}
	return tasks
}

// killDuring kills one of the hubs at random moments as long as the wave runs, at
// most so often, and returns how often.
func (p Pairing) killDuring(t testing.TB, run Coordinator, wave string, rng *rand.Rand, most int) (n int) {
	t.Helper()
	for n < most {
		pause(time.Duration(rng.IntN(400)) * time.Millisecond)
		if run.waveNow(t, wave).Wave.CompletedAt != nil {
			return n
		}
		[]*Hub{p.Home, p.Worker}[rng.IntN(2)].Restart()
		n++
	}
	return n
}

// endsWithin waits until the wave is completed.
func (c Coordinator) endsWithin(t testing.TB, wave string, limit time.Duration) (s api.WaveSnapshot) {
	t.Helper()
	eventually(t, wave+" has ended", limit, func() bool {
		s = c.waveNow(t, wave)
		return s.Wave.CompletedAt != nil
	})
	if s.Wave.Status != "completed" {
		t.Fatalf("%s is %s: %v", wave, s.Wave.Status, standings(s))
	}
	return s
}

// judgeKilled holds the attempts of a completed wave against what their scripts wrote
// down, and against the log.
func judgeKilled(t *testing.T, run Coordinator, s api.WaveSnapshot, l ledger, sum *killed) {
	t.Helper()
	ran, left := map[string]int{}, 0
	for _, d := range l.read(t) {
		ran[d.dispatch]++
		left++
	}
	sum.waves, sum.tasks = sum.waves+1, sum.tasks+len(s.Tasks)
	dispatches := run.attemptsByTask(t)
	events := map[string]int{}
	for i, x := range s.Tasks {
		flaky := 0
		for _, d := range dispatches[x.HubTaskId] {
			sum.attempts++
			left -= ran[d.DispatchId]
			switch {
			case d.State == "succeeded" && ran[d.DispatchId] == 1:
			case d.State == "failed" && ran[d.DispatchId] == 1:
				flaky++
			case d.State == "failed" && ran[d.DispatchId] == 0 && d.Evidence != nil && *d.Evidence == "start":
				sum.cut++
			default:
				t.Errorf("%s: %s is %s and ran %d times", x.TaskId, d.DispatchId, d.State, ran[d.DispatchId])
			}
			events["task_dispatched "+x.TaskId]++
		}
		if want := map[bool]int{true: 1}[i%7 == 0]; flaky != want {
			t.Errorf("%s failed %d times at work, want %d", x.TaskId, flaky, want)
		}
		sum.flaky += flaky
		events["task_completed "+x.TaskId] = 1
	}
	if left != 0 {
		t.Errorf("%d effects are of no attempt", left)
	}
	events["wave_started "], events["wave_completed "] = 1, 1
	got := map[string]int{}
	for _, e := range run.logOf(t, s.Wave.WaveId) {
		got[string(e.Type)+" "+orEmpty(e.TaskId)]++
	}
	if !maps.Equal(got, events) {
		t.Errorf("the log has %v\nwant %v", got, events)
	}
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// attemptsByTask are all Dispatches of the Run by their Tasks.
func (c Coordinator) attemptsByTask(t testing.TB) map[string][]api.Dispatch {
	t.Helper()
	all, cursor := map[string][]api.Dispatch{}, []string(nil)
	for {
		page := get[api.DispatchPage](t, c.Caller, append([]string{"worker", "list", "--limit", "200"}, cursor...)...)
		for _, d := range page.Dispatches {
			all[d.TaskId] = append(all[d.TaskId], d)
		}
		if page.NextCursor == nil {
			return all
		}
		cursor = []string{"--cursor", *page.NextCursor}
	}
}

// TestWave_AStartWhoseAnswerIsLostIsFoundOut: the peer has started a task and its
// answer is lost, with the home's process or with the link. The same request, sent
// again, finds that out; the task runs once.
func TestWave_AStartWhoseAnswerIsLostIsFoundOut(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(p Pairing, m *muter, w string, run Coordinator){
		"home killed": func(p Pairing, m *muter, _ string, _ Coordinator) {
			p.Home.Kill()
			m.set(func() bool { return false })
			m.cut()
			p.Home.Start()
		},
		"link cut": func(p Pairing, m *muter, w string, run Coordinator) {
			m.cut()
			eventually(p.Home.t, "it says that it does not know", waveLimit, func() bool {
				x := taskIn(p.Home.t, run.waveNow(p.Home.t, w), "far")
				return x.Status == "running" && orNone(x.WaitingFor) == "unknown"
			})
			m.set(func() bool { return false })
			m.cut()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Pairing{Home: StartHub(t, "home"), Worker: StartHub(t, "worker"), Root: t.TempDir()}
			m := newMuter(t, strings.TrimPrefix(p.Worker.Endpoint().URL, "https://"))
			Pair(t, p.Home, p.Worker, p.Root, m.Addr())
			run, g, l := p.Home.NewRun("lost"), newGate(t), newLedger(t)
			m.set(func() bool { return len(p.Worker.spawns()) > 0 })
			w := run.spawned(t, []waveEntry{p.far("far", l.note("ran")+g.wait()+done+"once"), shTask(t, "near", l.note("ran")+done+"fine", "far")})
			eventually(t, "the peer has started it", waveLimit, func() bool { return l.times(t, "ran")["far"] == 1 })
			lose(p, m, w, run)
			eventually(t, "its start is found out", waveLimit, func() bool {
				return run.isReady(t, taskIn(t, run.waveNow(t, w), "far"))
			})
			g.open(t, 1)
			s := run.waveEnds(t, w, "completed")
			if x := taskIn(t, s, "far"); x.Attempts != 1 || orEmpty(x.Result) != "once" {
				t.Errorf("it is %+v", x)
			}
			if ran := l.times(t, "ran"); fmt.Sprint(ran) != "map[far:1 near:1]" || len(p.Worker.spawns()) != 1 {
				t.Errorf("there ran %v in %d processes", ran, len(p.Worker.spawns()))
			}
		})
	}
}
