package dispatch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/mail"
	"github.com/wavehub/wavehub/internal/store"
)

// pair is a home and an owner that know each other; carry moves items by hand.
type pair struct {
	t           *testing.T
	home, owner *world
	ownerAtHome hub.PeerID // the owner, as the home knows it
	homeAtOwner hub.PeerID
}

func newPair(t *testing.T) *pair {
	p := &pair{t: t, home: newWorld(t), owner: newWorld(t), ownerAtHome: hub.NewPeerID(), homeAtOwner: hub.NewPeerID()}
	know := func(w *world, id hub.PeerID, other *world, role hub.Role) {
		w.update(func(tx store.Tx) error {
			return tx.PutPeer(hub.Peer{
				ID: id, Name: "other", Lineage: "hub_" + other.id, Fingerprint: "hub_" + other.id, Role: role,
				State: hub.PeerActive, StoreID: other.id, StoreEpoch: 1,
			})
		})
	}
	know(p.home, p.ownerAtHome, p.owner, hub.RoleWorker)
	know(p.owner, p.homeAtOwner, p.home, hub.RoleHome)
	return p
}

// begin starts a Dispatch at home whose worker is attached at the owner.
func (p *pair) begin(task hub.TaskID) hub.DispatchID {
	p.t.Helper()
	id := hub.NewDispatchID()
	var d hub.Dispatch
	p.home.update(func(tx store.Tx) (err error) {
		d, err = dispatch.Begin(tx, dispatch.Attempt{
			ID: id, Task: task, Server: hub.Server{PeerID: p.ownerAtHome, Name: "other"},
			Pin: hub.Pin{Lineage: "hub_" + p.owner.id, StoreID: p.owner.id, Epoch: 1}, PeerRequest: []byte("{}"),
		})
		if err != nil {
			return err
		}
		_, err = dispatch.EndStart(tx, id, dispatch.Start{Event: hub.EvStarted})
		return err
	})
	p.owner.update(func(tx store.Tx) error {
		a := hub.Attachment{Dispatch: id, Task: task, Run: d.Run, Home: p.homeAtOwner, Capability: hub.CapActive, Completion: "report"}
		return dispatch.Attach(tx, a, "cap-"+string(id))
	})
	return id
}

func (p *pair) outbox() []hub.Item {
	p.t.Helper()
	items, err := p.owner.dispatch.After(context.Background(), p.homeAtOwner, hub.ToHome, 0, 64<<20)
	if err != nil {
		p.t.Fatal(err)
	}
	return items
}

func (p *pair) importHome(items []hub.Item) hub.ImportResult {
	p.t.Helper()
	feed := hub.FeedState{StoreID: p.owner.id, Epoch: 1}
	for _, it := range items {
		feed.Position = max(feed.Position, it.Pos)
	}
	res, err := p.home.dispatch.Import(context.Background(), p.ownerAtHome, hub.ToHome, feed, items)
	if err != nil {
		p.t.Fatal(err)
	}
	return res
}

func (p *pair) ackOwner(acks []hub.Ack) {
	p.t.Helper()
	if err := p.owner.dispatch.Acked(context.Background(), p.homeAtOwner, hub.ToHome, acks); err != nil {
		p.t.Fatal(err)
	}
}

// toOwner carries everything that waits at home to the owner, acks included.
func (p *pair) toOwner() {
	p.t.Helper()
	items, err := p.home.dispatch.After(context.Background(), p.ownerAtHome, hub.ToWorker, 0, 64<<20)
	if err != nil || len(items) == 0 {
		p.t.Fatalf("%d items wait at home, %v", len(items), err)
	}
	feed := hub.FeedState{StoreID: p.home.id, Epoch: 1, Position: items[len(items)-1].Pos}
	res, err := p.owner.dispatch.Import(context.Background(), p.homeAtOwner, hub.ToWorker, feed, items)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.home.dispatch.Acked(context.Background(), p.ownerAtHome, hub.ToWorker, res.Acks); err != nil {
		p.t.Fatal(err)
	}
}

func status(body string) dispatch.SendInput {
	return dispatch.SendInput{Type: hub.TypeStatus, Subject: "s", Body: body}
}

