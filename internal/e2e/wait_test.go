//go:build unix

package e2e

import (
	"testing"
	"time"

	"github.com/wavehub/wavehub/openapi/api"
)

// waited is what worker wait prints.
type waited struct {
	Dispatches []api.Dispatch `json:"dispatches"`
	TimedOut   bool           `json:"timed_out"`
}

// TestWorkerWait waits for workers here and on a peer, and tells by its exit code
// how they ended.
func TestWorkerWait(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	run, g := p.Home.NewRun("wait"), newGate(t)
	good, far := run.Work(g.wait()+done+"ok"), run.Work(g.wait()+done+"ok", p.Place()...)
	bad, held := run.Work(done+"'no' --failed"), run.heldWorker(t, p.Home)
	wait := func(args ...string) (waited, int) {
		t.Helper()
		r := run.json(append([]string{"worker", "wait"}, args...)...)
		return decode[waited](t, r.Stdout), r.Code
	}
	if out, code := wait(good.DispatchId, bad.DispatchId, "--any", "--exit-status"); code != 1 || out.TimedOut || out.Dispatches[0].State != "ready" || out.Dispatches[1].State != "failed" {
		t.Errorf("any: exit %d, %+v", code, out)
	}
	if out, code := wait(good.DispatchId, bad.DispatchId, "--timeout", "50ms"); code != 0 || !out.TimedOut {
		t.Errorf("a time-out: exit %d, %+v", code, out)
	}
	if out, code := wait(good.DispatchId, "--timeout", "50ms", "--exit-status"); code != 7 || !out.TimedOut {
		t.Errorf("a time-out that is asked for: exit %d, %+v", code, out)
	}
	both := begin(t, func() (Result, error) {
		return run.json("worker", "wait", good.DispatchId, far.DispatchId, "--exit-status"), nil
	})
	g.open(t, 2)
	if r := both.get(t, 30*time.Second).value; r.Code != 0 {
		t.Errorf("both succeed: %+v", r)
	}
	if out, code := wait(good.DispatchId, far.DispatchId, "--exit-status"); code != 0 || out.Dispatches[0].State != "succeeded" || out.Dispatches[1].Server.Name != "worker" {
		t.Errorf("both have succeeded: exit %d, %+v", code, out)
	}
	waiting := begin(t, func() (Result, error) {
		return run.json("worker", "wait", good.DispatchId, held.DispatchId, "--exit-status"), nil
	})
	get[api.StopResult](t, run.Caller, "worker", "stop", held.DispatchId)
	if r := waiting.get(t, 30*time.Second).value; r.Code != 8 {
		t.Errorf("a stop: %+v", r)
	}
}
