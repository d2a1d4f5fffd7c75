//go:build unix

package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/proc"
	"github.com/wavehub/wavehub/openapi/api"
)

// family is shell text that starts a child, one in a session of its own that cares
// for no SIGTERM, and a child of that, writes down all pids, and waits for good.
func family(pids string) string {
	put := func(pid string) string { return "echo " + pid + " >> '" + pids + "'\n" }
	return "setsid sh -c \"trap '' TERM; echo \\$\\$ >> '" + pids + "'; sleep 300 & echo \\$! >> '" + pids + "'; wait\" &\n" +
		"sleep 300 &\n" + put("$!") + put("$$") + "wait\n"
}

const familySize = 4

// familyOf waits until all of n families have said who they are.
func familyOf(t testing.TB, pids string, n int) (all []proc.Identity) {
	t.Helper()
	var lines []string
	eventually(t, "all processes of the workers run", waveLimit, func() bool {
		raw, _ := os.ReadFile(pids) // it is not there at first
		lines = strings.Fields(string(raw))
		return len(lines) == n*familySize
	})
	for _, line := range lines {
		pid, err := strconv.Atoi(line)
		must(t, err)
		found, err := proc.Lookup(pid)
		must(t, err)
		all = append(all, found)
	}
	return all
}

// TestAcceptance_V06_FailFastCancelsTheRestAndItsProcesses: the first failure ends
// the wave on both hubs; of the workers nothing is left, whatever they started.
func TestAcceptance_V06_FailFastCancelsTheRestAndItsProcesses(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	run, g, pids := p.Home.NewRun("fail fast"), newGate(t), filepath.Join(t.TempDir(), "pids")
	w := run.spawned(t, []waveEntry{
		shTask(t, "done", done+"fine"), shTask(t, "fails", g.wait()+"exit 3", "done"), shTask(t, "near", family(pids)), p.far("far", family(pids)),
		shTask(t, "behind", done+"never", "fails"), p.far("after", done+"never", "near"),
	})
	all := familyOf(t, pids, 2)
	g.open(t, 1)
	s := run.waveEnds(t, w, "failed")
	want := map[string]string{
		"done": "completed", "fails": "failed exited with code 3", "near": "cancelled task_failed", "far": "cancelled task_failed",
		"behind": "cancelled blocked", "after": "cancelled task_failed",
	}
	if got := standings(s); !maps.Equal(got, want) {
		t.Errorf("the tasks are %v, want %v", got, want)
	}
	for _, who := range all {
		if running(who) {
			t.Errorf("the process %d outlived the wave", who.PID)
		}
	}
	if s.Wave.Ending == nil || s.Wave.Ending.Reason != "task_failed" || len(s.Residuals) != 0 || s.Summary.MergeGate != "failed" {
		t.Errorf("the wave is %+v, residuals %+v", s.Wave, s.Residuals)
	}
	for _, token := range []string{"behind", "after"} {
		if n := taskIn(t, s, token).Attempts; n != 0 {
			t.Errorf("%s had %d attempts", token, n)
		}
	}
}

// TestAcceptance_V06_ContinueCancelsOnlyDescendants: what does not depend on the
// failure runs to its end, on both hubs.
func TestAcceptance_V06_ContinueCancelsOnlyDescendants(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	run, g, l := p.Home.NewRun("continue"), newGate(t), newLedger(t)
	ok := l.note("ran") + done + "fine"
	w := run.spawned(t, []waveEntry{
		shTask(t, "fails", "exit 3"), p.far("child", ok, "fails"), shTask(t, "grandchild", ok, "child"), shTask(t, "both", ok, "grandchild", "late"),
		p.far("slow", g.wait()+ok), shTask(t, "late", ok, "slow"),
	}, "--on-failure", "continue")
	eventually(t, "the descendants are cancelled while others run", waveLimit, func() bool {
		return run.waveNow(t, w).Summary.ByStatus["cancelled"] == 3
	})
	if s := run.waveNow(t, w); s.Wave.Status != "running" || taskIn(t, s, "slow").Status != "running" {
		t.Errorf("after the failure: %v", standings(s))
	}
	g.open(t, 1)
	s := run.waveEnds(t, w, "failed")
	want := map[string]string{
		"fails": "failed exited with code 3", "child": "cancelled blocked", "grandchild": "cancelled blocked", "both": "cancelled blocked",
		"slow": "completed", "late": "completed",
	}
	if got := standings(s); !maps.Equal(got, want) {
		t.Errorf("the tasks are %v, want %v", got, want)
	}
	if ran := l.times(t, "ran"); !maps.Equal(ran, map[string]int{"slow": 1, "late": 1}) {
		t.Errorf("there ran %v", ran)
	}
}

// TestAcceptance_V23_AWaveThatIsRetriedUnlocksItsDependents: what fails its
// verification unlocks nothing; when it passes in the next iteration, it does.
func TestAcceptance_V23_AWaveThatIsRetriedUnlocksItsDependents(t *testing.T) {
	for _, policy := range []string{"fail_fast", "continue"} {
		t.Run(policy, func(t *testing.T) {
			atEachSite(t, func(t *testing.T, s site) { testRetriedWave(t, s, policy) })
		})
	}
}

func testRetriedWave(t *testing.T, s site, policy string) {
	l := newLedger(t)
	kept, dependent := s.entry("kept", l.note("ran")+done+"kept"), s.entry("dependent", l.note("ran")+done+"dependent", "tried")
	kept.VerifyCmd, dependent.VerifyCmd = "true", "true"
	tried := s.entry("tried", l.note("ran")+"echo tried >> src/a; "+done+"tried", "kept")
	tried.VerifyCmd, tried.WriteScope = `[ "$(grep -c tried src/a)" = 2 ]`, []string{"src"}
	w := s.run.spawned(t, []waveEntry{kept, tried, dependent}, "--verify", "required", "--on-failure", policy)
	first := s.run.waveEnds(t, w, "failed")
	if x := taskIn(t, first, "tried"); x.Reason == nil || *x.Reason != "verification_failed" || x.VerifyResult == nil || *x.VerifyResult != "failed" || *x.VerifiedBy != "hub" {
		t.Errorf("first it is %+v", x)
	}
	if x := taskIn(t, first, "dependent"); x.Status != "cancelled" || x.Attempts != 0 || x.StartedAt != nil {
		t.Errorf("its dependent is %+v", x)
	}
	again := get[api.WaveSnapshot](t, s.run.Caller, "wave", "retry", w)
	if again.Wave.Iteration != 2 || taskIn(t, again, "kept").Status != "completed" {
		t.Errorf("retried it is %+v", again)
	}
	second := s.run.waveEnds(t, w, "completed")
	if x := taskIn(t, second, "tried"); *x.VerifyResult != "passed" || x.Attempts != 2 {
		t.Errorf("then it is %+v", x)
	}
	if ran := l.times(t, "ran"); !maps.Equal(ran, map[string]int{"kept": 1, "tried": 2, "dependent": 1}) {
		t.Errorf("there ran %v", ran)
	}
}
