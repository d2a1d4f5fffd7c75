package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/openapi/api"
)

const (
	// deadLink is when a link is given up that says nothing: 2½ pings of 15 s,
	// and room for a busy machine.
	deadLink = 60 * time.Second
	// redialled is how long a peer that can be reached again may stay away: one
	// try that still hangs, the longest pause, and the handshakes.
	redialled = 60 * time.Second
)

// linkOf is what the home says of its link. Asking has it dialled, if it is down.
func (p Pairing) linkOf(t testing.TB) api.PeerDetail {
	t.Helper()
	return get[api.PeerDetail](t, p.Home.Caller(), "peer", "show", p.Worker.Name)
}

func (p Pairing) awaitUp(t testing.TB) {
	t.Helper()
	eventually(t, "the link is up", redialled, func() bool { return p.linkOf(t).Link.State == "up" })
}

func (p Pairing) awaitGivenUp(t testing.TB) {
	t.Helper()
	eventually(t, "the link is given up", deadLink, func() bool { return p.linkOf(t).Link.State != "up" })
}

// queue has the worker send n messages; they are numbered from first.
func (w Worker) queue(t testing.TB, first, n int) {
	t.Helper()
	for i := range n {
		sent := get[api.SendResult](t, w.Caller(), "send", "--type", "status", "--subject", w.DispatchId, "--body", fmt.Sprintf("%s/%d", w.DispatchId, first+i))
		if sent.State != "queued" {
			t.Errorf("the message is %s", sent.State)
		}
	}
}

// take consumes mail until n messages of the worker have come.
func (c Coordinator) take(t testing.TB, w Worker, n int) (all []api.Message) {
	t.Helper()
	for len(all) < n {
		b := c.Check()
		if b.DeliveryId == nil {
			t.Fatalf("%d messages came, want %d", len(all), n)
		}
		get[api.CheckResult](t, c.Caller, "check", "--ack", *b.DeliveryId)
		for _, m := range b.Messages {
			if m.From == "dispatch:"+w.DispatchId {
				all = append(all, m)
			}
		}
	}
	return all
}

// The cable of a host is out, first for a moment and then until its link is
// given up. What its worker says meanwhile comes by itself once the link is there.
func TestAcceptance_F05_CablePulled(t *testing.T) {
	t.Parallel()
	n := newHostNet(t)
	home, far := n.start("mac"), n.start("windows")
	p := n.pair(home, far, "")
	run := home.NewRun("across hosts")
	w := run.heldWorker(t, far.Hub, p.Place()...)
	far.unplug()
	w.queue(t, 0, 3)
	far.plug()
	plugged := time.Now()
	all := run.take(t, w, 3)
	if took := time.Since(plugged); took > 5*time.Second {
		t.Errorf("delivered %s after the cable was back", took)
	}
	far.unplug()
	w.queue(t, 3, 3)
	queued := get[api.SendResult](t, w.Caller(), w.report("succeeded", "while the cable was out")...)
	if queued.State != "queued" {
		t.Errorf("the report is %s", queued.State)
	}
	w.gate.open(t, 1)
	p.awaitGivenUp(t)
	far.plug()
	all = append(all, run.take(t, w, 4)...)
	delivered := time.Now()
	up, err := time.Parse(time.RFC3339Nano, *p.linkOf(t).Link.ConnectedAt)
	must(t, err)
	if took := delivered.Sub(up); took > 5*time.Second {
		t.Errorf("delivered %s after link-up", took)
	}
	if m := all[len(all)-1]; ordered(t, all)[w.DispatchId] != 6 || m.Body != "while the cable was out" {
		t.Errorf("the last of %d messages is %+v", len(all), m)
	}
	if d := run.Show(w.DispatchId).Dispatch; d.State != "succeeded" {
		t.Errorf("the Dispatch is %s", d.State)
	}
}

