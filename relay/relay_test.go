package relay

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/testkit"
	"github.com/wavehub/wavehub/relay/wire"
)

func dispatches(n int) []hub.DispatchID {
	ds := make([]hub.DispatchID, n)
	for i := range ds {
		ds[i] = hub.NewDispatchID()
	}
	return ds
}

func TestAcceptance_F04_FaultsConverge(t *testing.T) {
	var total testkit.Faults
	for seed := range uint64(25) {
		synctest.Test(t, func(t *testing.T) {
			faults := testkit.Faults{Cut: 0.02, Truncate: 0.02, Duplicate: 0.05}
			if seed%2 == 1 { // no stream does this: items converge, verdicts may be lost
				faults.Drop, faults.Reorder = 0.03, 0.1
			}
			net := testkit.NewFaultNet(seed, faults)
			p := newPair(t, net)
			p.home.lossy, p.worker.lossy = seed%2 == 1, seed%2 == 1
			p.start()
			ds, rng := dispatches(7), rand.New(rand.NewPCG(seed, 1))
			pause := time.NewTicker(50 * time.Millisecond)
			defer pause.Stop()
			for i := range 600 {
				p.worker.enqueue(ds[rng.IntN(7)], strings.Repeat("x", rng.IntN(20_000)))
				p.home.enqueue(ds[rng.IntN(7)], fmt.Sprint(i))
				if i%10 == 0 {
					<-pause.C
				}
			}
			net.Set(testkit.Faults{})
			net.CutAll()
			p.puller.Kick(thePeer)
			eventually(t, time.Minute, fmt.Sprintf("seed %d: everything acknowledged", seed), func() bool { return p.worker.settled() && p.home.settled() })
			p.worker.sameAs(t, p.home)
			p.home.sameAs(t, p.worker)
			p.close()
			f := net.Tally()
			total.Cut += f.Cut + f.Truncate
			total.Drop += f.Drop
			total.Duplicate += f.Duplicate
			total.Reorder += f.Reorder
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("cuts %v, drops %v, duplicates %v, reorders %v", total.Cut, total.Drop, total.Duplicate, total.Reorder)
	if total.Cut == 0 || total.Drop == 0 || total.Duplicate == 0 || total.Reorder == 0 {
		t.Fatal("a fault never struck: the test shows nothing")
	}
}

func TestAcceptance_F03_LostAckIsRedelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, testkit.NewFaultNet(1, testkit.Faults{}))
		d := hub.NewDispatchID()
		// The home committed item 1 in an earlier session; its ack was lost.
		p.worker.enqueue(d, "done")
		p.home.feed = hub.FeedState{StoreID: "store-worker", Epoch: 1}
		if _, err := p.home.Import(t.Context(), thePeer, hub.ToHome, hub.FeedState{StoreID: "store-worker", Epoch: 1, Position: 1}, p.worker.queues[d]); err != nil {
			t.Fatal(err)
		}
		p.start()
		eventually(t, 5*time.Second, "ack without new traffic", p.worker.settled)
		p.worker.sameAs(t, p.home)
		if p.home.repeated == 0 {
			t.Fatal("nothing was redelivered")
		}
		p.close()
	})
}

// TestAcksFollowWhatIsSentAgain has a home that imported all in a session whose
// acks were lost: its cursor is ahead of every batch that comes again.
func TestAcksFollowWhatIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, testkit.NewFaultNet(1, testkit.Faults{}))
		p.desk.session.cfg.BatchItems = 3
		d := hub.NewDispatchID()
		for i := range 20 {
			p.worker.enqueue(d, fmt.Sprint(i))
		}
		if _, err := p.home.Import(t.Context(), thePeer, hub.ToHome, hub.FeedState{StoreID: "store-worker", Epoch: 1, Position: 20}, p.worker.queues[d]); err != nil {
			t.Fatal(err)
		}
		p.worker.enqueue(d, "new")
		p.start()
		eventually(t, 5*time.Second, "acknowledged", p.worker.settled)
		p.worker.sameAs(t, p.home)
		if p.opens != 1 {
			t.Errorf("%d connections: an honest ack ended a session", p.opens)
		}
		p.close()
	})
}

