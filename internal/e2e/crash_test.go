//go:build unix

package e2e

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/id"
	"github.com/wavehub/wavehub/openapi/api"
)

// starter starts one Task under one request id again and again, while hubs are
// killed; the worker leaves a mark outside the databases each time it runs.
type starter struct {
	run     Coordinator
	witness string
	task    string
	args    []string
}

func newStarter(t *testing.T, run Coordinator, place ...string) starter {
	t.Helper()
	s := starter{run: run, witness: filepath.Join(t.TempDir(), "w")}
	s.task = run.Task("echo ran >> " + s.witness + "\nuntil " + done + "once; do sleep 0.05; done")
	s.args = append([]string{"worker", "start", "--task", s.task, "--retry-request", id.New("req_"), "--timeout", "20s", "--json"}, place...)
	return s
}

func (s starter) ran(t *testing.T) int {
	t.Helper()
	raw, err := os.ReadFile(s.witness)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Count(string(raw), "ran")
}

// crash starts the Task, kills the victim after some time, starts it again and
// repeats the request until its outcome is known.
func (s starter) crash(t *testing.T, victim *Hub, after time.Duration) api.StartReceipt {
	t.Helper()
	call := begin(t, func() (Result, error) { return s.run.CLI(s.args...), nil })
	<-time.After(after)
	victim.Restart()
	call.get(t, commandLimit)
	r, deadline := s.run.CLI(s.args...), time.Now().Add(30*time.Second)
	for ; r.Code != 0 && r.Code != 1; r = s.run.CLI(s.args...) {
		if time.Now().After(deadline) {
			t.Fatalf("%s was killed after %s, and the outcome of the start stays unknown: exit %d\n%s%s", victim.Name, after, r.Code, r.Stdout, r.Stderr)
		}
		<-time.After(50 * time.Millisecond)
	}
	return decode[api.StartReceipt](t, r.Stdout)
}

// judge compares what the hub says of the start with what happened.
func (s starter) judge(t *testing.T, r api.StartReceipt, after time.Duration) {
	t.Helper()
	if r.State == "failed" {
		if n := s.ran(t); n != 0 || r.FailedStage == nil || s.run.State(s.task) != "failed" {
			t.Errorf("killed after %s: failed at %v, ran %d times, Task %s", after, r.FailedStage, n, s.run.State(s.task))
		}
		return
	}
	if m := s.run.Done(r.DispatchId); reportOf(m).Outcome != "succeeded" {
		t.Errorf("killed after %s: %+v", after, m)
	}
	if n := s.ran(t); n != 1 || s.run.State(s.task) != "completed" {
		t.Errorf("killed after %s: ran %d times, Task %s", after, n, s.run.State(s.task))
	}
}

func TestAcceptance_Q05_AStartCutByAKillRunsAtMostOnce(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("cut starts")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed: %d", seed)
	rng, outcomes := rand.New(rand.NewPCG(seed, 5)), map[string]int{}
	for range scaled(t, 4, 20, 200) {
		after := time.Duration(rng.Int64N(int64(120 * time.Millisecond)))
		s := newStarter(t, run, "--worktree", "path:"+t.TempDir(), "--agent", "sh")
		r := s.crash(t, h, after)
		s.judge(t, r, after)
		outcomes[string(r.State)]++
	}
	t.Logf("outcomes: %v", outcomes)
}

func TestAcceptance_Q05_ARemoteStartCutByAKillRunsAtMostOnce(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	run := p.Home.NewRun("cut remote starts")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed: %d", seed)
	rng, outcomes := rand.New(rand.NewPCG(seed, 6)), map[string]int{}
	for i := range scaled(t, 4, 20, 200) {
		after := time.Duration(rng.Int64N(int64(150 * time.Millisecond)))
		victim := []*Hub{p.Home, p.Worker}[i%2]
		s := newStarter(t, run, p.Place()...)
		r := s.crash(t, victim, after)
		s.judge(t, r, after)
		outcomes[victim.Name+": "+string(r.State)]++
	}
	t.Logf("outcomes: %v", outcomes)
}

func TestAcceptance_L07_StopAgainstDone(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("races")
	wins := map[string]int{}
	for range scaled(t, 4, 20, 200) {
		w := run.heldWorker(t, h)
		reporter, operator := w.Client(), h.Client("")
		in := api.MessageSend{Type: "worker_done", Subject: "s", Body: "b", TaskId: w.TaskId, DispatchId: w.DispatchId, Outcome: "succeeded"}
		report := begin(t, func() (*api.SendResult, error) { return reporter.Send(t.Context(), in) })
		stop := begin(t, func() (*api.StopResult, error) {
			return operator.StopWorker(t.Context(), w.DispatchId, api.WorkerStop{GraceMs: 100})
		})
		told, stopped := report.get(t, 30*time.Second), stop.get(t, 30*time.Second)
		must(t, stopped.err)
		must(t, told.err)
		d := run.Show(w.DispatchId).Dispatch
		switch state, verdict := string(d.State), *told.value.Verdict; {
		case state == "succeeded" && verdict == "accepted" && stopped.value.AlreadySettled && run.State(w.TaskId) == "completed":
		case state == "stopped" && verdict == "stale" && !stopped.value.AlreadySettled && run.State(w.TaskId) == "blocked":
		default:
			t.Errorf("%s, Task %s, verdict %s, stop %+v", state, run.State(w.TaskId), verdict, stopped.value)
		}
		wins[string(d.State)]++
	}
	t.Logf("winners: %v", wins)
}

func TestAcceptance_F_AStopWithoutALinkTakesEffectAtLinkUp(t *testing.T) {
	t.Parallel()
	p := Pairing{Home: StartHub(t, "home"), Worker: StartHub(t, "worker"), Root: t.TempDir()}
	proxy := newProxy(t, p.Worker)
	Pair(t, p.Home, p.Worker, p.Root, "https://"+proxy.Addr())
	run := p.Home.NewRun("stop")
	w := run.heldWorker(t, p.Worker, p.Place()...)
	proxy.Refuse(true)
	proxy.CutAll()
	r := run.CLI("worker", "stop", w.DispatchId, "--timeout", "1s", "--json")
	if out := decode[api.StopResult](t, r.Stdout); r.Code != 10 || out.State != "stop_unknown" || run.State(w.TaskId) != "blocked" {
		t.Fatalf("the stop: exit %d, %+v", r.Code, out)
	}
	if late := get[api.SendResult](t, w.Caller(), w.report("succeeded", "too late")...); late.State != "queued" {
		t.Errorf("the late report is %+v", late)
	}
	proxy.Refuse(false)
	eventually(t, "the home knows the end", 20*time.Second, func() bool { return run.Show(w.DispatchId).Dispatch.State == "stopped" })
	for _, s := range p.Worker.spawns() {
		eventually(t, "the process is gone", 10*time.Second, func() bool { return !alive(s.Incarnation.PID) })
	}
	if s := run.State(w.TaskId); s != "blocked" {
		t.Errorf("the Task is %s", s)
	}
	retry := run.Begin(w.TaskId, append(p.Place(), "--retry-of", w.DispatchId)...)
	get[api.StopResult](t, run.Caller, "worker", "stop", retry.DispatchId)
}
