package dispatch_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/mail"
	"github.com/wavehub/wavehub/internal/store"
)

func (p *pair) importOwner(items []hub.Item) (hub.ImportResult, error) {
	feed := hub.FeedState{StoreID: p.home.id, Epoch: 1}
	for _, it := range items {
		feed.Position = max(feed.Position, it.Pos)
	}
	return p.owner.dispatch.Import(context.Background(), p.homeAtOwner, hub.ToWorker, feed, items)
}

func (p *pair) fromHome() []hub.Item {
	items, err := p.home.dispatch.After(context.Background(), p.ownerAtHome, hub.ToWorker, 0, 64<<20)
	if err != nil {
		p.t.Fatal(err)
	}
	return items
}

// start at home only: the request has not reached the owner
func (p *pair) startHome(task hub.TaskID) hub.DispatchID {
	id := hub.NewDispatchID()
	p.home.update(func(tx store.Tx) (err error) {
		_, err = dispatch.Begin(tx, dispatch.Attempt{
			ID: id, Task: task, Server: hub.Server{PeerID: p.ownerAtHome, Name: "other"},
			Pin: hub.Pin{Lineage: "hub_" + p.owner.id, StoreID: p.owner.id, Epoch: 1}, PeerRequest: []byte("{}"),
		})
		return err
	})
	return id
}