func TestAcceptance_F05_OutageThenCatchUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, testkit.NewFaultNet(1, testkit.Faults{}))
		p.down = staged("dial", errors.New("no route"))
		p.start()
		d := hub.NewDispatchID()
		p.worker.enqueue(d, "exit")
		<-time.After(time.Hour)
		if s := p.puller.State(thePeer); s.State != LinkDown || s.Stage != "dial" {
			t.Fatalf("state %+v", s)
		}
		if p.opens < 100 || p.opens > 400 {
			t.Fatalf("%d attempts in an hour", p.opens)
		}
		p.mu.Lock()
		p.down = nil
		p.mu.Unlock()
		p.puller.Kick(thePeer)
		eventually(t, 5*time.Second, "delivered at link-up", p.worker.settled)
		p.worker.sameAs(t, p.home)
		if s := p.puller.State(thePeer); s.State != LinkUp || s.ConnectedAt == 0 {
			t.Fatalf("state %+v", s)
		}
		p.close()
	})
}

func TestRestoredReceiverAsksForGaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, testkit.NewFaultNet(1, testkit.Faults{}))
		d := hub.NewDispatchID()
		for i := range 5 {
			p.worker.enqueue(d, fmt.Sprint(i))
		}
		p.worker.acked[d] = 3 // the home has lost what it acknowledged
		p.start()
		eventually(t, 10*time.Second, "resend", func() bool { p.home.mu.Lock(); defer p.home.mu.Unlock(); return len(p.home.got[d]) == 5 })
		p.close()
	})
}

// What the source keeps no more is passed over and told; what comes behind it is
// taken.
func TestSweptItemsAreSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, testkit.NewFaultNet(1, testkit.Faults{}))
		d, other := hub.NewDispatchID(), hub.NewDispatchID()
		for i := range 5 {
			p.worker.enqueue(d, fmt.Sprint(i))
			p.worker.enqueue(other, fmt.Sprint(i))
		}
		p.worker.acked[d] = 3
		p.worker.sweep(d, 2)
		p.start()
		eventually(t, 10*time.Second, "all that is left", p.worker.settled)
		if p.opens != 1 || p.home.lost[d] != 2 || len(p.home.got[d]) != 3 || len(p.home.got[other]) != 5 {
			t.Fatalf("%d connections, %v lost, %d and %d items", p.opens, p.home.lost, len(p.home.got[d]), len(p.home.got[other]))
		}
		p.close()
	})
}

func TestParkedDispatchHoldsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, testkit.NewFaultNet(1, testkit.Faults{}))
		bad, good := hub.NewDispatchID(), hub.NewDispatchID()
		p.home.refuse[bad] = "unknown_dispatch"
		for i := range 20 {
			p.worker.enqueue(bad, fmt.Sprint(i))
			p.worker.enqueue(good, fmt.Sprint(i))
		}
		p.start()
		eventually(t, 5*time.Second, "the good one", func() bool { p.worker.mu.Lock(); defer p.worker.mu.Unlock(); return p.worker.acked[good] == 20 })
		if p.worker.parked[bad] != "unknown_dispatch" {
			t.Fatalf("parked: %v", p.worker.parked)
		}
		p.home.mu.Lock()
		delete(p.home.refuse, bad)
		p.home.mu.Unlock()
		eventually(t, 2*time.Minute, "tried again in the same session", func() bool { p.worker.mu.Lock(); defer p.worker.mu.Unlock(); return p.worker.acked[bad] == 20 })
		p.close()
	})
}