func TestAcceptance_F03_ReportIsImportedOnce(t *testing.T) {
	p := newPair(t)
	r, _ := p.home.newRun()
	task := p.home.newTask(r)
	id := p.begin(task)
	sent, err := p.owner.send(worker(id), report(task, id, hub.OutcomeSucceeded, "done"))
	if err != nil || sent.State != dispatch.SentQueued || sent.Verdict != hub.VerdictNone {
		t.Fatalf("%+v %v", sent, err)
	}
	items := p.outbox()
	first := p.importHome(items)
	if len(first.Acks) != 1 || first.Acks[0].Seq != 1 || first.Acks[0].Verdicts[0].Verdict != hub.VerdictAccepted {
		t.Fatalf("%+v", first)
	}
	again := p.importHome(items) // the ack was lost
	if again.Acks[0].Seq != 1 || len(again.Acks[0].Verdicts) != 1 || len(p.home.inbox(r)) != 1 {
		t.Fatalf("redelivery: %+v, %d messages", again, len(p.home.inbox(r)))
	}
	p.ackOwner(first.Acks)
	v, err := p.owner.mail.AwaitVerdict(context.Background(), worker(id), sent.Message, time.Second)
	if err != nil || v.Verdict != hub.VerdictAccepted {
		t.Fatalf("%+v %v", v, err)
	}
	if len(p.outbox()) != 0 {
		t.Error("acknowledged items are sent again")
	}
	if tk, d := p.home.states(task, id); d.State != hub.Succeeded || tk.State != hub.TaskCompleted {
		t.Errorf("Dispatch %s, Task %s", d.State, tk.State)
	}
}

func TestAcceptance_F04_DisorderConverges(t *testing.T) {
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 1))
		p := newPair(t)
		r, _ := p.home.newRun()
		ids := []hub.DispatchID{p.begin(p.home.newTask(r)), p.begin(p.home.newTask(r)), p.begin(p.home.newTask(r))}
		for i := range 60 {
			if _, err := p.owner.send(worker(ids[i%3]), status(fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			}
		}
		items := p.outbox()
		for round := range 15 { // whatever arrives, in whatever order
			batch := append([]hub.Item{}, items...)
			rng.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
			res := p.importHome(batch[:1+rng.IntN(len(batch))])
			if round%5 == 4 {
				p.ackOwner(res.Acks)
			}
		}
		p.importHome(items)
		want := map[hub.DispatchID]int{ids[0]: 0, ids[1]: 1, ids[2]: 2}
		got := p.home.inbox(r)
		for _, m := range got {
			d, _ := hub.Box(m.From).Dispatch()
			if m.Body != fmt.Sprint(want[d]) {
				t.Fatalf("seed %d: %s follows where %d is due", seed, m.Body, want[d])
			}
			want[d] += 3
		}
		if len(got) != 60 {
			t.Fatalf("seed %d: %d of 60 messages", seed, len(got))
		}
	}
}