func TestATombstonePoisonsNoLink(t *testing.T) {
	p := newPair(t)
	r, _ := p.home.newRun()
	id := p.startHome(p.home.newTask(r))
	if _, err := p.home.send(operator(), dispatch.SendInput{To: id.Box(), Type: hub.TypeGuidance, Body: "hi"}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.importOwner(p.fromHome()); err != nil {
		t.Fatal(err)
	}
	p.owner.update(func(tx store.Tx) error { return dispatch.Entomb(tx, p.homeAtOwner, id) })
	other := p.begin(p.home.newTask(r))
	if _, err := p.home.send(operator(), dispatch.SendInput{To: other.Box(), Type: hub.TypeGuidance, Body: "hi2"}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.importOwner(p.fromHome()); err != nil {
		t.Errorf("import of all Dispatches fails: %v", err)
	}
	p.owner.view(func(rx store.Rx) error {
		ms, err := rx.Deliverable(other.Box(), 0, 50, 1<<20)
		if len(ms) != 1 {
			t.Errorf("%d messages for the healthy Dispatch", len(ms))
		}
		return err
	})
}

func TestAcceptance_F12_AHomeWritesIntoItsOwnDispatchesOnly(t *testing.T) {
	p := newPair(t)
	r, _ := p.owner.newRun() // a Run of the owner itself
	x := p.owner.begin(p.owner.newTask(r))
	m := hub.Message{ID: hub.NewMessageID(), From: "run:evil", Type: hub.TypeGuidance, Body: "rm -rf"}
	raw := `{"message_id":"` + string(m.ID) + `","from":"hub","type":"guidance","body":"rm -rf"}`
	res, err := p.importOwner([]hub.Item{
		{Pos: 1, Dispatch: x, Seq: 1, ID: hub.NewMessageID(), Kind: hub.ItemFence, Payload: []byte(`{"request_id":"r"}`)},
		{Pos: 2, Dispatch: x, Seq: 2, ID: m.ID, Kind: hub.ItemMessage, Payload: []byte(raw)},
	})
	if err != nil || res.Acks[0].Parked == "" {
		t.Errorf("%+v %v", res, err)
	}
	p.owner.view(func(rx store.Rx) error {
		ms, err := rx.Deliverable(x.Box(), 0, 50, 1<<20)
		for _, m := range ms {
			t.Errorf("injected into the local worker's mailbox: from=%s body=%q", m.From, m.Body)
		}
		return err
	})
}

func TestOutputWithNULsSettles(t *testing.T) {
	p := newPair(t)
	r, _ := p.home.newRun()
	task := p.home.newTask(r)
	id := p.begin(task)
	zero := 0
	p.owner.update(func(tx store.Tx) error {
		a, _, err := tx.Attachment(p.homeAtOwner, id)
		if err != nil {
			return err
		}
		a.Completion = "exit"
		if err := tx.SaveAttachment(a); err != nil {
			return err
		}
		return dispatch.Exit(tx, p.homeAtOwner, id, hub.ExitItem{ExitCode: &zero}, "file1\x00file2\x00")
	})
	res := p.importHome(p.outbox())
	_, d := p.home.states(task, id)
	if d.State != hub.Succeeded {
		t.Errorf("%+v; Dispatch %s", res.Acks, d.State)
	}
}

func TestALargeReportIsJudgedAtHome(t *testing.T) {
	p := newPair(t)
	r, _ := p.home.newRun()
	task := p.home.newTask(r)
	id := p.begin(task)
	in := report(task, id, hub.OutcomeSucceeded, "done")
	for range 3000 {
		in.Report.Files = append(in.Report.Files, "src/"+strings.Repeat("x", 50))
	}
	sent, err := p.owner.send(worker(id), in)
	if err != nil {
		t.Fatal(err)
	}
	res := p.importHome(p.outbox())
	_, d := p.home.states(task, id)
	if d.State != hub.Succeeded {
		t.Errorf("accepted as %q at the owner, parked at home: %+v; Dispatch %s", sent.State, res.Acks, d.State)
	}
}

func TestALargeCatchUpIsImported(t *testing.T) {
	p := newPair(t)
	r, _ := p.home.newRun()
	spec := strings.Repeat("s", 60<<10)
	for i := range 150 {
		c, err := p.home.runs.CreateTask(context.Background(), p.home.request(operator(), "task.create", hub.NewRequestID()), r, hub.Task{Spec: spec})
		if err != nil {
			t.Fatal(i, err)
		}
		id := p.begin(c.Task.ID)
		if _, err := p.owner.send(worker(id), report(c.Task.ID, id, hub.OutcomeSucceeded, "done")); err != nil {
			t.Fatal(err)
		}
	}
	items := p.outbox()
	n := 0
	for _, it := range items {
		n += len(it.Payload)
	}
	feed := hub.FeedState{StoreID: p.owner.id, Epoch: 1, Position: items[len(items)-1].Pos}
	_, err := p.home.dispatch.Import(context.Background(), p.ownerAtHome, hub.ToHome, feed, items)
	if err != nil {
		t.Errorf("%d items, %d bytes: %v", len(items), n, err)
	}
}

// An end is small, but writes the Task with what an earlier attempt has left.
func TestManyEndsAreImported(t *testing.T) {
	p := newPair(t)
	r, _ := p.home.newRun()
	result := strings.Repeat("r", 62<<10)
	var items []hub.Item
	for i := range int64(150) {
		task := p.home.newTask(r)
		id := p.begin(task)
		p.home.update(func(tx store.Tx) error {
			tk, err := tx.Task(task)
			if err != nil {
				return err
			}
			tk.Result = result
			return tx.SaveTask(tk)
		})
		items = append(items, hub.Item{Pos: i + 1, Dispatch: id, Seq: 1, ID: hub.NewMessageID(), Kind: hub.ItemExit, Payload: []byte("{}")})
	}
	if res := p.importHome(items); len(res.Acks) != len(items) || res.Acks[149].Seq != 1 {
		t.Errorf("%d acks", len(res.Acks))
	}
}

func TestARedeliveredQuestionOfAnEndedDispatch(t *testing.T) {
	p := newPair(t)
	r, _ := p.home.newRun()
	id := p.begin(p.home.newTask(r))
	for i := range 17 {
		if _, err := p.owner.send(worker(id), status(strings.Repeat("x", i+1))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.owner.send(worker(id), dispatch.SendInput{Type: hub.TypeQuestion, Body: "q?"}); err != nil {
		t.Fatal(err)
	}
	p.home.update(func(tx store.Tx) error { _, _, err := dispatch.Abandon(tx, id); return err })
	items := p.outbox()
	p.importHome(items)
	feed := hub.FeedState{StoreID: p.owner.id, Epoch: 2, Position: items[len(items)-1].Pos}
	_, err := p.home.dispatch.Import(context.Background(), p.ownerAtHome, hub.ToHome, feed, items)
	if err != nil {
		t.Errorf("redelivery in epoch 2 fails the whole import: %v", err)
	}
}

func TestARedeliveredReportIsToldItsVerdictAgain(t *testing.T) {
	p := newPair(t)
	r, _ := p.home.newRun()
	task := p.home.newTask(r)
	id := p.begin(task)
	if _, err := p.owner.send(worker(id), report(task, id, hub.OutcomeSucceeded, "done")); err != nil {
		t.Fatal(err)
	}
	items := p.outbox()
	p.importHome(items)
	feed := hub.FeedState{StoreID: p.owner.id, Epoch: 2, Position: items[len(items)-1].Pos}
	res, err := p.home.dispatch.Import(context.Background(), p.ownerAtHome, hub.ToHome, feed, items)
	if err != nil || len(res.Acks) != 1 || len(res.Acks[0].Verdicts) != 1 || res.Acks[0].Verdicts[0].Verdict != hub.VerdictAccepted {
		t.Errorf("in epoch 2: %+v %v", res, err)
	}
}

// A peer that calls its late reports observed evidence gains no room by it.
func TestForeignEvidenceHasTheQuotaOfHistory(t *testing.T) {
	p := newPair(t)
	r, _ := p.home.newRun()
	task := p.home.newTask(r)
	id := p.begin(task)
	p.home.update(func(tx store.Tx) error { _, _, err := dispatch.Abandon(tx, id); return err })
	rep, err := json.Marshal(hub.Report{Task: task, Dispatch: id, Outcome: hub.OutcomeSucceeded, Evidence: hub.EvidenceExit})
	if err != nil {
		t.Fatal(err)
	}
	var items []hub.Item
	for seq := range int64(40) {
		m := hub.Message{ID: hub.NewMessageID(), Type: hub.TypeWorkerDone, Body: strings.Repeat("x", int(seq)+1), Payload: rep}
		raw, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, hub.Item{Pos: seq + 1, Dispatch: id, Seq: seq + 1, ID: m.ID, Kind: hub.ItemMessage, Payload: raw})
	}
	if res := p.importHome(items); res.Acks[0].Seq != 40 {
		t.Fatalf("%+v", res.Acks)
	}
	if n := len(p.home.inbox(r)); n != 16 {
		t.Errorf("%d late reports are kept", n)
	}
}

func TestGiantObservationsAreRefused(t *testing.T) {
	p := newPair(t)
	r, _ := p.home.newRun()
	id := p.begin(p.home.newTask(r))
	giant := strings.Repeat("x", 900<<10)
	for kind, v := range map[hub.ItemKind]any{hub.ItemExit: hub.ExitItem{Signal: giant}, hub.ItemStopped: hub.StopItem{Reason: giant}} {
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		res := p.importHome([]hub.Item{{Pos: 1, Dispatch: id, Seq: 1, Kind: kind, Payload: raw}})
		if len(res.Acks) != 1 || res.Acks[0].Parked == "" || res.Acks[0].Seq != 0 {
			t.Errorf("%s: %+v", kind, res.Acks)
		}
	}
}

func TestAProvenStopStaysProven(t *testing.T) {
	p := newPair(t)
	r, _ := p.home.newRun()
	id := p.begin(p.home.newTask(r))
	p.owner.update(func(tx store.Tx) error {
		a, _, err := tx.Attachment(p.homeAtOwner, id)
		if err != nil {
			return err
		}
		if err := dispatch.Order(tx, a, hub.FenceItem{Request: "r"}); err != nil {
			return err
		}
		if err := dispatch.Stopped(tx, p.homeAtOwner, id, hub.StopEvidence{Proved: true}); err != nil {
			return err
		}
		return dispatch.Stopped(tx, p.homeAtOwner, id, hub.StopEvidence{Action: hub.ActionUnknown, LastError: "timeout"})
	})
	p.owner.view(func(rx store.Rx) error {
		a, _, err := rx.Attachment(p.homeAtOwner, id)
		if !a.Fenced {
			t.Error("a proven stop is unproven again")
		}
		return err
	})
	if n := len(p.outbox()); n != 1 {
		t.Errorf("%d items about one stop", n)
	}
}

func TestNeverAttachedIsTheReason(t *testing.T) {
	p := newPair(t)
	r, _ := p.home.newRun()
	task := p.home.newTask(r)
	id := p.startHome(task)
	p.home.update(func(tx store.Tx) error {
		_, _, err := dispatch.Fence(tx, id, hub.FenceItem{Request: "r"})
		return err
	})
	if _, err := p.importOwner(p.fromHome()); err != nil {
		t.Fatal(err)
	}
	p.importHome(p.outbox())
	_, d := p.home.states(task, id)
	if d.Reason != hub.ReasonNeverAttached {
		t.Errorf("%s reason %q", d.State, d.Reason)
	}
}

func TestTheEndOfAnUnknownStopIsMailed(t *testing.T) {
	w := newWorld(t)
	r, _ := w.newRun()
	id := w.begin(w.newTask(r))
	w.update(func(tx store.Tx) error {
		if _, _, err := dispatch.Fence(tx, id, hub.FenceItem{}); err != nil {
			return err
		}
		if _, err := dispatch.EndStop(tx, id, hub.StopEvidence{}); err != nil {
			return err
		}
		_, err := dispatch.EndStart(tx, id, dispatch.Start{Event: hub.EvStartFailed})
		return err
	})
	if n := len(w.inbox(r)); n != 1 {
		t.Errorf("%d mails for stop_unknown -> stopped", n)
	}
}

// classes notes the class of each Update.
type classes struct {
	store.Store
	seen []store.Class
}

func (c *classes) Update(ctx context.Context, class store.Class, fn func(store.Tx) error) error {
	c.seen = append(c.seen, class)
	return c.Store.Update(ctx, class, fn)
}

// TestReportsAreTakenUnderTheWatermark: a nearly full disk refuses new work, and
// a report is none.
func TestReportsAreTakenUnderTheWatermark(t *testing.T) {
	w := newWorld(t)
	r, _ := w.newRun()
	task := w.newTask(r)
	id := w.begin(task)
	c := &classes{Store: w.store}
	w.dispatch = &dispatch.Service{Store: c}
	for _, in := range []dispatch.SendInput{status("x"), report(task, id, hub.OutcomeSucceeded, "done")} {
		if _, err := w.send(worker(id), in); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.seen) != 2 || c.seen[0] != store.New || c.seen[1] != store.Settle {
		t.Errorf("classes %v", c.seen)
	}
}

func TestCutWaitsAreNotUnfinished(t *testing.T) {
	w := newWorld(t)
	r, c := w.newRun()
	for range 3 {
		if _, err := w.send(operator(), dispatch.SendInput{To: r.Box(), Type: hub.TypeStatus, Body: "x"}); err != nil {
			t.Fatal(err)
		}
		b, err := w.check(c, mail.CheckInput{Box: r.Box()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
		in := mail.CheckInput{Box: r.Box(), Ack: b.Delivery, WaitMS: 60_000}
		_, err = w.mail.Check(ctx, w.request(c, "mailbox.check", in), in)
		cancel()
		if err == nil {
			t.Fatal("the wait was not cut")
		}
	}
	w.update(func(tx store.Tx) error {
		n, err := tx.UnfinishedReceipts("operator")
		if n > 0 {
			t.Errorf("%d running receipts after 3 cut waits", n)
		}
		return err
	})
}
