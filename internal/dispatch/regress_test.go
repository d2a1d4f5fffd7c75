package dispatch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// link carries everything from the owner to the home as a session of the relay
// does: each side judges the other's beginning, what was lost comes again, gaps
// are asked for, and what is kept nowhere is passed over.
type link struct {
	*pair
	log  hub.LogState
	feed hub.FeedState
	sent map[hub.DispatchID]int64
}

func (p *pair) session() {
	p.t.Helper()
	l := link{pair: p, sent: map[hub.DispatchID]int64{}}
	ctx := context.Background()
	var err error
	if l.log, err = p.owner.dispatch.Log(ctx, p.homeAtOwner, hub.ToHome); err != nil {
		p.t.Fatal(err)
	}
	said, err := p.home.dispatch.Feed(ctx, p.ownerAtHome, hub.ToHome)
	if err != nil {
		p.t.Fatal(err)
	}
	p.sawEpoch(l.log.Epoch)
	if said.StoreID == l.log.StoreID && said.Epoch > l.log.Epoch {
		if err := p.owner.dispatch.SeenEpoch(ctx, said.Epoch); err != nil {
			p.t.Fatal(err)
		}
	}
	var parks []hub.Ack
	if l.feed, parks, err = p.home.dispatch.Begin(ctx, p.ownerAtHome, hub.ToHome, l.log); err != nil {
		p.t.Fatal(err)
	}
	p.ackOwner(parks)
	if l.log.Lacks(said) {
		again, err := p.owner.dispatch.Between(ctx, p.homeAtOwner, hub.ToHome, 0, l.log.Acked, 64<<20)
		if err != nil {
			p.t.Fatal(err)
		}
		l.carry(again)
	}
	l.carry(p.outbox())
}

func (p *pair) sawEpoch(epoch int64) {
	p.home.update(func(tx store.Tx) error {
		known, err := tx.Peer(p.ownerAtHome)
		if err != nil {
			return err
		}
		known.StoreEpoch = epoch
		return tx.SavePeer(known)
	})
}

// carry imports items and answers every want, until there is none.
func (l link) carry(items []hub.Item) {
	l.t.Helper()
	ctx := context.Background()
	for round := 0; len(items) > 0; round++ {
		if round > 100 {
			l.t.Fatal("the session goes in circles")
		}
		feed := hub.FeedState{StoreID: l.log.StoreID, Epoch: l.log.Epoch, Position: l.feed.Position}
		for _, it := range items {
			feed.Position = max(feed.Position, it.Pos)
			l.sent[it.Dispatch] = max(l.sent[it.Dispatch], it.Seq)
		}
		res, err := l.home.dispatch.Import(ctx, l.ownerAtHome, hub.ToHome, feed, items)
		if err != nil {
			l.t.Fatal(err)
		}
		for i, a := range res.Acks {
			res.Acks[i].Seq = min(a.Seq, l.sent[a.Dispatch])
		}
		l.ackOwner(res.Acks)
		items = nil
		for _, w := range res.Wants {
			queue, err := l.owner.dispatch.Queue(ctx, l.homeAtOwner, hub.ToHome, w.Dispatch, w.Seq, 64<<20)
			if err != nil || len(queue) == 0 {
				l.t.Fatalf("item %d of %s: %d, %v", w.Seq, w.Dispatch, len(queue), err)
			}
			if queue[0].Seq != w.Seq {
				from := []hub.Want{{Dispatch: w.Dispatch, Seq: queue[0].Seq}}
				if _, err := l.home.dispatch.Skip(ctx, l.ownerAtHome, hub.ToHome, feed, from); err != nil {
					l.t.Fatal(err)
				}
			}
			items = append(items, queue...)
		}
	}
}

func (p *pair) say(id hub.DispatchID, body string) {
	p.t.Helper()
	if _, err := p.owner.send(worker(id), status(body)); err != nil {
		p.t.Fatal(err)
	}
}

// heard are the bodies of what came of a Dispatch, in order.
func (p *pair) heard(r hub.RunID, id hub.DispatchID) (bodies []string) {
	p.t.Helper()
	for _, m := range p.home.inbox(r) {
		if m.From == string(id.Box()) {
			bodies = append(bodies, m.Body)
		}
	}
	return bodies
}

type regressedPayload struct {
	Kind   string `json:"kind"`
	Count  int    `json:"dispatches"`
	Queues []struct {
		Dispatch hub.DispatchID `json:"dispatch_id"`
		Had      int64          `json:"had_seq"`
		Has      int64          `json:"has_seq"`
		Conflict bool           `json:"conflict"`
	} `json:"queues"`
}