// TestFeedNeverPassesAGap: what has not been imported is sent again after a
// reconnect, because the receiver's position stays before it.
// Invariant 7.
func TestFeedNeverPassesAGap(t *testing.T) {
	p := newPair(t)
	r, _ := p.home.newRun()
	id := p.begin(p.home.newTask(r))
	for i := range 3 {
		if _, err := p.owner.send(worker(id), status(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	items := p.outbox()
	res := p.importHome(items[1:])
	if res.Feed >= items[1].Pos || len(res.Wants) != 1 || res.Wants[0] != (hub.Want{Dispatch: id, Seq: 1}) {
		t.Fatalf("%+v with a gap before position %d", res, items[1].Pos)
	}
	res = p.importHome(items)
	if res.Feed != items[2].Pos || len(res.Wants) != 0 || res.Acks[0].Seq != 3 {
		t.Fatalf("%+v", res)
	}
}

// Invariants 5 and 7.
func TestAcceptance_F12_LiarsChangeNothing(t *testing.T) {
	p := newPair(t)
	r, _ := p.home.newRun()
	remote := p.begin(p.home.newTask(r))
	task := p.home.newTask(r)
	local := p.home.begin(task)
	forged := func(d hub.DispatchID, seq int64, kind hub.ItemKind, v any) hub.Item {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		m, _ := v.(hub.Message)
		return hub.Item{Pos: seq, Dispatch: d, Seq: seq, ID: m.ID, Kind: kind, Payload: raw}
	}
	rep, err := json.Marshal(hub.Report{Task: task, Dispatch: local, Outcome: hub.OutcomeSucceeded, Evidence: hub.EvidenceReport})
	if err != nil {
		t.Fatal(err)
	}
	done := hub.Message{ID: hub.NewMessageID(), Type: hub.TypeWorkerDone, Body: "b", Payload: rep}
	setup := []byte(`{"state":"failed","ended":true,"terminal_id":"` + string(hub.NewTerminalID()) + `"}`)
	notice := func(from string, payload []byte) hub.Message {
		return hub.Message{ID: hub.NewMessageID(), Type: hub.TypeNotice, From: from, Payload: payload}
	}
	for name, it := range map[string]hub.Item{
		"another hub's Dispatch":  forged(local, 1, hub.ItemMessage, done),
		"an unknown Dispatch":     forged(hub.NewDispatchID(), 1, hub.ItemExit, hub.ExitItem{}),
		"a foreign report":        forged(remote, 1, hub.ItemMessage, done),
		"a fence from the worker": forged(remote, 1, hub.ItemFence, hub.FenceItem{}),
		"a kind of the future":    forged(remote, 1, "of the future", hub.ExitItem{}),
		"a worker's notice":       forged(remote, 1, hub.ItemMessage, notice(string(remote.Box()), setup)),
		"a setup that runs":       forged(remote, 1, hub.ItemMessage, notice("hub", []byte(`{"state":"running"}`))),
		"a setup of no terminal":  forged(remote, 1, hub.ItemMessage, notice("hub", []byte(`{"state":"failed","ended":true}`))),
		"no JSON":                 {Pos: 1, Dispatch: remote, Seq: 1, Kind: hub.ItemExit, Payload: []byte("{")},
	} {
		res := p.importHome([]hub.Item{it})
		if len(res.Acks) != 1 || res.Acks[0].Seq != 0 || res.Acks[0].Parked == "" {
			t.Errorf("%s: %+v", name, res)
		}
	}
	if _, d := p.home.states(task, local); d.State != hub.Ready || len(p.home.inbox(r)) != 0 {
		t.Errorf("Dispatch %s, %d messages", d.State, len(p.home.inbox(r)))
	}
	if _, err := p.owner.send(worker(remote), status("honest")); err != nil {
		t.Fatal(err)
	}
	if p.importHome(p.outbox()); len(p.home.inbox(r)) != 1 {
		t.Error("honest mail is stuck behind the lies")
	}
	err = p.owner.dispatch.Acked(context.Background(), p.homeAtOwner, hub.ToHome, []hub.Ack{{Dispatch: remote, Seq: 99}})
	if err == nil {
		t.Error("an ack beyond what was sent is taken")
	}
}

// TestOneImportSeesItsOwnEffects: the record that mail shares is not that of before
// an end between them, and another Dispatch's unknown item holds nothing up.
func TestOneImportSeesItsOwnEffects(t *testing.T) {
	p := newPair(t)
	r, _ := p.home.newRun()
	task := p.home.newTask(r)
	ends, other := p.begin(task), p.begin(p.home.newTask(r))
	var items []hub.Item
	queued := func(d hub.DispatchID, seq int64, kind hub.ItemKind, v any) {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		id := hub.NewMessageID()
		if m, ok := v.(hub.Message); ok {
			id = m.ID
		}
		items = append(items, hub.Item{Pos: int64(len(items) + 1), Dispatch: d, Seq: seq, ID: id, Kind: kind, Payload: raw})
	}
	mail := func() hub.Message {
		return hub.Message{ID: hub.NewMessageID(), Type: hub.TypeStatus, Subject: "s", Body: "b"}
	}
	queued(ends, 1, hub.ItemMessage, mail())
	queued(other, 1, "of the future", struct{}{})
	queued(ends, 2, hub.ItemExit, hub.ExitItem{})
	queued(ends, 3, hub.ItemMessage, mail())
	res := p.importHome(items)
	if _, d := p.home.states(task, ends); d.State != hub.Failed {
		t.Errorf("the Dispatch is %s", d.State)
	}
	if len(res.Acks) != 2 || res.Acks[0].Seq != 3 || res.Acks[1].Seq != 0 || res.Acks[1].Parked == "" {
		t.Fatalf("%+v", res.Acks)
	}
	if v := res.Acks[0].Verdicts; len(v) != 1 || v[0].Seq != 3 || v[0].Verdict != hub.VerdictStale {
		t.Errorf("mail behind the end got %+v", v)
	}
}

// Invariant 9 of package mail.
func TestAcceptance_F06_AnswersAndGuidanceCross(t *testing.T) {
	p := newPair(t)
	r, consumer := p.home.newRun()
	id := p.begin(p.home.newTask(r))
	q, err := p.owner.send(worker(id), dispatch.SendInput{Type: hub.TypeQuestion, Body: "keep it?", Options: []string{"yes", "no"}})
	if err != nil {
		t.Fatal(err)
	}
	joined, err := p.owner.send(worker(id), dispatch.SendInput{Type: hub.TypeQuestion, Body: "keep it?", Options: []string{"yes", "no"}})
	if err != nil || joined.Message != q.Message {
		t.Fatalf("the same question is stored twice: %+v %v", joined, err)
	}
	p.ackOwner(p.importHome(p.outbox()).Acks)
	answered := make(chan mail.AnswerResult, 1)
	go func() {
		a, err := p.owner.mail.Await(context.Background(), worker(id), q.Message, 10*time.Second)
		if err != nil {
			t.Error(err)
		}
		answered <- a
	}()
	reply := func(body string) (dispatch.Sent, error) {
		in := dispatch.ReplyInput{Message: q.Message, Body: body}
		return p.home.dispatch.Reply(context.Background(), p.home.request(consumer, "message.reply", in), in)
	}
	first, err := reply("yes")
	if err != nil || first.State != dispatch.SentQueued {
		t.Fatalf("%+v %v", first, err)
	}
	if again, err := reply("yes"); err != nil || again.Message != first.Message {
		t.Errorf("the same answer again: %+v %v", again, err)
	}
	if _, err := reply("no"); !hub.IsCode(err, hub.CodeAnswerConflict) {
		t.Errorf("another answer: %v", err)
	}
	g, err := p.home.send(consumer, dispatch.SendInput{To: id.Box(), Type: hub.TypeGuidance, Body: "hurry"})
	if err != nil || g.State != dispatch.SentQueued {
		t.Fatalf("%+v %v", g, err)
	}
	p.toOwner()
	if a := <-answered; a.Question.Answer != "yes" || a.TimedOut {
		t.Errorf("%+v", a)
	}
	b, err := p.owner.check(worker(id), mail.CheckInput{Box: id.Box()})
	if err != nil || len(b.Messages) != 2 || b.Messages[1].Body != "hurry" || b.Messages[1].From != string(r.Box()) {
		t.Errorf("%+v %v", b, err)
	}
}

// Invariant 8.
func TestFenceTravelsAndTombstonesHold(t *testing.T) {
	p := newPair(t)
	r, _ := p.home.newRun()
	id := p.begin(p.home.newTask(r))
	p.home.update(func(tx store.Tx) error {
		_, _, err := dispatch.Fence(tx, id, hub.FenceItem{Request: hub.NewRequestID()})
		return err
	})
	p.toOwner()
	var a hub.Attachment
	p.owner.view(func(rx store.Rx) (err error) { a, _, err = rx.Attachment(p.homeAtOwner, id); return err })
	if a.Fence == nil || a.Capability != hub.CapFenced {
		t.Fatalf("%+v", a)
	}
	if _, err := p.owner.send(worker(id), status("late")); !hub.IsCode(err, hub.CodeDispatchInactive) {
		t.Errorf("a fenced worker sends: %v", err)
	}
	p.owner.update(func(tx store.Tx) error {
		return dispatch.Stopped(tx, p.homeAtOwner, id, hub.StopEvidence{Proved: true, Action: hub.ActionEnded})
	})
	p.ackOwner(p.importHome(p.outbox()).Acks)
	var d hub.Dispatch
	p.home.view(func(rx store.Rx) (err error) { d, err = rx.Dispatch(id); return err })
	if d.State != hub.Stopped {
		t.Errorf("Dispatch %s", d.State)
	}
}

func TestAcceptance_F08_FullQueueTakesTheReport(t *testing.T) {
	p := newPair(t)
	r, _ := p.home.newRun()
	task := p.home.newTask(r)
	id := p.begin(task)
	var err error
	n := 0
	for ; err == nil && n <= hub.QueueItems; n++ {
		_, err = p.owner.send(worker(id), status("x"))
	}
	if !hub.IsCode(err, hub.CodeRelayQuotaExceeded) {
		t.Fatalf("after %d messages: %v", n, err)
	}
	if _, err := p.owner.send(worker(id), report(task, id, hub.OutcomeSucceeded, strings.Repeat("<\x01", 32<<10))); err != nil {
		t.Fatalf("the report: %v", err)
	}
	items := p.outbox()
	if n := len(items[len(items)-1].Payload); n > 1<<20-1024 {
		t.Errorf("the report has %d bytes, a frame of the relay holds 1 MiB", n)
	}
	p.ackOwner(p.importHome(p.outbox()).Acks)
	if _, d := p.home.states(task, id); d.State != hub.Succeeded {
		t.Errorf("Dispatch %s", d.State)
	}
}
