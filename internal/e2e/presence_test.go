//go:build unix

package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/openapi/api"
)

// listed is what worker list says of a Dispatch, which asks nobody.
func (c Coordinator) listed(t testing.TB, dispatch string) api.Dispatch {
	t.Helper()
	for _, d := range get[api.DispatchPage](t, c.Caller, "worker", "list").Dispatches {
		if d.DispatchId == dispatch {
			return d
		}
	}
	t.Fatalf("%s is not listed", dispatch)
	return api.Dispatch{}
}

// soon waits until what is listed of a Dispatch fits.
func (c Coordinator) soon(t testing.TB, what, dispatch string, fits func(o api.Observation) bool) api.Observation {
	t.Helper()
	var o api.Observation
	eventually(t, what, 40*time.Second, func() bool {
		d := c.listed(t, dispatch)
		if d.Observation == nil {
			return false
		}
		o = *d.Observation
		return fits(o)
	})
	return o
}

// The home knows how a remote worker is without asking; a link that is cut makes
// it unverifiable as of when it was last vouched for, and never dead.
func TestAcceptance_W11_PresenceOverALinkThatIsCut(t *testing.T) {
	t.Parallel()
	p := Pairing{Home: StartHub(t, "home"), Worker: StartHub(t, "worker"), Root: t.TempDir()}
	proxy := newProxy(t, p.Worker)
	Pair(t, p.Home, p.Worker, p.Root, "https://"+proxy.Addr())
	run, g := p.Home.NewRun("presence"), newGate(t)
	start := get[api.StartReceipt](t, run.Caller, append([]string{"worker", "start", "--task", run.Task("echo hello; " + g.wait() + done + "fine")}, p.Place()...)...)
	id := start.DispatchId
	up := run.soon(t, "its owner says that it lives and has written", id, func(o api.Observation) bool {
		return o.Process == "live" && o.LastOutputAt != nil
	})
	if up.Link != "up" || up.LinkAt == nil || up.ProcessAt == nil || up.LastProcess != "live" || up.Attachment != "present" || up.Lost {
		t.Errorf("listed as %+v", up)
	}
	if o := run.Show(id).Observation; o.Process != "live" || o.Link != "up" || o.LinkAt == nil || *o.LastOutputAt != *up.LastOutputAt {
		t.Errorf("asked, its owner says %+v; listed was %+v", o, up)
	}
	proxy.Refuse(true)
	proxy.CutAll()
	down := run.soon(t, "the link is down", id, func(o api.Observation) bool { return o.Link == "down" })
	if down.Process != "unverifiable" || down.LastProcess != "live" || down.ProcessAt == nil || *down.LastOutputAt != *up.LastOutputAt || *down.LinkAt == *up.LinkAt {
		t.Errorf("with the link down it is listed as %+v", down)
	}
	d := run.Show(id)
	if o := d.Observation; d.Dispatch.State != "ready" || o.Process != "unverifiable" || o.LastProcess != "live" || *o.ProcessAt != *down.ProcessAt || *o.LinkAt != *down.LinkAt {
		t.Errorf("with the link down it is shown as %s, %+v", d.Dispatch.State, o)
	}
	text := run.CLI("worker", "show", id).Stdout + run.CLI("worker", "list").Stdout
	for _, want := range []string{"down since " + *down.LinkAt, "unverifiable as of " + *down.ProcessAt + ", then live", "output   " + *up.LastOutputAt, "report   never"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	proxy.Refuse(false)
	run.Show(id) // a command that names the peer has it dialled
	again := run.soon(t, "the worker lives again", id, func(o api.Observation) bool { return o.Process == "live" })
	if again.Link != "up" || *again.ProcessAt <= *down.ProcessAt {
		t.Errorf("with the link up again it is listed as %+v", again)
	}
	g.open(t, 1)
	run.Done(id)
	if d := run.listed(t, id); d.State != "succeeded" || d.Observation != nil {
		t.Errorf("at its end it is listed as %+v", d)
	}
}

// A remote attached worker that says nothing for its liveness is lost, which the
// home hears and which changes nothing; its next message ends that.
func TestPresence_ASilentAttachedWorkerIsLost(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	run, w := p.Home.NewRun("silent"), registered(t, p.Worker, "")
	give := func(liveness string) api.StartReceipt {
		return get[api.StartReceipt](t, run.Caller, "dispatch", "--task", run.Task("x"), "--to", "worker:"+w.Name+"@worker", "--no-wait", "--liveness", liveness)
	}
	start, patient := give("2s"), give("0")
	session := w.startOf(t, start.DispatchId)
	eventually(t, "it was taken up", 20*time.Second, func() bool { return run.Show(start.DispatchId).Dispatch.State == "ready" })
	run.soon(t, "its owner calls it lost", start.DispatchId, func(o api.Observation) bool { return o.Lost })
	d := run.Show(start.DispatchId)
	if o := d.Observation; d.Dispatch.State != "ready" || !o.Lost || o.Process != "unverifiable" || o.Link != "up" {
		t.Errorf("lost it is %s, %+v", d.Dispatch.State, o)
	}
	if run.listed(t, patient.DispatchId).Observation.Lost {
		t.Error("one without a liveness is lost")
	}
	if mail := get[api.CheckResult](t, run.Caller, "check", "--peek"); mail.Count != 0 {
		t.Errorf("presence has made mail: %+v", mail.Messages)
	}
	if text := run.CLI("worker", "show", start.DispatchId).Stdout; !strings.Contains(text, "lost: ") {
		t.Errorf("shown as\n%s", text)
	}
	get[api.SendResult](t, w.turn(t, session), "send", "--type", "status", "--subject", "here", "--body", "b", "--dispatch-id", start.DispatchId)
	run.soon(t, "a message is a sign of life", start.DispatchId, func(o api.Observation) bool { return !o.Lost })
}

// A worker whose supervisor is gone is unverifiable, then lost, and its report
// settles all the same.
func TestPresence_AnUnverifiableWorkerIsLost(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	run, g := p.Home.NewRun("unverifiable"), newGate(t)
	args := append([]string{"worker", "start", "--task", run.Task(g.wait() + done + "fine"), "--liveness", "1s"}, p.Place()...)
	id := get[api.StartReceipt](t, run.Caller, args...).DispatchId
	run.soon(t, "it lives", id, func(o api.Observation) bool { return o.Process == "live" && !o.Lost })
	for _, s := range p.Worker.spawns() {
		p.Worker.endProcess(s.Supervisor)
	}
	o := run.soon(t, "it is lost", id, func(o api.Observation) bool { return o.Lost })
	if d := run.Show(id); o.Process != "unverifiable" || o.Link != "up" || d.Dispatch.State != "ready" || !d.Observation.Lost {
		t.Errorf("listed as %+v, shown as %+v", o, d)
	}
	g.open(t, 1)
	run.Done(id)
}

// What a hub lists of its own workers costs no look at them either.
func TestPresence_OfThisHub(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "home")
	run, g := h.NewRun("local"), newGate(t)
	id := get[api.StartReceipt](t, run.Caller, "worker", "start", "--task", run.Task(g.wait()+"echo hello; "+g.wait()+done+"fine"), "--worktree", "path:"+t.TempDir(), "--agent", "sh").DispatchId
	if o := run.soon(t, "it lives", id, func(o api.Observation) bool { return o.Process == "live" }); o.Link != "local" || o.LastOutputAt != nil || o.ProcessAt == nil {
		t.Errorf("listed as %+v", o)
	}
	g.open(t, 1)
	run.soon(t, "its first output is known", id, func(o api.Observation) bool { return o.LastOutputAt != nil })
	h.Restart()
	run.soon(t, "it lives after a restart", id, func(o api.Observation) bool { return o.Process == "live" && o.LastOutputAt != nil })
	g.open(t, 1)
	run.Done(id)
}

func TestPresence_LivenessIsChecked(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "home")
	run := h.NewRun("liveness")
	for _, bad := range []string{"-1s", "1500ms", "721h"} {
		if r := run.CLI("worker", "start", "--task", run.Task("true"), "--worktree", "path:"+t.TempDir(), "--agent", "sh", "--liveness", bad, "--json"); r.Code != 2 {
			t.Errorf("--liveness %s: exit %d\n%s", bad, r.Code, r.Stderr)
		}
	}
}