// A queue that is longer than one batch comes whole once it is taken again.
func TestParkedBacklogComesWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, testkit.NewFaultNet(1, testkit.Faults{}))
		d := hub.NewDispatchID()
		p.home.refuse[d] = "unknown_dispatch"
		p.worker.enqueue(d, "first")
		p.start()
		eventually(t, 5*time.Second, "parked", func() bool { p.worker.mu.Lock(); defer p.worker.mu.Unlock(); return p.worker.parked[d] != "" })
		for range 19 {
			p.worker.enqueue(d, strings.Repeat("x", 60<<10))
		}
		eventually(t, time.Second, "passed over", func() bool { p.worker.mu.Lock(); defer p.worker.mu.Unlock(); return p.worker.reached == 20 })
		p.home.mu.Lock()
		delete(p.home.refuse, d)
		p.home.mu.Unlock()
		eventually(t, 2*time.Minute, "all of it, without new traffic", func() bool { p.worker.mu.Lock(); defer p.worker.mu.Unlock(); return p.worker.acked[d] == 20 })
		p.close()
	})
}

// What was in flight behind a refused item opens no gap: the park stands.
func TestParkStandsUntilTheQueueAdvances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, testkit.NewFaultNet(1, testkit.Faults{}))
		bad, good := hub.NewDispatchID(), hub.NewDispatchID()
		p.home.refuse[bad] = "unknown_dispatch"
		for range 100 {
			p.worker.enqueue(bad, strings.Repeat("x", 60<<10))
		}
		p.start()
		p.worker.enqueue(good, "x")
		eventually(t, 5*time.Second, "the good one", func() bool { p.worker.mu.Lock(); defer p.worker.mu.Unlock(); return p.worker.acked[good] == 1 })
		pause := time.NewTimer(5 * time.Minute)
		<-pause.C
		p.worker.mu.Lock()
		if p.worker.parked[bad] != "unknown_dispatch" {
			t.Errorf("parked: %q", p.worker.parked[bad])
		}
		p.worker.mu.Unlock()
		p.mu.Lock()
		if p.opens != 1 {
			t.Errorf("the session was opened %d times", p.opens)
		}
		p.mu.Unlock()
		p.home.mu.Lock()
		delete(p.home.refuse, bad)
		p.home.mu.Unlock()
		eventually(t, 5*time.Minute, "all of it", func() bool { p.worker.mu.Lock(); defer p.worker.mu.Unlock(); return p.worker.acked[bad] == 100 })
		p.worker.sameAs(t, p.home)
		p.close()
	})
}

func TestOversizedItemParksItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, testkit.NewFaultNet(1, testkit.Faults{}))
		bad, good := hub.NewDispatchID(), hub.NewDispatchID()
		p.worker.enqueue(bad, strings.Repeat("x", wire.MaxFrame))
		p.worker.enqueue(good, "x")
		p.start()
		eventually(t, 5*time.Second, "the good one", p.worker.settled)
		if !strings.HasPrefix(p.worker.parked[bad], "too_large") || p.worker.acked[good] != 1 {
			t.Fatalf("parked %v", p.worker.parked)
		}
		p.close()
	})
}

func TestRaisedEpochStartsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, testkit.NewFaultNet(1, testkit.Faults{}))
		d := hub.NewDispatchID()
		p.worker.enqueue(d, "a")
		p.start()
		eventually(t, 5*time.Second, "first epoch", p.worker.settled)
		p.worker.mu.Lock()
		p.worker.epoch, p.worker.acked = 2, map[hub.DispatchID]int64{}
		p.worker.mu.Unlock()
		p.worker.enqueue(d, "b")
		p.net.CutAll()
		eventually(t, 5*time.Second, "second epoch", p.worker.settled)
		p.worker.sameAs(t, p.home) // "a" once: deduped by id
		p.close()
	})
}

func TestBacklogIsBatchedWithinCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, testkit.NewFaultNet(1, testkit.Faults{}))
		ds := dispatches(100)
		for i := range 5000 {
			p.worker.enqueue(ds[i%100], strings.Repeat("y", 2000))
		}
		p.start()
		eventually(t, time.Minute, "backlog", p.worker.settled)
		p.worker.sameAs(t, p.home)
		if p.opens != 1 || p.home.imports > 200 {
			t.Fatalf("%d connections, %d imports for 5000 items", p.opens, p.home.imports)
		}
		p.close()
	})
}

func TestDeadLinkIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := testkit.NewFaultNet(1, testkit.Faults{})
		p := newPair(t, net)
		p.start()
		eventually(t, 5*time.Second, "up", func() bool { return p.puller.State(thePeer).State == LinkUp })
		net.Set(testkit.Faults{Drop: 1}) // the network swallows everything
		eventually(t, 45*time.Second, "dead after two pings", func() bool { return p.puller.State(thePeer).State != LinkUp })
		p.close()
	})
}

func TestOneWayNetworkIsNoticedByBoth(t *testing.T) {
	for _, first := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			p := newPair(t, testkit.NewFaultNet(1, testkit.Faults{}))
			p.start()
			eventually(t, 5*time.Second, "up", func() bool { return p.desk.Up(thePeer) })
			p.net.Mute(first, !first)
			p.setDown(errors.New("unreachable")) // no connection is made of one way
			eventually(t, 45*time.Second, "both ends gave up", func() bool { return !p.desk.Up(thePeer) && p.puller.State(thePeer).State != LinkUp })
			d := hub.NewDispatchID()
			p.worker.enqueue(d, "meanwhile")
			p.net.Mute(false, false)
			p.setDown(nil)
			eventually(t, time.Minute, "healed by itself", p.worker.settled)
			p.worker.sameAs(t, p.home)
			p.close()
		})
	}
}

func TestPausedNetworkLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, testkit.NewFaultNet(1, testkit.Faults{}))
		p.start()
		eventually(t, 5*time.Second, "up", p.isUp)
		since := p.puller.State(thePeer).ConnectedAt
		p.net.Pause()
		p.setDown(errors.New("unreachable")) // no connection is made meanwhile
		d := hub.NewDispatchID()
		for i := range 50 {
			p.worker.enqueue(d, fmt.Sprint(i))
		}
		<-time.After(20 * time.Second)
		p.net.Resume()
		eventually(t, 5*time.Second, "after the pause", p.worker.settled)
		p.worker.sameAs(t, p.home)
		if st := p.puller.State(thePeer); st.State != LinkUp || st.ConnectedAt != since {
			t.Errorf("a pause within two pings ended the link: %+v", st)
		}
		p.close()
	})
}

// TestAcceptance_F07_SlowPeerHoldsNoOther shows that a peer that takes nothing
// delays neither another peer nor the writer of its own items.
func TestAcceptance_F07_SlowPeerHoldsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow, fast := newPair(t, testkit.NewFaultNet(1, testkit.Faults{})), newPair(t, testkit.NewFaultNet(2, testkit.Faults{}))
		fast.desk = slow.desk // one worker hub, two homes
		slow.net.Pause()
		slow.start()
		fast.start()
		eventually(t, 5*time.Second, "the fast one is up", func() bool { return fast.puller.State(thePeer).State == LinkUp })
		begun := time.Now()
		slow.worker.enqueue(hub.NewDispatchID(), "x")
		eventually(t, time.Second, "delivered", slow.worker.settled)
		if d := time.Since(begun); d > 100*time.Millisecond {
			t.Errorf("took %v", d)
		}
		slow.net.Resume()
		slow.close()
		fast.close()
	})
}

func TestRemoveAndDropEndAtOnce(t *testing.T) {
	for name, end := range map[string]func(*pair){
		"home":   func(p *pair) { p.puller.Remove(thePeer) },
		"worker": func(p *pair) { p.desk.Drop(thePeer) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t, testkit.NewFaultNet(1, testkit.Faults{}))
				p.start()
				eventually(t, 5*time.Second, "up", func() bool { return p.desk.Up(thePeer) })
				p.mu.Lock()
				p.down = errors.New("revoked")
				p.mu.Unlock()
				end(p)
				eventually(t, time.Second, "closed", func() bool { return !p.desk.Up(thePeer) && p.puller.State(thePeer).State != LinkUp })
				p.close()
			})
		})
	}
}

