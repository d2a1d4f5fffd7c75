package dispatch_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// fill queues n items of a size for the home, as if they had been accepted.
func (p *pair) fill(id hub.DispatchID, n, size int) {
	p.t.Helper()
	k := store.QueueKey{Peer: p.homeAtOwner, Dispatch: id, Direction: hub.ToHome}
	for done := 0; done < n; {
		part := min(n-done, max(1, 4<<20/size))
		p.owner.update(func(tx store.Tx) error {
			for range part {
				if _, err := tx.Enqueue(k, hub.Item{Kind: hub.ItemStarted, Payload: []byte(strings.Repeat("x", size))}); err != nil {
					return err
				}
			}
			return nil
		})
		done += part
	}
}

// TestAcceptance_F08_QuotaEdges: at a full queue, by number and by bytes, a message
// is refused and the last that fits is taken; the report, the exit, the evidence of
// a stop and what is about questions are taken beyond it.
func TestAcceptance_F08_QuotaEdges(t *testing.T) {
	for name, c := range map[string]struct{ items, size, room int }{
		"items": {hub.QueueItems - 1, 1, 0},
		"bytes": {hub.QueueBytes / (64 << 10), 64<<10 - 16, hub.QueueBytes / (64 << 10) * 16},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			r, _ := p.home.newRun()
			task := p.home.newTask(r)
			id := p.begin(task)
			p.fill(id, c.items, c.size)
			if c.room > 0 { // what a body may have and still fit, to the byte
				if _, err := p.owner.send(worker(id), status(strings.Repeat("x", c.room))); !hub.IsCode(err, hub.CodeRelayQuotaExceeded) {
					t.Fatalf("one byte too much: %v", err)
				}
				p.say(id, strings.Repeat("x", c.room-len("s")))
			} else {
				p.say(id, "the last")
			}
			if _, err := p.owner.send(worker(id), status("x")); !hub.IsCode(err, hub.CodeRelayQuotaExceeded) {
				t.Fatalf("at the full queue: %v", err)
			}
			if _, err := p.owner.send(worker(id), dispatch.SendInput{Type: hub.TypeQuestion, Body: "?"}); !hub.IsCode(err, hub.CodeRelayQuotaExceeded) {
				t.Fatalf("a question at the full queue: %v", err)
			}
			big := strings.Repeat("y", hub.MaxBodyBytes)
			if _, err := p.owner.send(worker(id), report(task, id, hub.OutcomeSucceeded, big)); err != nil {
				t.Fatalf("the report: %v", err)
			}
			p.owner.update(func(tx store.Tx) error {
				return dispatch.Exit(tx, p.homeAtOwner, id, hub.ExitItem{Signal: strings.Repeat("S", hub.MaxSubjectBytes)}, "")
			})
			items := p.outbox()
			exit := items[len(items)-1]
			if exit.Kind != hub.ItemExit || len(exit.Payload) > hub.ReservedExitBytes {
				t.Errorf("the exit: %s of %d bytes", exit.Kind, len(exit.Payload))
			}
		})
	}
}

// However far JSON has filled the queue beyond its quota, the report has its place.
func TestAnOverfullQueueTakesTheReport(t *testing.T) {
	p := newPair(t)
	r, _ := p.home.newRun()
	task := p.home.newTask(r)
	id := p.begin(task)
	p.fill(id, 20, 500<<10) // 10 MB
	if _, err := p.owner.send(worker(id), report(task, id, hub.OutcomeSucceeded, strings.Repeat("\x01", hub.MaxBodyBytes))); err != nil {
		t.Fatal(err)
	}
}

// The home's own reserve: fences, answers and question_closed behind a full queue.
func TestAcceptance_F08_FencesAndAnswersHaveRoom(t *testing.T) {
	p := newPair(t)
	r, consumer := p.home.newRun()
	id := p.begin(p.home.newTask(r))
	q, err := p.owner.send(worker(id), dispatch.SendInput{Type: hub.TypeQuestion, Body: "which?"})
	if err != nil {
		t.Fatal(err)
	}
	open, err := p.owner.send(worker(id), dispatch.SendInput{Type: hub.TypeQuestion, Body: "still open?"})
	if err != nil {
		t.Fatal(err)
	}
	p.session()
	k := store.QueueKey{Peer: p.ownerAtHome, Dispatch: id, Direction: hub.ToWorker}
	p.home.update(func(tx store.Tx) error {
		for range hub.QueueItems {
			if _, err := tx.Enqueue(k, hub.Item{Kind: hub.ItemStarted}); err != nil {
				return err
			}
		}
		return nil
	})
	if _, err := p.home.send(consumer, hurry(id, "x")); !hub.IsCode(err, hub.CodeRelayQuotaExceeded) {
		t.Fatalf("guidance at the full queue: %v", err)
	}
	in := dispatch.ReplyInput{Message: q.Message, Body: "this one"}
	if _, err := p.home.dispatch.Reply(context.Background(), p.home.request(consumer, "message.reply", in), in); err != nil {
		t.Fatalf("the answer: %v", err)
	}
	p.home.update(func(tx store.Tx) error {
		_, _, err := dispatch.Fence(tx, id, hub.FenceItem{Request: hub.NewRequestID()})
		return err
	})
	kinds := map[hub.ItemKind]int{}
	p.home.view(func(rx store.Rx) error {
		items, err := rx.QueueItems(k, hub.QueueItems+1, 1<<20)
		for _, it := range items {
			kinds[it.Kind]++
		}
		return err
	})
	if kinds[hub.ItemAnswer] != 1 || kinds[hub.ItemFence] != 1 || kinds[hub.ItemQuestionClosed] != 1 {
		t.Errorf("behind the full queue: %v (open was %s)", kinds, open.Message)
	}
}

