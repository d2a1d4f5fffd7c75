//go:build unix

package e2e

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/testkit"
	"github.com/wavehub/wavehub/openapi/api"
)

// natPair is a home, and a worker hub behind a network that lets out only: who
// dials what it advertises hears nothing.
type natPair struct {
	Pairing
	out *testkit.Proxy // from the worker hub to the home
}

func newNATPair(t *testing.T) natPair {
	t.Helper()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { silent.Close() })
	p := natPair{Pairing: Pairing{
		Home: StartHub(t, "home"), Root: t.TempDir(),
		Worker: StartHub(t, "worker", withConfig("advertise: ['"+silent.Addr().String()+"']\n")),
	}}
	p.out = newProxy(t, p.Home)
	invite := get[api.InviteResult](t, p.Home.Caller(), "peer", "invite", "--as", "home")
	c := p.Worker.Caller()
	c.stdin = *invite.Invite.Code
	added := get[api.PeerResult](t, c, "peer", "add", "home", "https://"+p.out.Addr(), "--serve", "--allow-repo", p.Root, "--code-file", "-")
	if added.Peer.State != "active" || !added.Peer.Reverse {
		t.Fatalf("the peer is %+v", added.Peer)
	}
	return p
}

// up waits until the link is up over streams of the worker hub, of which four
// wait for more.
func (p natPair) up(t *testing.T, when string) {
	t.Helper()
	eventually(t, "the link is up "+when, 45*time.Second, func() bool {
		return get[api.PeerDetail](t, p.Home.Caller(), "peer", "show", "worker").Link.State == "up"
	})
	eventually(t, "streams are parked "+when, 45*time.Second, func() bool {
		return get[api.PeerDetail](t, p.Worker.Caller(), "peer", "show", "home").Link.Parked == 4
	})
}

func TestAcceptance_F15_AHubWithoutInboundRoute(t *testing.T) {
	t.Parallel()
	p := newNATPair(t)
	run := p.Home.NewRun("behind NAT")
	run.Done(run.Work(done+"reached", p.Place()...).DispatchId)
	p.up(t, "at first")
	home, worker := get[api.PeerDetail](t, p.Home.Caller(), "peer", "show", "worker"), get[api.PeerDetail](t, p.Worker.Caller(), "peer", "show", "home")
	if home.Link.Transport != "reverse" || home.Link.ConnectedAt == nil || home.Peer.Reverse || home.Link.Parked != 0 {
		t.Errorf("at home: %+v", home)
	}
	if worker.Link.Transport != "reverse" || worker.Link.State != "up" || worker.Link.ConnectedAt == nil || !worker.Peer.Reverse {
		t.Errorf("at the worker: %+v", worker)
	}
	for _, harm := range []struct {
		name     string
		do, mend func()
	}{
		{"the network cut", func() { p.out.Refuse(true); p.out.CutAll() }, func() { p.out.Refuse(false) }},
		{"the home killed", p.Home.Kill, p.Home.Start},
		{"both killed", func() { p.Home.Kill(); p.Worker.Kill(); p.Worker.Start() }, p.Home.Start},
		{"the worker hub killed", func() {}, p.Worker.Restart},
	} {
		w := run.heldWorker(t, p.Worker, p.Place()...)
		harm.do()
		get[api.SendResult](t, w.Caller(), w.report("succeeded", harm.name)...)
		w.gate.open(t, 1)
		harm.mend()
		if m := run.Done(w.DispatchId); m.Body != harm.name {
			t.Errorf("%s: the report is %+v", harm.name, m)
		}
		p.up(t, "after "+harm.name)
	}
}