// liar speaks raw frames to a worker hub's desk.
func lie(t *testing.T, p *pair, frames ...func(conn Conn)) error {
	t.Helper()
	a, b := p.net.Pipe()
	defer a.Close()
	end := make(chan error, 1)
	p.wg.Go(func() { end <- p.desk.Serve(p.ctx, b, "peer_liar") })
	numbered := &counting{Conn: a}
	for _, f := range frames {
		f(numbered)
	}
	go drain(a)
	select {
	case err := <-end:
		return err
	case <-time.After(time.Minute):
		t.Fatal("the session goes on")
		return nil
	}
}

// counting numbers what a test writes, as a session does.
type counting struct {
	Conn
	n uint64
}

func (c *counting) WriteFrame(ctx context.Context, frame []byte) error {
	c.n++
	return c.Conn.WriteFrame(ctx, append(binary.BigEndian.AppendUint64(nil, c.n), frame...))
}

func drain(c Conn) {
	for {
		if _, err := c.ReadFrame(context.Background()); err != nil {
			return
		}
	}
}

func send(t *testing.T, f wire.Frame) func(Conn) {
	raw, err := wire.Encode(nil, f)
	if err != nil {
		t.Fatal(err)
	}
	return func(c Conn) { _ = c.WriteFrame(context.Background(), raw) }
}

