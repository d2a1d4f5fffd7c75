//go:build unix

package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/proc"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/openapi/api"
)

// W8: an agent that never waits for its prompt has a terminal when its start is
// over. The receipt, then and later, lists that terminal and the worktree as left
// over, until a stop has proven the terminal's end.
func TestAcceptance_W08_AFailureLeavesItsTerminalOnTheList(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac", withConfig(`agents:
  busy:
    command: [sh, -c, "printf '\\033]7501;state=working:app=busy\\033\\\\'; exec sleep 600"]
    mode: tui
    deliver: paste
`))
	run := h.NewRun("left over")
	get[api.RepoResult](t, h.Caller(), "repo", "add", NewRepo(t, map[string]string{"a": "a"}), "--name", "demo")
	args := []string{"worker", "start", "--task", run.Task("x"), "--repo", "demo", "--worktree", "new-top-level", "--name", "vet", "--agent", "busy", "--timeout", "1s"}
	r := run.json(args...)
	first := decode[api.StartReceipt](t, r.Stdout)
	if r.Code != 10 || first.State != "outcome_unknown" || *first.FailedStage != "terminal_created" {
		t.Fatalf("exit %d: %+v", r.Code, first)
	}
	terminal := terminalOf(first)
	isLeft := func(when string, left []api.Resource, terminals int) {
		t.Helper()
		if count(left, "terminal") != terminals || count(left, "worktree") != 1 || count(left, "branch") != 1 || count(left, "dispatch_input") != 0 {
			t.Errorf("%s: left over is %+v", when, left)
		}
		for _, x := range left {
			if x.Kind == "terminal" && (x.Id != terminal || x.Liveness != "unverifiable") {
				t.Errorf("%s: the terminal is %+v", when, x)
			}
		}
	}
	isLeft("at once", first.ResidualResources, 1)
	h.Restart()
	again := decode[api.StartReceipt](t, run.json(append(args, "--retry-request", first.Mutation.RequestId)...).Stdout)
	isLeft("asked again", again.ResidualResources, 1)
	if len(h.spawns()) != 1 || observed(t, run.Caller, terminal).Observation.Process != "live" {
		t.Errorf("asked again: %d launches", len(h.spawns()))
	}
	isLeft("stopped", get[api.StopResult](t, run.Caller, "worker", "stop", first.DispatchId).ResidualResources, 0)
}

// bystander is a process of nobody's, which has to be there at the end.
func bystander(t testing.TB) proc.Identity {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sleep", "600")
	must(t, cmd.Start())
	found, err := proc.Lookup(cmd.Process.Pid)
	must(t, err)
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // if the test ended it, it has failed already
		_ = cmd.Wait()
	})
	return found
}

// recorded rewrites the incarnation of a Dispatch wherever a stopped hub keeps it.
func (h *Hub) recorded(dispatch, terminal string, change func(*hub.Incarnation)) {
	h.t.Helper()
	h.edit(func(tx store.Tx) error {
		a, _, err := tx.Attachment("", hub.DispatchID(dispatch))
		if err != nil {
			return err
		}
		x, err := tx.Terminal(hub.TerminalID(terminal))
		if err != nil {
			return err
		}
		change(a.Process)
		change(x.Process)
		if err := tx.SaveAttachment(a); err != nil {
			return err
		}
		return tx.SaveTerminal(x)
	})
}

// W9: the pid on record is another process's by now, and its supervisor's too. The
// numbers are all that they share: the process is neither the worker, nor ended.
// That signals go by start time and boot, not by pid, is TestRecycledPidIsNeverSignalled
// of internal/proc and TestForgedIncarnationIsNeitherBelievedNorTouched of
// internal/terminal.
func TestAcceptance_W09_ARecycledPidIsNeverSignalled(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		order bool // to stop it, not carried out before the hub's end
		state string
	}{"a worker": {false, "failed"}, "a worker that is to be stopped": {true, "stopped"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testRecycled(t, x.order, x.state)
		})
	}
}

func testRecycled(t *testing.T, order bool, state string) {
	h := StartHub(t, "mac")
	run, other := h.NewRun("recycled"), bystander(t)
	w, neighbour := run.heldWorker(t, h), run.heldWorker(t, h)
	terminal := terminalOf(w.StartReceipt)
	s := h.spawnOf(terminal)
	stop := []string{"worker", "stop", w.DispatchId, "--timeout", "1s"}
	if order {
		must(t, syscall.Kill(s.Supervisor.PID, syscall.SIGSTOP))
		if r := run.json(stop...); r.Code != 10 {
			t.Fatalf("a stop through a supervisor that is frozen: exit %d\n%s", r.Code, r.Stdout)
		}
	}
	h.Kill()
	h.endProcess(s.Supervisor)
	h.endProcess(identityOf(s.Incarnation))
	h.recorded(w.DispatchId, terminal, func(in *hub.Incarnation) { in.PID = other.PID })
	h.rewriteSpawn(terminal, other.PID)
	h.Start()
	eventually(t, "what is proven is on record", 20*time.Second, func() bool { return string(run.Show(w.DispatchId).Dispatch.State) == state })
	if got := run.Show(w.DispatchId).Observation.Process; got != "exited" {
		t.Errorf("a stranger has its pid, and the worker is %s", got)
	}
	get[api.OutputPage](t, run.Caller, "worker", "read", w.DispatchId)
	if got := get[api.StopResult](t, run.Caller, stop...); !got.AlreadySettled {
		t.Errorf("a stop: %+v", got)
	}
	if got := get[api.TerminalClosed](t, run.Caller, "terminal", "close", terminal); !got.AlreadyClosed {
		t.Errorf("a close: %+v", got)
	}
	if !running(other) {
		t.Error("the stranger was ended")
	}
	neighbour.isUntouched(t, run)
}

func identityOf(in hub.Incarnation) proc.Identity {
	return proc.Identity{PID: in.PID, StartedAt: in.StartedAt, BootID: in.BootID}
}

// W9: the worker on record is not the one that its supervisor has. Nothing that is
// not proven is ended, and the stop says so.
func TestAcceptance_W09_AnotherIncarnationIsLeftAlone(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run, other := h.NewRun("another"), bystander(t)
	w, neighbour := run.heldWorker(t, h), run.heldWorker(t, h)
	terminal := terminalOf(w.StartReceipt)
	own := h.spawnOf(terminal).Incarnation
	h.Kill()
	h.recorded(w.DispatchId, terminal, func(in *hub.Incarnation) { in.PID, in.StartedAt = other.PID, other.StartedAt })
	h.Start()
	if got := run.Show(w.DispatchId); got.Observation.Process != "unverifiable" || got.Dispatch.State != "ready" {
		t.Errorf("it is %s, %s", got.Observation.Process, got.Dispatch.State)
	}
	r := run.json("worker", "stop", w.DispatchId, "--timeout", "5s")
	if stop := decode[api.StopResult](t, r.Stdout); r.Code != 10 || stop.State != "stop_unknown" || count(stop.ResidualResources, "terminal") != 1 {
		t.Errorf("the stop: exit %d %+v", r.Code, stop)
	}
	if !running(other) || !running(identityOf(own)) {
		t.Error("a process was ended without proof")
	}
	neighbour.isUntouched(t, run)
}

// isUntouched sees that the worker still runs, and still can report.
func (w Worker) isUntouched(t *testing.T, run Coordinator) {
	t.Helper()
	if got := run.Show(w.DispatchId); got.Observation.Process != "live" || got.Dispatch.State != "ready" {
		t.Errorf("the neighbour is %s, %s", got.Observation.Process, got.Dispatch.State)
	}
	if v := verdict(t, w.Caller(), w.report("succeeded", "undisturbed")...); v != "accepted" {
		t.Errorf("the neighbour's report is %s", v)
	}
}

// spawnOf is the start record of one terminal.
func (h *Hub) spawnOf(terminal string) (s spawned) {
	h.t.Helper()
	raw, err := os.ReadFile(h.Data("terminals", terminal, "spawn.json"))
	must(h.t, err)
	must(h.t, json.Unmarshal(raw, &s))
	return s
}

// rewriteSpawn gives both processes of a start record another pid.
func (h *Hub) rewriteSpawn(terminal string, pid int) {
	h.t.Helper()
	path := h.Data("terminals", terminal, "spawn.json")
	raw, err := os.ReadFile(path)
	must(h.t, err)
	var doc map[string]map[string]any
	must(h.t, json.Unmarshal(raw, &doc))
	doc["incarnation"]["pid"], doc["supervisor"]["pid"] = pid, pid
	raw, err = json.Marshal(doc)
	must(h.t, err)
	must(h.t, os.WriteFile(path, raw, 0o600))
}

// W11: what has become of a worker only the hub that owns it says. While that
// cannot be reached nothing is concluded, neither from silence nor from an end
// that has come about meanwhile.
func TestAcceptance_W11_OnlyTheOwnerSaysExited(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	run := p.Home.NewRun("lost contact")
	w := run.heldWorker(t, p.Worker, p.Place()...)
	show := func() api.DispatchDetail { return run.Show(w.DispatchId) }
	if got := show(); got.Observation.Process != "live" || got.Observation.Link != "up" {
		t.Fatalf("before: %+v", got.Observation)
	}
	unproven := func(when string) {
		t.Helper()
		got := show()
		if o := got.Observation; o.Process != "unverifiable" || o.Attachment != "unknown" || o.ExitCode != nil || got.Dispatch.State != "ready" || run.State(w.TaskId) != "dispatched" {
			t.Errorf("%s: %s, %+v", when, got.Dispatch.State, o)
		}
	}
	p.Worker.Kill()
	unproven("while it works")
	must(t, syscall.Kill(p.Worker.spawns()[0].Incarnation.PID, syscall.SIGKILL))
	eventually(t, "the exit is on record over there", 20*time.Second, func() bool {
		return exists(p.Worker.Data("terminals", terminalOf(w.StartReceipt), "exit.json"))
	})
	unproven("when it has ended")
	p.Home.Restart()
	unproven("after a restart")
	p.Worker.Start()
	if r := reportOf(run.Done(w.DispatchId)); r.Outcome != "failed" || r.Evidence != "exit" {
		t.Errorf("the owner reports %+v", r)
	}
	if got := show(); got.Observation.Process != "exited" || got.Dispatch.State != "failed" {
		t.Errorf("after its word: %s, %+v", got.Dispatch.State, got.Observation)
	}
}