// TestPace: while the link is up, what waits for a peer slows what is accepted for
// it, but no report; while it is down, only the quota of each queue does. What is
// parked slows nobody.
func TestPace(t *testing.T) {
	p := newPair(t)
	r, _ := p.home.newRun()
	up := false
	p.owner.dispatch.LinkUp = func(id hub.PeerID, dir hub.Direction) bool { return up && id == p.homeAtOwner && dir == hub.ToHome }
	task := p.home.newTask(r)
	id := p.begin(task)
	var full []hub.DispatchID
	for range 5 {
		d := p.begin(p.home.newTask(r))
		p.fill(d, 1000, 10)
		full = append(full, d)
	}
	p.say(id, "the link is down")
	up = true
	_, err := p.owner.send(worker(id), status("x"))
	if e, ok := err.(*hub.Error); !ok || e.Code != hub.CodeRateLimited || e.AfterMS <= 0 {
		t.Fatalf("behind 5000 items: %v", err)
	}
	if q := p.queue(id); q.LastSeq != 1 {
		t.Errorf("what was refused is queued: %+v", q)
	}
	p.ackOwner([]hub.Ack{{Dispatch: full[0], Parked: "poisoned"}})
	p.say(id, "the parked one does not count")
	p.ackOwner([]hub.Ack{{Dispatch: full[0]}})
	if _, err := p.owner.send(worker(id), status("x")); !hub.IsCode(err, hub.CodeRateLimited) {
		t.Fatalf("once it flows again: %v", err)
	}
	if _, err := p.owner.send(worker(id), report(task, id, hub.OutcomeSucceeded, "done")); err != nil {
		t.Fatalf("a report is slowed: %v", err)
	}
	p.ackOwner([]hub.Ack{{Dispatch: full[0], Seq: 1000}})
	if _, err := p.owner.send(worker(full[0]), status("the link has carried some away")); err != nil {
		t.Fatal(err)
	}
}

// Of what was acknowledged the newest are kept, and all until a week after the
// settlement; what waits is never dropped, nor the newest item of the log.
func TestSweepKeepsWhatMayBeAskedFor(t *testing.T) {
	p := newPair(t)
	r, _ := p.home.newRun()
	task := p.home.newTask(r)
	long, done, waits := p.begin(p.home.newTask(r)), p.begin(task), p.begin(p.home.newTask(r))
	p.fill(long, 2500, 10)
	heavy := p.begin(p.home.newTask(r))
	p.fill(heavy, 30, 300<<10)
	p.fill(waits, 3, 10)
	if _, err := p.owner.send(worker(done), report(task, done, hub.OutcomeSucceeded, "done")); err != nil {
		t.Fatal(err)
	}
	settled := hub.ItemVerdict{Seq: 1, Verdict: hub.VerdictAccepted}
	p.ackOwner([]hub.Ack{
		{Dispatch: long, Seq: 2400}, {Dispatch: heavy, Seq: 30}, {Dispatch: done, Seq: 1, Verdicts: []hub.ItemVerdict{settled}},
	})
	p.say(waits, "the newest of the log")
	sweep := func() int {
		n, err := p.owner.dispatch.SweepQueues(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	kept := func(id hub.DispatchID) string {
		items, err := p.owner.dispatch.Queue(t.Context(), p.homeAtOwner, hub.ToHome, id, 1, 64<<20)
		if err != nil || len(items) == 0 {
			return fmt.Sprint(len(items), err)
		}
		return fmt.Sprintf("%d-%d", items[0].Seq, items[len(items)-1].Seq)
	}
	want := func(when string, ids map[hub.DispatchID]string) {
		t.Helper()
		for id, span := range ids {
			if got := kept(id); got != span {
				t.Errorf("%s: %s is kept, want %s", when, got, span)
			}
		}
	}
	if n := sweep(); n != 1400+2 {
		t.Errorf("%d dropped", n)
	}
	want("at once", map[hub.DispatchID]string{long: "1401-2500", heavy: "3-30", done: "1-1", waits: "1-4"})
	p.owner.later += 6 * 24 * 3600 * 1_000_000
	if n := sweep(); n != 0 {
		t.Errorf("%d dropped after six days", n)
	}
	p.owner.later += 2 * 24 * 3600 * 1_000_000
	if n := sweep(); n != 1 {
		t.Errorf("%d dropped after eight days", n)
	}
	want("after eight days", map[hub.DispatchID]string{long: "1401-2500", done: "0 <nil>", waits: "1-4"})
	log, err := p.owner.dispatch.Log(t.Context(), p.homeAtOwner, hub.ToHome)
	if err != nil || log.Swept == 0 || log.Swept > log.Acked {
		t.Errorf("%+v %v", log, err)
	}
}
