package relay

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/testkit"
	"github.com/wavehub/wavehub/relay/wire"
)

func numbered(d hub.DispatchID, seq int64, size int) hub.Item {
	return hub.Item{Pos: seq, Dispatch: d, Seq: seq, ID: hub.NewMessageID(), Kind: hub.ItemMessage, Payload: make([]byte, size)}
}

// taken imports into a cursor as an importer does: the next sequence only.
func (c cursorsOf) taken(items []hub.Item) (acks []hub.Ack, wants []hub.Want) {
	gap := map[hub.DispatchID]bool{}
	seen := map[hub.DispatchID]bool{}
	for _, it := range items {
		seen[it.Dispatch] = true
		if it.Seq == c[it.Dispatch]+1 {
			c[it.Dispatch]++
		}
		gap[it.Dispatch] = gap[it.Dispatch] || it.Seq > c[it.Dispatch]
	}
	for d := range seen {
		acks = append(acks, hub.Ack{Dispatch: d, Seq: c[d]})
		if gap[d] {
			wants = append(wants, hub.Want{Dispatch: d, Seq: c[d] + 1})
		}
	}
	return acks, wants
}

type cursorsOf map[hub.DispatchID]int64

// TestPropertyAheadIsKeptOnce brings items in any order: what was kept is never
// asked for again, the bounds hold at every moment, and all of it is imported once
// every want has been answered.
func TestPropertyAheadIsKeptOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ds := dispatches(2)
		last := map[hub.DispatchID]int64{}
		var wait []hub.Item
		for _, d := range ds {
			last[d] = rapid.Int64Range(1, 100).Draw(t, "items")
			for seq := int64(1); seq <= last[d]; seq++ {
				wait = append(wait, numbered(d, seq, rapid.SampledFrom([]int{1, 1, 100, 60 << 10}).Draw(t, "size")))
			}
		}
		all := map[string]hub.Item{}
		for _, it := range wait {
			all[fmt.Sprint(it.Dispatch, it.Seq)] = it
		}
		a, cur := newAhead(2<<20), cursorsOf{}
		come := func(items []hub.Item) []hub.Want {
			items = a.join(items)
			acks, wants := cur.taken(items)
			out := a.settle(items, acks, wants)
			var bytes int64
			for d, w := range a.of {
				if len(w.items) > aheadItems || w.bytes > aheadBytes || w.next != cur[d]+1 {
					t.Fatalf("%d items, %d bytes, next %d behind %d", len(w.items), w.bytes, w.next, cur[d])
				}
				bytes += w.bytes
			}
			if bytes != a.bytes || bytes > a.room {
				t.Fatalf("%d bytes counted, %d kept, room for %d", a.bytes, bytes, a.room)
			}
			for _, w := range out {
				for _, it := range a.of[w.Dispatch].items {
					if it.Seq >= w.Seq && it.Seq <= w.Until {
						t.Fatalf("item %d is kept and asked for: %+v", it.Seq, w)
					}
				}
			}
			return out
		}
		var wants []hub.Want
		for len(wait) > 0 {
			i := rapid.IntRange(0, len(wait)-1).Draw(t, "which")
			if rapid.IntRange(0, 3).Draw(t, "lost") > 0 || len(wants) == 0 && len(wait) == 1 {
				wants = come([]hub.Item{wait[i]})
			}
			wait = append(wait[:i:i], wait[i+1:]...)
		}
		for _, d := range ds {
			for rounds := 0; cur[d] < last[d]; rounds++ {
				if rounds > 200 {
					t.Fatalf("%d of %d items of %s", cur[d], last[d], d)
				}
				come([]hub.Item{all[fmt.Sprint(d, cur[d]+1)]})
			}
		}
		if a.bytes != 0 || len(a.of) != 0 {
			t.Fatalf("%d bytes are kept of %d Dispatches when all has come", a.bytes, len(a.of))
		}
	})
}

// A receiver that has lost one item asks for that alone, and keeps what followed.
func TestAGapIsFilledWithNothingTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, testkit.NewFaultNet(1, testkit.Faults{}))
		d := hub.NewDispatchID()
		for i := range 40 {
			p.worker.enqueue(d, fmt.Sprint(i))
		}
		key := fmt.Sprint("store-worker", int64(1), d)
		p.home.cursors[key] = 10 // it has ten, and lost the next ten
		for seq := range int64(10) {
			p.home.took[fmt.Sprint(key, "#", seq+1)] = p.worker.queues[d][seq].ID
		}
		p.home.feed = hub.FeedState{StoreID: "store-worker", Epoch: 1, Position: 20, Items: 20}
		p.worker.acked[d] = 20
		crossed := 0
		p.tap = func(f wire.Frame) {
			if its, ok := f.(wire.Items); ok {
				crossed += len(its.Items)
			}
		}
		p.start()
		eventually(t, 5*time.Second, "all of it", p.worker.settled)
		p.close()
		if len(p.home.got[d]) != 30 || crossed != 30 || p.opens != 1 {
			t.Errorf("%d items came, %d were sent, %d connections", len(p.home.got[d]), crossed, p.opens)
		}
	})
}