// regressions are the relay_regressed notices of a Run.
func (p *pair) regressions(r hub.RunID) (out []regressedPayload) {
	p.t.Helper()
	for _, m := range p.home.inbox(r) {
		var n regressedPayload
		if m.Type != hub.TypeNotice {
			continue
		}
		if err := json.Unmarshal(m.Payload, &n); err != nil {
			p.t.Fatal(err)
		}
		if n.Kind == "relay_regressed" {
			out = append(out, n)
		}
	}
	return out
}

func (p *pair) adopt(w *world) {
	p.t.Helper()
	w.update(func(tx store.Tx) error { _, _, err := tx.RaiseEpoch(); return err })
}

func (p *pair) relayState(w *world, id hub.PeerID) hub.RelayState {
	p.t.Helper()
	st, err := w.dispatch.RelayState(context.Background(), id)
	if err != nil {
		p.t.Fatal(err)
	}
	return st
}

// TestAcceptance_F09_RestoredOlderStore: files put back by hand are noticed before
// a sequence is used again; the Dispatch is parked, others flow, and restore
// --adopt lets everything go on, with nothing lost and nothing twice.
func TestAcceptance_F09_RestoredOlderStore(t *testing.T) {
	p := newPair(t)
	r, _ := p.home.newRun()
	hurt, other := p.begin(p.home.newTask(r)), p.begin(p.home.newTask(r))
	p.say(hurt, "1")
	p.say(other, "1")
	p.session()
	old := p.owner.copied()
	p.say(hurt, "lost 2")
	p.say(hurt, "lost 3")
	p.session()
	p.owner.putBack(old)

	p.session() // nothing was sent since
	if st := p.relayState(p.home, p.ownerAtHome); st.ParkedCount != 1 || st.Parked[0].Dispatch != hurt || !strings.HasPrefix(st.Parked[0].Reason, hub.ParkedConflict) {
		t.Fatalf("at home: %+v", st)
	}
	if st := p.relayState(p.owner, p.homeAtOwner); st.ParkedCount != 1 || !st.Parked[0].Sending {
		t.Fatalf("at the owner: %+v", st)
	}
	told := p.regressions(r)
	if len(told) != 1 || told[0].Count != 1 || told[0].Queues[0].Dispatch != hurt || told[0].Queues[0].Had != 3 || !told[0].Queues[0].Conflict {
		t.Fatalf("told: %+v", told)
	}

	p.say(hurt, "new 2") // the sequence of "lost 2"
	p.say(other, "2")
	p.session()
	p.session()
	if got := p.heard(r, other); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("the other Dispatch: %v", got)
	}
	if got := p.heard(r, hurt); !slices.Equal(got, []string{"1", "lost 2", "lost 3"}) || len(p.regressions(r)) != 1 {
		t.Errorf("parked: %v, %d notices", got, len(p.regressions(r)))
	}
	p.home.view(func(rx store.Rx) error {
		q, err := rx.Queue(store.QueueKey{Peer: p.ownerAtHome, Dispatch: hurt, Direction: hub.ToWorker})
		if q.PendingItems != 0 {
			t.Errorf("the home's own queue: %+v", q)
		}
		return err
	})
	if q := p.queue(hurt); q.AckedSeq != 1 || q.Parked == "" {
		t.Errorf("a sequence with two meanings was acknowledged: %+v", q)
	}

	p.adopt(p.owner)
	p.session()
	if got := p.heard(r, hurt); !slices.Equal(got, []string{"1", "lost 2", "lost 3", "new 2"}) {
		t.Errorf("after the adoption: %v", got)
	}
	if st := p.relayState(p.home, p.ownerAtHome); st.ParkedCount != 0 {
		t.Errorf("still parked: %+v", st)
	}
	if q := p.queue(hurt); q.PendingItems != 0 || q.Parked != "" {
		t.Errorf("still waiting: %+v", q)
	}
}

func (p *pair) queue(id hub.DispatchID) (q store.Queue) {
	p.t.Helper()
	p.owner.view(func(rx store.Rx) (err error) {
		q, err = rx.Queue(store.QueueKey{Peer: p.homeAtOwner, Dispatch: id, Direction: hub.ToHome})
		return err
	})
	return q
}