// Packets for a host vanish: nothing is refused, and nothing is answered. Once
// that is known, a start is refused in the time of one dial.
func TestHosts_ABlackholeIsNoticedAndHeals(t *testing.T) {
	t.Parallel()
	n := newHostNet(t)
	home, far := n.start("mac"), n.start("windows")
	p := n.pair(home, far, "")
	run := home.NewRun("blackhole")
	w := run.heldWorker(t, far.Hub, p.Place()...)
	p.awaitUp(t)
	far.swallow()
	began := time.Now()
	w.queue(t, 0, 2)
	p.awaitGivenUp(t)
	gone := time.Now()
	task := run.Task("true")
	refused(t, run.Caller, "remote_runtime_unavailable", append([]string{"worker", "start", "--task", task}, p.Place()...)...)
	took := time.Since(gone)
	t.Logf("given up after %s, a start is refused in %s", gone.Sub(began).Round(time.Millisecond), took.Round(time.Millisecond))
	if took > 30*time.Second {
		t.Errorf("the start waited %s on a link that was given up", took)
	}
	far.deliver()
	p.awaitUp(t)
	if all := run.take(t, w, 2); ordered(t, all)[w.DispatchId] != 2 {
		t.Errorf("the mail is %+v", all)
	}
	run.Done(run.Begin(task, p.Place()...).DispatchId)
}

// A host gets another address; its name is what the home has saved.
func TestHosts_APeerMovesToAnotherAddress(t *testing.T) {
	t.Parallel()
	n := newHostNet(t)
	home, far := n.start("mac"), n.start("windows")
	home.resolves("windows.test", far.addr)
	p := n.pair(home, far, "windows.test")
	run := home.NewRun("moving")
	w := run.heldWorker(t, far.Hub, p.Place()...)
	p.awaitUp(t)
	before := *p.linkOf(t).Link.ConnectedAt
	far.move(3)
	home.resolves("windows.test", far.addr)
	w.queue(t, 0, 2)
	eventually(t, "there is another link", deadLink+redialled, func() bool {
		l := p.linkOf(t).Link
		return l.State == "up" && *l.ConnectedAt != before
	})
	if all := run.take(t, w, 2); ordered(t, all)[w.DispatchId] != 2 {
		t.Errorf("the mail is %+v", all)
	}
}

// One peer is away and one has a line that stays full. The mail of the third is
// as quick as before.
func TestAcceptance_F07_OthersAreNotDelayed(t *testing.T) {
	t.Parallel()
	n := newHostNet(t)
	home := n.start("mac")
	run := home.NewRun("three peers")
	hosts, workers := map[string]*netHost{}, map[string]Worker{}
	for _, name := range []string{"away", "slow", "third"} {
		hosts[name] = n.start(name)
		p := n.pair(home, hosts[name], "")
		workers[name] = run.heldWorker(t, hosts[name].Hub, p.Place()...)
	}
	const probes = 15
	before := run.latency(t, workers["third"], 0, probes)
	hosts["away"].unplug()
	workers["away"].queue(t, 0, 2)
	hosts["slow"].throttle("32kbit") // a message takes 15 s
	workers["slow"].flood(t, 4)
	after := run.latency(t, workers["third"], probes, probes)
	t.Logf("the slowest of %d came after %s, with the others in trouble after %s", probes, before, after)
	if after > 2*before+time.Second {
		t.Errorf("%s before, %s with one peer away and one slow", before, after)
	}
	hosts["away"].plug()
	if all := run.take(t, workers["away"], 2); ordered(t, all)[workers["away"].DispatchId] != 2 {
		t.Errorf("the mail of the peer that was away is %+v", all)
	}
}

// latency is how long the slowest of n messages took from the worker's call to
// the Run's mailbox, each sent when the one before had come.
func (c Coordinator) latency(t testing.TB, w Worker, first, n int) (slowest time.Duration) {
	t.Helper()
	for i := range n {
		sent := time.Now()
		w.queue(t, first+i, 1)
		all := c.take(t, w, 1)
		slowest = max(slowest, time.Since(sent))
		if want := fmt.Sprintf("%s/%d", w.DispatchId, first+i); len(all) != 1 || all[0].Body != want {
			t.Fatalf("%+v came, want %s", all, want)
		}
	}
	return slowest
}

// flood has the worker send n messages of nearly the largest size.
func (w Worker) flood(t testing.TB, n int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "body")
	must(t, os.WriteFile(file, []byte(strings.Repeat("x", 60<<10)), 0o600))
	for range n {
		get[api.SendResult](t, w.Caller(), "send", "--type", "status", "--subject", "large", "--body-file", file)
	}
}