// What a receiver keeps holds its credit, and the missing item still has room.
func TestAFullWindowOfGapsStillFills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, testkit.NewFaultNet(1, testkit.Faults{}))
		ds := dispatches(40)
		for i := range 6 {
			for _, d := range ds {
				p.worker.enqueue(d, strings.Repeat("x", 60<<10)+fmt.Sprint(i))
			}
		}
		for _, d := range ds {
			p.worker.acked[d] = 1 // each has lost its first
		}
		p.home.feed = hub.FeedState{StoreID: "store-worker", Epoch: 1, Position: 40, Items: 40}
		p.start()
		eventually(t, time.Minute, "all of it", p.worker.settled)
		p.worker.lossy = true
		p.worker.sameAs(t, p.home)
		if p.opens != 1 {
			t.Errorf("%d connections", p.opens)
		}
		p.close()
	})
}

// A home that was put back has forgotten the newest items that it acknowledged: it
// gets them at link-up, without new traffic.
func TestLostRowsComeAgainAtLinkUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, testkit.NewFaultNet(1, testkit.Faults{}))
		ds := dispatches(3)
		for i := range 30 {
			p.worker.enqueue(ds[i%3], fmt.Sprint(i))
		}
		p.start()
		eventually(t, 5*time.Second, "all of it", p.worker.settled)
		p.home.mu.Lock()
		blank := newModel("store-home")
		p.home.cursors, p.home.got, p.home.seen, p.home.took, p.home.feed = blank.cursors, blank.got, blank.seen, blank.took, blank.feed
		p.home.mu.Unlock()
		p.net.CutAll()
		eventually(t, 5*time.Second, "all of it again", func() bool {
			p.home.mu.Lock()
			defer p.home.mu.Unlock()
			return len(p.home.got[ds[0]])+len(p.home.got[ds[1]])+len(p.home.got[ds[2]]) == 30
		})
		p.worker.sameAs(t, p.home)
		p.close()
	})
}

// A source that was put back is parked at the greeting, and whatever it queues
// afterwards is not acknowledged; another Dispatch flows. Its new epoch brings it.
func TestAcceptance_F09_OlderSourceIsParkedAtTheGreeting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, testkit.NewFaultNet(1, testkit.Faults{}))
		hurt, other := hub.NewDispatchID(), hub.NewDispatchID()
		p.worker.enqueue(other, "a")
		p.worker.enqueue(hurt, "a")
		p.worker.enqueue(hurt, "lost")
		p.start()
		eventually(t, 5*time.Second, "all of it", p.worker.settled)
		p.worker.mu.Lock()
		p.worker.log, p.worker.queues[hurt], p.worker.acked[hurt] = p.worker.log[:2], p.worker.queues[hurt][:1], 1
		p.worker.mu.Unlock()
		p.net.CutAll()
		eventually(t, 5*time.Second, "parked before it is used again", func() bool {
			p.worker.mu.Lock()
			defer p.worker.mu.Unlock()
			return strings.HasPrefix(p.worker.parked[hurt], hub.ParkedConflict)
		})
		p.worker.enqueue(hurt, "new")
		p.worker.enqueue(other, "b")
		eventually(t, 5*time.Second, "the other flows", func() bool { p.worker.mu.Lock(); defer p.worker.mu.Unlock(); return p.worker.acked[other] == 2 })
		pause := time.NewTimer(10 * time.Minute)
		<-pause.C
		p.worker.mu.Lock()
		if p.worker.acked[hurt] != 1 || p.home.lost[hurt] != 2 {
			t.Errorf("acknowledged up to %d, lost %v", p.worker.acked[hurt], p.home.lost)
		}
		p.worker.epoch, p.worker.begin, p.worker.acked, p.worker.parked = 2, 3, map[hub.DispatchID]int64{}, map[hub.DispatchID]string{}
		p.worker.mu.Unlock()
		p.net.CutAll()
		eventually(t, 5*time.Second, "the new epoch", p.worker.settled)
		if got := p.home.got[hurt]; len(got) != 3 || string(got[2].Payload) != "new" {
			t.Errorf("%d items came", len(got))
		}
		p.close()
	})
}