// A re-used sequence is found by what it carries, also when the log has grown past
// where it was.
func TestReusedSequenceIsNeverAcknowledged(t *testing.T) {
	for name, lose := range map[string]func(p *pair, task hub.TaskID, id hub.DispatchID){
		"message": func(p *pair, _ hub.TaskID, id hub.DispatchID) { p.say(id, "lost") },
		"exit": func(p *pair, _ hub.TaskID, id hub.DispatchID) {
			p.owner.update(func(tx store.Tx) error {
				_, err := tx.Enqueue(store.QueueKey{Peer: p.homeAtOwner, Dispatch: id, Direction: hub.ToHome}, hub.Item{Kind: hub.ItemExit, Payload: []byte(`{}`)})
				return err
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			r, _ := p.home.newRun()
			task := p.home.newTask(r)
			id, other := p.begin(task), p.begin(p.home.newTask(r))
			old := p.owner.copied()
			lose(p, task, id)
			p.session()
			p.owner.putBack(old)
			p.say(other, "a") // the log is as long as it was
			p.say(id, "new")
			p.session()
			if q := p.queue(id); q.AckedSeq != 0 || !strings.HasPrefix(q.Parked, hub.ParkedConflict) {
				t.Fatalf("the queue: %+v", q)
			}
			if got := p.heard(r, other); !slices.Equal(got, []string{"a"}) || len(p.regressions(r)) != 1 {
				t.Errorf("the other: %v, %d notices", got, len(p.regressions(r)))
			}
			p.adopt(p.owner)
			p.session()
			if q := p.queue(id); q.PendingItems != 0 {
				t.Errorf("after the adoption: %+v", q)
			}
		})
	}
}

// What was imported under an epoch before is not done again: neither messages nor
// what leaves none.
func TestNewEpochRepeatsNothing(t *testing.T) {
	p := newPair(t)
	r, _ := p.home.newRun()
	id := p.begin(p.home.newTask(r))
	p.say(id, "1")
	p.owner.update(func(tx store.Tx) error {
		raw := []byte(`{"waiting_for":"permission","detail":"may I?"}`)
		_, err := tx.Enqueue(store.QueueKey{Peer: p.homeAtOwner, Dispatch: id, Direction: hub.ToHome}, hub.Item{Kind: hub.ItemWaiting, Payload: raw})
		return err
	})
	p.importHome(p.outbox()) // the acks are lost
	before := len(p.home.inbox(r))
	p.adopt(p.owner)
	p.session()
	if after := len(p.home.inbox(r)); before < 2 || after != before || p.queue(id).PendingItems != 0 {
		t.Errorf("%d messages, then %d; %+v", before, after, p.queue(id))
	}
}

// A home that was put back gets again what it had acknowledged, without new
// traffic, and is told what nobody keeps.
func TestAHomeThatLostRowsGetsThemAgain(t *testing.T) {
	for name, sweep := range map[string]int64{"all kept": 0, "some are swept": 3} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			r, _ := p.home.newRun()
			task := p.home.newTask(r)
			id, other := p.begin(task), p.begin(p.home.newTask(r))
			p.say(id, "1")
			p.session()
			old := p.home.copied()
			for _, body := range []string{"2", "3", "4"} {
				p.say(id, body)
			}
			if _, err := p.owner.send(worker(id), report(task, id, hub.OutcomeSucceeded, "done")); err != nil {
				t.Fatal(err)
			}
			p.say(other, "kept as the newest")
			p.session()
			p.owner.update(func(tx store.Tx) error {
				_, err := tx.SweepQueue(store.QueueKey{Peer: p.homeAtOwner, Dispatch: id, Direction: hub.ToHome}, sweep, 100)
				return err
			})
			p.home.putBack(old)
			p.session()
			p.session()
			want := []string{"1", "2", "3", "4", "done"}
			if sweep > 0 {
				want = []string{"1", "4", "done"}
			}
			if got := p.heard(r, id); !slices.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
			if _, d := p.home.states(task, id); d.State != hub.Succeeded {
				t.Errorf("the Dispatch is %s", d.State)
			}
			if n := len(p.regressions(r)); sweep > 0 != (n > 0) {
				t.Errorf("%d notices", n)
			}
			log, err := p.owner.dispatch.Log(t.Context(), p.homeAtOwner, hub.ToHome)
			if err != nil {
				t.Fatal(err)
			}
			feed, err := p.home.dispatch.Feed(t.Context(), p.ownerAtHome, hub.ToHome)
			if err != nil || log.Lacks(feed) {
				t.Errorf("it is sent again at every session: %+v %+v %v", log, feed, err)
			}
		})
	}
}

// Items of a Dispatch that its home has lost are parked, listed on both sides, and
// never dropped.
func TestUnknownDispatchIsParkedAndListed(t *testing.T) {
	p := newPair(t)
	r, _ := p.home.newRun()
	old := p.home.copied()
	id := p.begin(p.home.newTask(r))
	p.say(id, "1")
	p.home.putBack(old)
	p.session()
	p.session()
	for side, st := range map[string]hub.RelayState{"home": p.relayState(p.home, p.ownerAtHome), "owner": p.relayState(p.owner, p.homeAtOwner)} {
		if st.ParkedCount != 1 || st.Parked[0].Dispatch != id || st.Parked[0].Reason != hub.ParkedUnknown || st.Items != 0 {
			t.Errorf("%s: %+v", side, st)
		}
	}
	if q := p.queue(id); q.PendingItems != 1 {
		t.Errorf("dropped: %+v", q)
	}
}

