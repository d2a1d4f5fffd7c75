package e2e

import (
	"testing"
	"time"

	"github.com/wavehub/wavehub/openapi/api"
)

// hiddenPair is a home, and a worker hub behind a gateway that has no way in, so
// it is the one that dials.
type hiddenPair struct {
	Pairing
	net                   *hostNet
	mac, windows, gateway *netHost
}

func newHiddenPair(t *testing.T) hiddenPair {
	t.Helper()
	x := hiddenPair{net: newHostNet(t), Pairing: Pairing{Root: t.TempDir()}}
	x.gateway = x.net.gateway("gateway")
	x.mac, x.windows = x.net.start("mac"), x.net.behind(x.gateway, "windows").start()
	x.Home, x.Worker = x.mac.Hub, x.windows.Hub
	refused(t, x.Home.Caller(), "remote_runtime_unavailable", "peer", "add", "windows", x.windows.url(), "--code-file", codeFile(t))
	code := *get[api.InviteResult](t, x.Home.Caller(), "peer", "invite", "--as", "home").Invite.Code
	x.windows.add(t, x.mac, code, "--serve", "--allow-repo", x.Root)
	return x
}

// url is where the host's hub is for others.
func (h *netHost) url() string { return "https://" + h.addr + ":" + hubPort }

// add pairs the host's hub with the one that gave the code.
func (h *netHost) add(t testing.TB, inviter *netHost, code string, flags ...string) {
	t.Helper()
	c := h.Caller()
	c.stdin = code
	added := get[api.PeerResult](t, c, append([]string{"peer", "add", inviter.name, inviter.url(), "--code-file", "-"}, flags...)...)
	if added.Peer.State != "active" {
		t.Fatalf("the peer is %+v", added.Peer)
	}
}

// A worker hub that only gets out works, is cut off for a while, and loses its
// home for a while.
func TestAcceptance_F15_BehindNAT(t *testing.T) {
	t.Parallel()
	x := newHiddenPair(t)
	p := x.Pairing
	run := p.Home.NewRun("behind NAT")
	run.Done(run.Work(done+"reached", p.Place()...).DispatchId)
	if l := p.linkOf(t).Link; l.State != "up" || l.Transport != "reverse" {
		t.Errorf("the link is %+v", l)
	}
	w := run.heldWorker(t, p.Worker, p.Place()...)
	run.outage(t, w, x.windows.unplug, x.windows.plug)
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
	x := newHiddenPair(t)
	p := x.Pairing
	run := p.Home.NewRun("forgotten")
	w := run.heldWorker(t, p.Worker, p.Place()...)
	p.awaitUp(t)
	before := *p.linkOf(t).Link.ConnectedAt
	x.gateway.move(3)
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

// outage cuts the network off for so long while the worker's reports are queued.
// They come once, by themselves and soon after it is mended.
func (c Coordinator) outage(t testing.TB, w Worker, cut, mend func()) {
	t.Helper()
	cut()
	began := time.Now()
	w.queue(t, 0, 2)
	<-time.After(outage - time.Since(began)) // its length is what is tested
	mend()
	mended := time.Now()
	all := c.take(t, w, 2)
	took := time.Since(mended)
	t.Logf("delivered %s after the network was back", took.Round(time.Millisecond))
	if took > 5*time.Second || ordered(t, all)[w.DispatchId] != 2 {
		t.Errorf("after %s came %+v", took, all)
	}
}

// silence is an outage of which no host gets a sign: packets vanish both ways.
func (n *hostNet) silence(a, b *netHost) (cut, mend func()) {
	return func() { a.swallow(); b.swallow() }, func() { a.deliver(); b.deliver() }
}

func TestAcceptance_F05_AnOutageThatIsNotNoticed(t *testing.T) {
	t.Parallel()
	n := newHostNet(t)
	home, far := n.start("mac"), n.start("windows")
	p := n.pair(home, far, "")
	run := home.NewRun("an outage")
	w := run.heldWorker(t, far.Hub, p.Place()...)
	p.awaitUp(t)
	cut, mend := n.silence(home, far)
	run.outage(t, w, cut, mend)
}

func TestAcceptance_F05_AnOutageThatIsNotNoticedBehindNAT(t *testing.T) {
	t.Parallel()
	x := newHiddenPair(t)
	run := x.Home.NewRun("an outage")
	w := run.heldWorker(t, x.Worker, x.Place()...)
	x.awaitUp(t)
	cut, mend := x.net.silence(x.mac, x.gateway)
	run.outage(t, w, cut, mend)
}