// A long backlog of one Dispatch delays another's item by no more than a batch.
func TestABacklogDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, testkit.NewFaultNet(1, testkit.Faults{}))
		long, single := hub.NewDispatchID(), hub.NewDispatchID()
		for range 120 {
			p.worker.enqueue(long, strings.Repeat("x", 60<<10))
		}
		p.worker.enqueue(single, "x")
		before, came := 0, false
		p.tap = func(f wire.Frame) {
			its, _ := f.(wire.Items)
			for _, it := range its.Items {
				if came = came || it.Dispatch == single; !came {
					before += wire.ItemSize(it)
				}
			}
		}
		p.start()
		eventually(t, time.Minute, "all of it", p.worker.settled)
		p.worker.sameAs(t, p.home)
		p.close()
		if before > 256<<10 || before == 0 {
			t.Errorf("%d bytes of the backlog came before it", before)
		}
	})
}

// Refusing queues that were never sent costs a bounded memory.
func TestRefusalsAreBounded(t *testing.T) {
	l := newLedger()
	for n := range ledgerSoft + 1 {
		a := hub.Ack{Dispatch: hub.DispatchID(fmt.Sprint(n)), Parked: hub.ParkedUnknown}
		err := l.check(a)
		if (err != nil) != (n == ledgerSoft) {
			t.Fatalf("refusal %d: %v", n, err)
		}
		l.acked(a)
	}
}

// Items that nobody asked for again are no reason to pass over any: only an answer
// to a want moves a cursor.
func TestAnUnaskedKeptMovesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, testkit.NewFaultNet(1, testkit.Faults{}))
		d := hub.NewDispatchID()
		end, b := p.net.Pipe()
		a := &counting{Conn: end}
		p.wg.Go(func() { _ = p.desk.Serve(p.ctx, b, "peer_liar") })
		p.wg.Go(func() { drain(a) })
		send(t, wire.Hello{StoreID: "s", Epoch: 1, Nonce: "n", Contract: hub.ContractFederation, Credit: 1 << 20})(a)
		send(t, wire.Kept{From: []hub.Want{{Dispatch: d, Seq: 100}}})(a)
		send(t, wire.Items{Items: []hub.Item{numbered(d, 1, 1)}})(a)
		eventually(t, 5*time.Second, "the first item", func() bool { p.worker.mu.Lock(); defer p.worker.mu.Unlock(); return len(p.worker.got[d]) == 1 })
		if p.worker.lost[d] != 0 {
			t.Errorf("%d items were passed over", p.worker.lost[d])
		}
		a.Close()
		p.close()
	})
}

// Nothing is sent to, or taken from, a peer whose store or pin does not match: not
// an item crosses, in either direction, until it does; then all of it does.
func TestAcceptance_F09_HeldWhileTheStoreIsAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, testkit.NewFaultNet(1, testkit.Faults{}))
		crossed := 0
		p.tap = func(f wire.Frame) {
			if its, ok := f.(wire.Items); ok {
				crossed += len(its.Items)
			}
		}
		var wrong atomic.Bool
		wrong.Store(true)
		p.puller.cfg.Session.cfg.Check = func(context.Context, hub.PeerID, wire.Hello) error {
			if wrong.Load() {
				return hub.Errorf(hub.CodePeerStoreChanged, "another store")
			}
			return nil
		}
		d := hub.NewDispatchID()
		p.worker.enqueue(d, "to the home")
		p.home.enqueue(d, "to the worker")
		p.start()
		pause := time.NewTimer(10 * time.Minute)
		<-pause.C
		if s := p.puller.State(thePeer); s.Code != hub.CodePeerStoreChanged || p.worker.imports != 0 || p.home.imports != 0 {
			t.Errorf("%+v; %d and %d imports", s, p.worker.imports, p.home.imports)
		}
		wrong.Store(false)
		eventually(t, time.Minute, "all of it", func() bool { return p.worker.settled() && p.home.settled() })
		p.close()
		if crossed != 1 {
			t.Errorf("%d items were read by the home", crossed)
		}
	})
}

// However many queues the peer has parked, trying them again costs no session.
func TestManyParkedQueuesKeepTheLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, testkit.NewFaultNet(1, testkit.Faults{}))
		ds := dispatches(wire.MaxWants + 500)
		for _, d := range ds {
			p.home.refuse[d] = hub.ParkedUnknown
		}
		p.worker.mu.Lock()
		for _, d := range ds {
			p.worker.put(d, "x")
		}
		p.worker.mu.Unlock()
		p.start()
		pause := time.NewTimer(5 * time.Minute)
		<-pause.C
		p.home.mu.Lock()
		clear(p.home.refuse)
		p.home.mu.Unlock()
		eventually(t, 5*time.Minute, "all of it", func() bool {
			p.worker.mu.Lock()
			defer p.worker.mu.Unlock()
			for _, d := range ds {
				if p.worker.acked[d] != 1 {
					return false
				}
			}
			return true
		})
		if p.opens != 1 {
			t.Errorf("%d connections", p.opens)
		}
		p.close()
	})
}