// The list of unknown Dispatches that a liar can make is bounded.
func TestParkedListIsBounded(t *testing.T) {
	p := newPair(t)
	var items []hub.Item
	for i := range 1100 {
		items = append(items, hub.Item{Pos: int64(i + 1), Dispatch: hub.NewDispatchID(), Seq: 1, ID: hub.NewMessageID(), Kind: hub.ItemExit, Payload: []byte("{}")})
	}
	res := p.importHome(items)
	st := p.relayState(p.home, p.ownerAtHome)
	if len(res.Acks) != 1100 || st.ParkedCount != 1000 || len(st.Parked) != 20 {
		t.Errorf("%d acks, %d parked, %d shown", len(res.Acks), st.ParkedCount, len(st.Parked))
	}
}

// A fence that the home has forgotten to have sent parks its own queue, and the
// Run is told that it is this hub that has to be adopted.
func TestAHomePutBackIsHeldAsASource(t *testing.T) {
	p := newPair(t)
	r, consumer := p.home.newRun()
	id := p.begin(p.home.newTask(r))
	guide := func(body string) {
		if _, err := p.home.send(consumer, hurry(id, body)); err != nil {
			t.Fatal(err)
		}
	}
	old := p.home.copied()
	guide("lost")
	p.toOwner()
	p.home.putBack(old)
	guide("new")
	p.toOwner()
	p.toOwner() // it stays in the queue
	told := p.regressions(r)
	if len(told) != 1 || told[0].Queues[0].Dispatch != id {
		t.Fatalf("told: %+v", told)
	}
	if st := p.relayState(p.home, p.ownerAtHome); st.ParkedCount != 1 || !st.Parked[0].Sending || st.Parked[0].Waiting != 1 {
		t.Errorf("%+v", st)
	}
}

// TestPropertyCopiesPutBack puts copies back on either side, at any moment: once
// the store is adopted, everything that its owner still knows has come home
// exactly once and in order, and what came before is still there.
func TestPropertyCopiesPutBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := newPair(t)
		r, _ := p.home.newRun()
		ids := []hub.DispatchID{p.begin(p.home.newTask(r)), p.begin(p.home.newTask(r)), p.begin(p.home.newTask(r))}
		copyOf := p.owner.copied()
		n := 0
		type saying struct {
			id   hub.DispatchID
			body string
		}
		var known, atCopy []saying // what the owner's store has accepted
		imported := map[string]bool{}
		note := func() {
			for _, id := range ids {
				for _, body := range p.heard(r, id) {
					imported[body] = true
				}
			}
		}
		steps := rapid.SliceOfN(rapid.SampledFrom([]string{"say", "say", "session", "copy", "put back", "adopt"}), 5, 12).Draw(rt, "steps")
		for _, step := range steps {
			switch step {
			case "say":
				s := saying{rapid.SampledFrom(ids).Draw(rt, "dispatch"), fmt.Sprint(n)}
				n++
				p.say(s.id, s.body)
				known = append(known, s)
			case "session":
				p.session()
				note()
			case "copy":
				copyOf, atCopy = p.owner.copied(), slices.Clone(known)
			case "put back":
				p.owner.putBack(copyOf)
				known = slices.Clone(atCopy)
			case "adopt":
				p.adopt(p.owner)
			}
		}
		p.session() // an epoch that the home has seen is known from here on
		p.adopt(p.owner)
		p.session()
		note()
		for body := range imported {
			if !slices.ContainsFunc(ids, func(id hub.DispatchID) bool { return slices.Contains(p.heard(r, id), body) }) {
				rt.Fatalf("%s was imported and is gone", body)
			}
		}
		for _, id := range ids {
			got := p.heard(r, id)
			at := -1
			for _, s := range known {
				if s.id != id {
					continue
				}
				i := slices.Index(got, s.body)
				if i <= at || slices.Contains(got[i+1:], s.body) {
					rt.Fatalf("%s of %s: %v after place %d", s.body, id, got, at)
				}
				at = i
			}
			if q := p.queue(id); q.PendingItems != 0 || q.Parked != "" {
				rt.Fatalf("after the adoption %s waits: %+v", id, q)
			}
		}
	})
}

func hurry(id hub.DispatchID, body string) dispatch.SendInput {
	return dispatch.SendInput{To: id.Box(), Type: hub.TypeGuidance, Body: body}
}
