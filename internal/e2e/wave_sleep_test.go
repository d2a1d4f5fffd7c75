//go:build unix

package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wavehub/wavehub/openapi/api"
)

// hostOf are all processes of a hub's host: itself, its supervisors, its workers, and
// others.
func (h *Hub) hostOf(others ...int) []int {
	pids := append([]int{h.PID()}, others...)
	for _, s := range h.spawns() {
		pids = append(pids, s.Supervisor.PID, s.Incarnation.PID)
	}
	return pids
}

func signalAll(t testing.TB, pids []int, sig syscall.Signal) {
	t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, sig); err != nil {
			t.Fatalf("%v to %d: %v", sig, pid, err)
		}
	}
}

// TestAcceptance_V11_TheWorkersHostSleeps for longer than a worker may be silent, and
// its link goes down meanwhile. Nothing fails, whatever was at work there, and the
// wave completes.
func TestAcceptance_V11_TheWorkersHostSleeps(t *testing.T) {
	t.Parallel()
	for _, cut := range []bool{true, false} {
		t.Run(map[bool]string{true: "the link is cut", false: "the link hangs"}[cut], func(t *testing.T) {
			t.Parallel()
			testSleep(t, cut)
		})
	}
}

// isReady reports whether a task's latest Dispatch has its worker.
func (c Coordinator) isReady(t testing.TB, x api.WaveTask) bool {
	t.Helper()
	return x.DispatchId != nil && c.listed(t, *x.DispatchId).State == "ready"
}

func testSleep(t *testing.T, cut bool) {
	sleep := time.Duration(scaled(t, 18, 30, 300)) * time.Second
	p := Pairing{Home: StartHub(t, "home"), Worker: StartHub(t, "worker"), Root: t.TempDir()}
	proxy := newProxy(t, p.Worker)
	Pair(t, p.Home, p.Worker, p.Root, "https://"+proxy.Addr())
	run, g, l, attached, turn := p.Home.NewRun("sleep"), newGate(t), newLedger(t), registered(t, p.Worker, ""), filepath.Join(t.TempDir(), "turn")
	loop := attached.attach(t, "sh -s", "--bare")
	told := attachedTask("told", attached.Name+"@worker")
	told.Goal = "echo $$ > '" + turn + ".tmp'; mv '" + turn + ".tmp' '" + turn + "'; " + g.wait() + done + "fine"
	w := run.spawned(t, []waveEntry{p.far("far", l.note("ran")+g.wait()+done+"fine"), told, shTask(t, "near", done+"fine"), p.far("later", l.note("ran")+done+"fine", "far", "told")}, "--liveness", "10s")
	eventually(t, "the workers work", waveLimit, func() bool {
		s := run.waveNow(t, w)
		return exists(turn) && l.times(t, "ran")["far"] == 1 && run.isReady(t, taskIn(t, s, "far")) && run.isReady(t, taskIn(t, s, "told"))
	})
	raw, err := os.ReadFile(turn)
	must(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	must(t, err)
	host := p.Worker.hostOf(loop.cmd.Process.Pid, pid)
	signalAll(t, host, syscall.SIGSTOP)
	t.Cleanup(func() { // also where the test ends early
		for _, pid := range host {
			_ = syscall.Kill(pid, syscall.SIGCONT) // most have ended
		}
	})
	if cut {
		proxy.Refuse(true)
		proxy.CutAll()
	}
	pause(sleep)
	if s := run.waveNow(t, w); s.Wave.Status != "running" || !maps.Equal(s.Summary.ByStatus, map[string]int{"pending": 1, "running": 2, "completed": 1, "failed": 0, "cancelled": 0}) {
		t.Errorf("while the host sleeps: %v", standings(s))
	} else if x := taskIn(t, s, "far"); cut && orNone(x.WaitingFor) != "peer" {
		t.Errorf("the worker waits for %s", orNone(x.WaitingFor))
	}
	signalAll(t, host, syscall.SIGCONT)
	proxy.Refuse(false)
	pause(6 * time.Second) // longer than the owner takes to look for the silent
	if s := run.waveNow(t, w); s.Summary.ByStatus["running"] != 2 {
		t.Errorf("awake again: %v", standings(s))
	}
	g.open(t, 2)
	s := run.waveEnds(t, w, "completed")
	for _, x := range s.Tasks {
		if x.Attempts != 1 {
			t.Errorf("%s had %d attempts", x.TaskId, x.Attempts)
		}
	}
	for _, e := range run.logOf(t, w) {
		if e.Type == "task_failed" || e.Type == "warning" {
			t.Errorf("the log has %+v: %s", e, e.Data)
		}
	}
}