func TestAcceptance_F12_LiarsHurtThemselvesOnly(t *testing.T) {
	hello := wire.Hello{StoreID: "s", Epoch: 1, Nonce: "n", Contract: hub.ContractFederation, Credit: 1 << 20}
	d := hub.NewDispatchID()
	item := hub.Item{Pos: 1, Seq: 1, Dispatch: d, ID: hub.NewMessageID(), Kind: hub.ItemMessage}
	jump := item
	jump.Seq = 1 << 40
	big := item
	big.Payload = make([]byte, 1<<20-1000)
	var proto *ProtocolError
	for name, c := range map[string]struct {
		frames func(t *testing.T) []func(Conn)
		code   hub.Code // "": a protocol error
	}{
		"ack beyond sent": {frames: func(t *testing.T) []func(Conn) {
			return []func(Conn){send(t, hello), send(t, wire.Acks{Acks: []hub.Ack{{Dispatch: d, Seq: 1}}})}
		}},
		"giant frame": {frames: func(t *testing.T) []func(Conn) {
			return []func(Conn){send(t, hello), func(c Conn) { _ = c.WriteFrame(context.Background(), make([]byte, 2<<20)) }}
		}},
		"noise": {frames: func(t *testing.T) []func(Conn) {
			return []func(Conn){send(t, hello), func(c Conn) { _ = c.WriteFrame(context.Background(), []byte("GET / HTTP/1.1")) }}
		}},
		"sequence jump": {frames: func(t *testing.T) []func(Conn) {
			pings := func(c Conn) {
				for range 8 {
					send(t, wire.Ping{IntervalMS: 120_000})(c)
				}
			}
			return []func(Conn){send(t, hello), send(t, wire.Items{Items: []hub.Item{jump}}), pings}
		}},
		"beyond the grant": {frames: func(t *testing.T) []func(Conn) {
			f := send(t, wire.Items{Items: []hub.Item{big}})
			return []func(Conn){send(t, hello), func(c Conn) {
				for range 60 {
					f(c)
				}
			}}
		}},
		"no id": {frames: func(t *testing.T) []func(Conn) {
			return []func(Conn){send(t, hello), send(t, wire.Items{Items: []hub.Item{{Pos: 1, Seq: 1, Dispatch: "../x", ID: "m"}}})}
		}},
		"version of the future": {frames: func(t *testing.T) []func(Conn) {
			return []func(Conn){send(t, hello), func(c Conn) {
				_ = c.WriteFrame(context.Background(), []byte{wire.Version + 1, byte(wire.KindPing), 0, 0, 0, 0, 0, 0, 0, 1})
			}}
		}},
		"unknown kind": {frames: func(t *testing.T) []func(Conn) {
			return []func(Conn){send(t, hello), func(c Conn) { _ = c.WriteFrame(context.Background(), []byte{wire.Version, 200}) }}
		}},
		"want backwards": {frames: func(t *testing.T) []func(Conn) {
			return []func(Conn){send(t, hello), send(t, wire.Wants{Wants: []hub.Want{{Dispatch: d, Seq: 9, Until: 8}}})}
		}},
		"kept of no id": {frames: func(t *testing.T) []func(Conn) {
			return []func(Conn){send(t, hello), send(t, wire.Kept{From: []hub.Want{{Dispatch: "../x", Seq: 9}}})}
		}},
		"verdict beyond its ack": {frames: func(t *testing.T) []func(Conn) {
			return []func(Conn){send(t, hello), send(t, wire.Acks{Acks: []hub.Ack{{Dispatch: d, Verdicts: []hub.ItemVerdict{{Seq: 1, Verdict: "accepted"}}}}})}
		}},
		"two hellos": {frames: func(t *testing.T) []func(Conn) { return []func(Conn){send(t, hello), send(t, hello)} }},
		"items first": {frames: func(t *testing.T) []func(Conn) {
			return []func(Conn){send(t, wire.Items{Items: []hub.Item{item}})}
		}},
		"other contract": {code: hub.CodeCapabilityUnsupported, frames: func(t *testing.T) []func(Conn) {
			h := hello
			h.Contract = "federation/9"
			return []func(Conn){send(t, h)}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t, testkit.NewFaultNet(1, testkit.Faults{}))
				if name == "beyond the grant" {
					p.desk.session.cfg.Importer = stuck{p.worker}
				}
				if name != "beyond the grant" {
					p.start()
				}
				err := lie(t, p, c.frames(t)...)
				if c.code != "" && !hub.IsCode(err, c.code) || c.code == "" && !errors.As(err, &proto) {
					t.Errorf("the session ended with %v", err)
				}
				if name != "beyond the grant" {
					p.worker.enqueue(hub.NewDispatchID(), "honest")
					eventually(t, 5*time.Second, "honest traffic", p.worker.settled)
					if p.opens != 1 {
						t.Errorf("the honest peer had %d connections", p.opens)
					}
				}
				p.close()
			})
		})
	}
}

// TestRandomFrames throws well-formed nonsense at a desk, behind an honest
// hello, while an honest peer is served beside it.
func TestRandomFrames(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 2))
			p := newPair(t, testkit.NewFaultNet(seed, testkit.Faults{}))
			p.start()
			ds := dispatches(3)
			end, b := p.net.Pipe()
			a := &counting{Conn: end}
			p.wg.Go(func() { _ = p.desk.Serve(p.ctx, b, "peer_liar") })
			p.wg.Go(func() { drain(a) })
			send(t, wire.Hello{StoreID: "s", Nonce: "n", Contract: hub.ContractFederation, Credit: 1 << 20, Next: []hub.Want{{Dispatch: ds[0], Seq: 9}}})(a)
			for range 200 {
				d, n := ds[rng.IntN(3)], rng.Int64N(1<<rng.IntN(62)+1)
				send(t, []wire.Frame{
					wire.Items{Items: []hub.Item{{Pos: n, Seq: n, Dispatch: d, ID: "m", Kind: "k"}, {Pos: 1, Seq: 1, Dispatch: d, ID: "n"}}},
					wire.Acks{Acks: []hub.Ack{{Dispatch: d}}}, wire.Wants{Wants: []hub.Want{{Dispatch: d, Seq: n + 1}}},
					wire.Credit{Bytes: n}, wire.Ping{IntervalMS: n}, wire.Pong{IntervalMS: n},
				}[rng.IntN(6)])(a)
			}
			p.worker.enqueue(hub.NewDispatchID(), "honest")
			eventually(t, 5*time.Second, "honest traffic", p.worker.settled)
			a.Close()
			p.close()
		})
	}
}