func TestAcceptance_F15_ReverseIsTheWorkersChoice(t *testing.T) {
	t.Parallel()
	p := newNATPair(t)
	p.up(t, "at first")
	for _, word := range []string{"on", "off"} {
		if e := refused(t, p.Home.Caller(), "invalid_argument", "peer", "reverse", "worker", word); e.Hint == "" {
			t.Errorf("the home's refusal says not what to do: %+v", e)
		}
	}
	refused(t, p.Worker.Caller(), "peer_not_found", "peer", "reverse", "nobody", "on")
	off := get[api.PeerResult](t, p.Worker.Caller(), "peer", "reverse", "home", "off")
	if off.Peer.Reverse {
		t.Errorf("%+v", off.Peer)
	}
	eventually(t, "no stream is parked", 20*time.Second, func() bool {
		d := get[api.PeerDetail](t, p.Worker.Caller(), "peer", "show", "home")
		return d.Link.Parked == 0 && d.Link.State == "up" // what is in use stays
	})
	p.Worker.Restart()
	run := p.Home.NewRun("unreachable")
	refused(t, run.Caller, "remote_runtime_unavailable", append([]string{"worker", "start", "--task", run.Task("true")}, p.Place()...)...)
	again := get[api.PeerResult](t, p.Worker.Caller(), "peer", "reverse", "home", "off", "--retry-request", off.Mutation.RequestId)
	if !again.Mutation.Replayed {
		t.Errorf("%+v", again.Mutation)
	}
	get[api.PeerResult](t, p.Worker.Caller(), "peer", "reverse", "home", "on")
	p.up(t, "again")
	run.Done(run.Work(done+"back", p.Place()...).DispatchId)
	if text := p.Worker.Caller().CLI("peer", "show", "home").Stdout; !strings.Contains(text, "reverse") || !strings.Contains(text, "4 connections") {
		t.Errorf("peer show says %q", text)
	}
}

// A pair that links direct changes over while it works.
func TestAcceptance_F15_ADirectPairTurnsReverseOn(t *testing.T) {
	t.Parallel()
	p := Pairing{Home: StartHub(t, "home"), Worker: StartHub(t, "worker"), Root: t.TempDir()}
	in := newProxy(t, p.Worker)
	Pair(t, p.Home, p.Worker, p.Root, "https://"+in.Addr())
	run := p.Home.NewRun("direct, then reverse")
	run.Done(run.Work(done+"direct", p.Place()...).DispatchId)
	show := func() api.PeerDetail { return get[api.PeerDetail](t, p.Home.Caller(), "peer", "show", "worker") }
	eventually(t, "the link is up", 20*time.Second, func() bool { return show().Link.State == "up" })
	if d := show(); d.Link.Transport != "direct" {
		t.Errorf("%+v", d.Link)
	}
	worker := p.Worker.Caller()
	get[api.PeerResult](t, worker, "peer", "reverse", "home", "on")
	eventually(t, "streams are parked", 20*time.Second, func() bool {
		return get[api.PeerDetail](t, worker, "peer", "show", "home").Link.Parked == 4
	})
	in.CutAll() // the way in is there still, but a stream that waits comes first
	eventually(t, "the link is reverse", 45*time.Second, func() bool { return show().Link.State == "up" && show().Link.Transport == "reverse" })
	run.Done(run.Work(done+"reverse", p.Place()...).DispatchId)
}

// Nothing is left open by links that came and went.
func TestAcceptance_F15_NoDescriptorsAreLeft(t *testing.T) {
	t.Parallel()
	if !exists("/proc/self/fd") {
		t.Skip("open descriptors are counted in /proc, which this system has not")
	}
	p := newNATPair(t)
	run := p.Home.NewRun("descriptors")
	cycle := func() {
		p.out.CutAll()
		p.up(t, "after a cut")
		run.Done(run.Work(done+"here", p.Place()...).DispatchId)
	}
	cycle()
	cycle()
	before := [2]int{descriptors(t, p.Home), descriptors(t, p.Worker)}
	for range 8 {
		cycle()
	}
	for i, h := range []*Hub{p.Home, p.Worker} {
		eventually(t, h.Name+" has as many descriptors as before", 20*time.Second, func() bool { return descriptors(t, h) <= before[i]+4 })
	}
}

func descriptors(t testing.TB, h *Hub) int {
	t.Helper()
	open, err := os.ReadDir(filepath.Join("/proc", itoa(h.PID()), "fd"))
	must(t, err)
	return len(open)
}

// A process that stood still looks at its links when it goes on.
func TestAcceptance_F15_AHubThatSleptLooksAtItsLinks(t *testing.T) {
	t.Parallel()
	p := newNATPair(t)
	run := p.Home.NewRun("asleep")
	w := run.heldWorker(t, p.Worker, p.Place()...)
	p.up(t, "at first")
	p.Worker.Signal(syscall.SIGSTOP)
	<-time.After(16 * time.Second) // the gap that counts as sleep, behind the usual look
	p.Worker.Signal(syscall.SIGCONT)
	eventually(t, "the worker hub has noticed", 20*time.Second, func() bool { return strings.Contains(p.Worker.log.String(), "this host has slept") })
	get[api.SendResult](t, w.Caller(), w.report("succeeded", "after the sleep")...)
	w.gate.open(t, 1)
	if m := run.Done(w.DispatchId); m.Body != "after the sleep" {
		t.Errorf("the report is %+v", m)
	}
	p.up(t, "after the sleep")
}
