package e2e

import (
	"testing"
	"time"

	"github.com/wavehub/wavehub/openapi/api"
)

// newHiddenPair is a home, and a worker hub behind a gateway that has no way in,
// so it is the one that dials.
func newHiddenPair(t *testing.T) (p Pairing, far, gateway *netHost) {
	t.Helper()
	n := newHostNet(t)
	gateway = n.gateway("gateway")
	home, far := n.start("mac"), n.behind(gateway, "windows").start()
	p = Pairing{Home: home.Hub, Worker: far.Hub, Root: t.TempDir()}
	url := "https://" + far.addr + ":" + hubPort
	refused(t, home.Caller(), "remote_runtime_unavailable", "peer", "add", "windows", url, "--code-file", codeFile(t))
	invite := get[api.InviteResult](t, home.Caller(), "peer", "invite", "--as", "home")
	c := far.Caller()
	c.stdin = *invite.Invite.Code
	get[api.PeerResult](t, c, "peer", "add", "mac", "https://"+home.addr+":"+hubPort, "--serve", "--allow-repo", p.Root, "--code-file", "-")
	return p, far, gateway
}

// A worker hub that only gets out works, is cut off for a while, and loses its
// home for a while.
func TestAcceptance_F15_BehindNAT(t *testing.T) {
	t.Parallel()
	p, far, _ := newHiddenPair(t)
	run := p.Home.NewRun("behind NAT")
	run.Done(run.Work(done+"reached", p.Place()...).DispatchId)
	if l := p.linkOf(t).Link; l.State != "up" || l.Transport != "reverse" {
		t.Errorf("the link is %+v", l)
	}
	w := run.heldWorker(t, p.Worker, p.Place()...)
	run.outage(t, far, w, 0, outage)
	p.awaitUp(t)
	p.Home.Kill()
	queued := get[api.SendResult](t, w.Caller(), w.report("succeeded", "while the home was down")...)
	if queued.State != "queued" {
		t.Errorf("the report is %s", queued.State)
	}
	w.gate.open(t, 1)
	p.Home.Start()
	if m := run.Done(w.DispatchId); m.Body != "while the home was down" {
		t.Errorf("the report is %+v", m)
	}
	run.Done(run.Work(done+"again", p.Place()...).DispatchId)
}

// The gateway gets another address and forgets whom it masquerades: all that the
// two hubs had between them is dead, without a sign to either.
func TestAcceptance_F15_NATForgets(t *testing.T) {
	t.Parallel()
	p, _, gateway := newHiddenPair(t)
	run := p.Home.NewRun("forgotten")
	w := run.heldWorker(t, p.Worker, p.Place()...)
	p.awaitUp(t)
	before := *p.linkOf(t).Link.ConnectedAt
	gateway.move(3)
	began := time.Now()
	w.queue(t, 0, 2)
	eventually(t, "there is another link", deadLink+redialled, func() bool {
		l := p.linkOf(t).Link
		return l.State == "up" && *l.ConnectedAt != before
	})
	t.Logf("there is another link after %s", time.Since(began).Round(time.Millisecond))
	if all := run.take(t, w, 2); ordered(t, all)[w.DispatchId] != 2 {
		t.Errorf("the mail is %+v", all)
	}
	run.Done(run.Work(done+"again", p.Place()...).DispatchId)
}

// outage is shorter than it takes to give a link up: TCP still tries to send what
// was queued meanwhile, at ever longer intervals.
const outage = 20 * time.Second

// outage pulls the host's cable for so long while the worker's reports are queued.
// They come once, by themselves and at once when the cable is back.
func (c Coordinator) outage(t testing.TB, h *netHost, w Worker, first int, lasts time.Duration) {
	t.Helper()
	h.unplug()
	began := time.Now()
	w.queue(t, first, 2)
	<-time.After(lasts - time.Since(began)) // the length of the outage is what is tested
	h.plug()
	plugged := time.Now()
	all := c.take(t, w, 2)
	took := time.Since(plugged)
	t.Logf("delivered %s after the cable was back", took.Round(time.Millisecond))
	if took > 5*time.Second || ordered(t, all)[w.DispatchId] != first+2 {
		t.Errorf("after %s came %+v", took, all)
	}
}

// A link that idles outlives an outage without having been given up.
func TestAcceptance_F05_AnOutageThatIsNotNoticed(t *testing.T) {
	t.Parallel()
	n := newHostNet(t)
	home, far := n.start("mac"), n.start("windows")
	p := n.pair(home, far, "")
	run := home.NewRun("an outage")
	w := run.heldWorker(t, far.Hub, p.Place()...)
	p.awaitUp(t)
	run.outage(t, far, w, 0, outage)
}