// stuck is an importer whose store hangs until the session ends.
type stuck struct{ Importer }

func (stuck) Import(ctx context.Context, _ hub.PeerID, _ hub.Direction, _ hub.FeedState, _ []hub.Item) (hub.ImportResult, error) {
	<-ctx.Done()
	return hub.ImportResult{}, ctx.Err()
}

func TestVerdictsNeverTrailTheirAck(t *testing.T) {
	d := hub.NewDispatchID()
	ack := hub.Ack{Dispatch: d, Seq: 2000}
	for i := range 2000 {
		ack.Verdicts = append(ack.Verdicts, hub.ItemVerdict{Seq: int64(2000 - i), Verdict: "accepted", Reason: strings.Repeat("r", 2000)})
	}
	told := int64(0)
	for _, f := range ackFrames([]hub.Ack{ack}) {
		if _, err := wire.Encode(nil, f); err != nil {
			t.Fatal(err)
		}
		for _, a := range f.(wire.Acks).Acks {
			told += int64(len(a.Verdicts))
			if a.Seq != told {
				t.Fatalf("ack of %d after %d verdicts", a.Seq, told)
			}
		}
	}
}

func TestConfigIsValidated(t *testing.T) {
	m := newModel("s")
	bad := m.config("n")
	bad.Window = 10
	for _, cfg := range []Config{{}, m.config(""), bad} {
		if _, err := NewSession(cfg); err == nil {
			t.Errorf("%+v passes", cfg)
		}
	}
	s, err := NewSession(m.config("n"))
	if err != nil {
		t.Fatal(err)
	}
	a, _ := testkit.NewFaultNet(1, testkit.Faults{}).Pipe()
	if err := s.Run(t.Context(), a, hub.RoleMutual, thePeer); err == nil {
		t.Error("a mutual role passes")
	}
}

// slow is links whose connections take their time to fail.
type slow struct {
	opened chan struct{} // told of each Open
	leave  chan struct{} // closed to let them return
}

func (s slow) Open(ctx context.Context, _ hub.PeerID) (Conn, error) {
	s.opened <- struct{}{}
	<-ctx.Done()
	<-s.leave
	return nil, ctx.Err()
}

// TestAPeerThatIsKeptAgainTellsInOrder: its former link has told of its end before
// the next one begins.
func TestAPeerThatIsKeptAgainTellsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		session, err := NewSession(newModel("store-home").config("nonce"))
		if err != nil {
			t.Fatal(err)
		}
		links := slow{make(chan struct{}, 2), make(chan struct{})}
		told := make(chan string, 10)
		h, err := NewHome(HomeConfig{Session: session, Links: links, Changed: func(_ hub.PeerID, s LinkState) { told <- s.State }})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- h.Run(ctx) }()
		h.Add(thePeer)
		<-links.opened
		h.Remove(thePeer)
		h.Add(thePeer)
		synctest.Wait()
		if len(links.opened) != 0 || len(told) != 1 {
			t.Errorf("%d connections are opened beside the former one, %d states told", len(links.opened), len(told))
		}
		close(links.leave)
		<-links.opened
		synctest.Wait()
		for _, want := range []string{LinkConnecting, LinkDown, LinkConnecting} {
			if got := <-told; got != want {
				t.Errorf("told of %s, want %s", got, want)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if len(h.leaving) != 0 {
			t.Errorf("%d pulls are held", len(h.leaving))
		}
	})
}
