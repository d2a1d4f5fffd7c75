package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/proc"
)

const (
	mailWait     = time.Minute      // of one wait on the mailbox
	presenceTick = 30 * time.Second // between two presences
)

// attachLoop serves one identity. Its fields belong to the goroutine of run, but
// for what the turns' goroutines read: app, flags, conn, hub, notes and bin never
// change after newLoop.
type attachLoop struct {
	app   *app
	flags attachFlags
	conn  client.Config
	hub   *client.Client
	notes noteBook
	box   string
	bin   string

	turns   map[string]*turn // that run or report, by Dispatch
	queue   []*turn          // acknowledged and not begun
	ended   chan *turn
	handed  bool  // mail was left in the mailbox for the next start
	failure error // why the loop ends

	drained, hurried once // it drains; turns are not waited for any more
}

// once is a channel that is closed once. Safe for concurrent use.
type once struct {
	ch   chan struct{}
	only *sync.Once
}

func newOnce() once { return once{make(chan struct{}), &sync.Once{}} }

func (o once) set() { o.only.Do(func() { close(o.ch) }) }

func (o once) isSet() bool {
	select {
	case <-o.ch:
		return true
	default:
		return false
	}
}

// batch is one answer of the mailbox.
type batch struct {
	out *client.CheckResult
	err error
}

// run serves until the first interrupt and until its turns have ended. It survives
// the hub.
func (l *attachLoop) run(ctx context.Context) error {
	interrupts := make(chan os.Signal, 4)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(interrupts)
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	if ctx.Err() != nil {
		return nil
	}
	go l.follow(work, interrupts)
	switch err := l.restore(work); {
	case errors.Is(err, errHandedBack):
		return nil
	case err != nil:
		return err
	}
	l.app.say("attached as %s", l.flags.name)
	return l.serve(work)
}

// follow has the first interrupt drain the loop, whatever it is at, and the next
// one leave its turns to the next start.
func (l *attachLoop) follow(ctx context.Context, interrupts <-chan os.Signal) {
	for _, o := range []once{l.drained, l.hurried} {
		select {
		case <-interrupts:
			o.set()
		case <-ctx.Done():
			return
		}
	}
}

func (l *attachLoop) serve(ctx context.Context) error {
	waiting, quit := context.WithCancel(ctx)
	defer quit()
	mail, drained := l.await(waiting), l.drained.ch
	tick := time.NewTicker(presenceTick)
	defer tick.Stop()
	l.begin(ctx)
	l.present(ctx)
	for !l.finished() {
		select {
		case got := <-mail:
			if mail = nil; waiting.Err() == nil {
				l.take(ctx, got)
			}
		case t := <-l.ended:
			delete(l.turns, t.id)
		case <-tick.C:
			l.present(ctx)
		case <-drained:
			drained = nil
			l.app.say("draining: %d turns run, %d wait for the next start", len(l.turns), len(l.queue))
		}
		l.begin(ctx)
		switch idle := len(l.turns) == 0; {
		case l.failure != nil, l.drained.isSet() && (idle || l.handed):
			quit()
		case mail == nil:
			mail = l.await(waiting)
		}
	}
	return l.failure
}

// finished reports whether nothing runs and nothing more is to be run.
func (l *attachLoop) finished() bool {
	return len(l.turns) == 0 && l.drained.isSet()
}

// fail ends the loop: its turns are ended, for nobody takes their reports.
func (l *attachLoop) fail(err error) {
	if l.failure == nil {
		l.failure = err
	}
	l.drained.set()
	l.hurried.set()
}

// await waits for mail in its own goroutine, which ends with one answer.
func (l *attachLoop) await(ctx context.Context) <-chan batch {
	ch := make(chan batch, 1)
	go func() {
		var out *client.CheckResult
		err := l.stubborn(ctx, func() (err error) {
			out, err = l.hub.Check(ctx, l.box, client.CheckOptions{Wait: mailWait})
			return err
		})
		ch <- batch{out, err}
	}()
	return ch
}

// take acts on a batch, and on those behind it that are there already.
func (l *attachLoop) take(ctx context.Context, got batch) {
	for {
		if got.err != nil {
			l.fail(got.err)
			return
		}
		if got.out.DeliveryId == nil {
			return
		}
		ok, err := l.admit(got.out.Messages)
		if err == nil && ok {
			got.out, err = l.ack(ctx, *got.out.DeliveryId)
		}
		switch {
		case errors.Is(err, errHandedBack), err == nil && !ok:
			l.handed = true
			return
		case err != nil:
			l.fail(err)
			return
		}
		if got.out.DeliveryId == nil {
			return
		}
	}
}

// ack acknowledges a batch and returns the next one. What it consumed is begun
// only after it: a former loop is refused here.
func (l *attachLoop) ack(ctx context.Context, delivery string) (out *client.CheckResult, err error) {
	var opts []client.Option
	err = l.persist(ctx, l.drained.ch, func() error {
		out, err = l.hub.Check(ctx, l.box, client.CheckOptions{Ack: delivery}, opts...)
		opts = sameRequest(opts, err)
		return err
	})
	if err == nil {
		l.promote()
	}
	return out, err
}

// promote lets what a batch brought be begun.
func (l *attachLoop) promote() {
	for _, t := range l.queue {
		if t.line == "" {
			t.line = l.flags.exec
		}
	}
}

// admit acts on the messages of a batch: it notes what is to be begun, ends what is
// to be ended. It is false for a batch that is left to the next start.
func (l *attachLoop) admit(ms []client.Message) (bool, error) {
	fresh := slices.ContainsFunc(ms, func(m client.Message) bool { return m.Type == "session_start" })
	if fresh && l.drained.isSet() {
		return false, nil
	}
	for _, m := range ms {
		if err := l.message(m); err != nil {
			return false, err
		}
	}
	return true, nil
}

func (l *attachLoop) message(m client.Message) error {
	switch m.Type {
	case "session_start":
		return l.enlist(m)
	case "control", "session_close":
		var c hub.SessionControl
		if err := json.Unmarshal(m.Payload, &c); err != nil {
			return fmt.Errorf("reading %s: %w", m.MessageId, err)
		}
		if m.Type == "control" {
			l.cancel(string(c.Dispatch))
			return nil
		}
		return l.closed(c)
	}
	d, _ := hub.Box(m.To).Dispatch()
	t := l.find(string(d))
	if t == nil {
		l.app.note("wavehub: %s (%s) came for %s, which does not run here", m.MessageId, m.Type, m.To)
		return nil
	}
	if err := t.tell(m); err != nil {
		l.app.note("wavehub: %s (%s) for %s is not handed over: %v", m.MessageId, m.Type, m.To, err)
	}
	return nil
}

// enlist notes a Dispatch before it is acknowledged. One that is noted already was
// delivered before, and keeps its place.
func (l *attachLoop) enlist(m client.Message) error {
	var s hub.SessionStart
	if err := json.Unmarshal(m.Payload, &s); err != nil {
		return fmt.Errorf("reading %s: %w", m.MessageId, err)
	}
	if l.find(string(s.Dispatch)) != nil {
		return nil
	}
	n, known, err := l.notes.get(string(s.Dispatch))
	if err != nil || known && n.State != noted {
		return err
	}
	n = note{Start: s, State: noted}
	if err := l.notes.put(n); err != nil {
		return err
	}
	l.queue = append(l.queue, newTurn(n, ""))
	return nil
}

func (l *attachLoop) find(id string) *turn {
	if t := l.turns[id]; t != nil {
		return t
	}
	for _, t := range l.queue {
		if t.id == id {
			return t
		}
	}
	return nil
}

// cancel ends a Dispatch's turn, or, before it has begun, reports it without one.
func (l *attachLoop) cancel(id string) {
	if t := l.find(id); t != nil {
		t.stop()
	}
}

// closed drops a Dispatch that has ended. One that was stopped or given up is ended
// here too; a turn that has reported ends by itself.
func (l *attachLoop) closed(c hub.SessionControl) error {
	t := l.find(string(c.Dispatch))
	if t == nil {
		return l.notes.drop(string(c.Dispatch))
	}
	t.close()
	if s := hub.DispatchState(c.State); s == hub.Stopped || s == hub.Abandoned || l.turns[t.id] == nil {
		t.stop()
	}
	return nil
}

// begin starts what may be started: what was acknowledged, as long as there is room;
// what was cancelled before it began needs none.
func (l *attachLoop) begin(ctx context.Context) {
	l.queue = slices.DeleteFunc(l.queue, func(t *turn) bool {
		room := len(l.turns) < l.flags.parallel && !l.drained.isSet()
		if t.line == "" || !room && !t.stopped() {
			return false
		}
		l.turns[t.id] = t
		go func() {
			l.perform(ctx, t)
			l.ended <- t
		}()
		return true
	})
}

// perform runs a turn and reports it. What cannot be reported now is in its note.
func (l *attachLoop) perform(ctx context.Context, t *turn) {
	var end ending
	var err error
	if !t.stopped() && t.note.State != over {
		l.app.say("%s %s", t.id, t.verb())
		end, err = l.play(ctx, t)
	}
	if err == nil && l.hurried.isSet() && t.note.State == started {
		return // its note says started: the next start decides
	}
	switch {
	case err != nil:
	case t.note.State == over:
		giveUp, done := l.soon()
		defer done()
		err = l.report(ctx, giveUp, t.note)
	default:
		err = l.conclude(ctx, t, end)
	}
	if err != nil && !errors.Is(err, errHandedBack) {
		l.app.note("wavehub: %s: %v", t.id, err)
	}
}

// present says that the worker lives. One that gets lost is made up for by the
// next.
func (l *attachLoop) present(ctx context.Context) {
	in := client.Presence{Dispatches: slices.Sorted(maps.Keys(l.turns))}
	go func() {
		ctx, cancel := context.WithTimeout(ctx, presenceTick)
		defer cancel()
		if _, err := l.hub.Present(ctx, in); err != nil && ctx.Err() == nil {
			l.app.say("the presence was not taken: %v", err)
		}
	}()
}

// restore takes up what a former run of this program left: what was acknowledged
// and not begun is begun, what has ended is reported, and what was cut is resumed,
// or has failed. Its processes are ended before that.
func (l *attachLoop) restore(ctx context.Context) error {
	own := map[string]client.OwnDispatch{}
	err := l.persist(ctx, l.drained.ch, func() error {
		return l.eachOwn(ctx, func(d client.OwnDispatch) { own[d.DispatchId] = d })
	})
	if err != nil {
		return err
	}
	notes, err := l.notes.all()
	if err != nil {
		return err
	}
	for _, n := range notes {
		d, live := own[n.id()]
		delete(own, n.id())
		if err := l.restoreOne(ctx, n, d, live); err != nil {
			return err
		}
	}
	for _, d := range own {
		if d.TakenUp {
			if err := l.adopt(d); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *attachLoop) restoreOne(ctx context.Context, n note, d client.OwnDispatch, live bool) error {
	if n.State == started {
		if err := proc.EndTree(ctx, n.tree(), turnGrace); err != nil {
			return fmt.Errorf("ending the turn that a former run of this program left, of %s: %w", n.id(), err)
		}
		if err := os.RemoveAll(l.notes.private(n.TurnID)); err != nil {
			return err
		}
	}
	switch {
	case !live, n.State == noted && !d.TakenUp, n.State == started && d.Capability == "reported":
		return l.notes.drop(n.id()) // it has ended, or comes again by mail
	case n.State != over && d.Capability == "fenced":
		return l.due(n.ends("cancelled", "the turn does not run any more"))
	case n.State == started:
		return l.cut(n)
	}
	l.queue = append(l.queue, newTurn(n, l.flags.exec))
	return nil
}

// due leaves a report to be sent.
func (l *attachLoop) due(n note) error {
	l.queue = append(l.queue, newTurn(n, l.flags.exec))
	return l.notes.put(n)
}

// adopt takes up a Dispatch of which there is no note: its turn ran elsewhere.
func (l *attachLoop) adopt(d client.OwnDispatch) error {
	if d.Capability != "active" {
		return nil
	}
	n := note{State: started}
	if err := json.Unmarshal(d.Payload, &n.Start); err != nil {
		return fmt.Errorf("reading the session_start of %s: %w", d.DispatchId, err)
	}
	return l.cut(n)
}

// cut goes on with a turn that was cut, or reports that it was.
func (l *attachLoop) cut(n note) error {
	if l.flags.resume == "" {
		return l.due(n.ends("failed", "attach_restarted: the turn was cut when its attach ended, and no --resume-exec goes on with it"))
	}
	l.queue = append(l.queue, newTurn(n, l.flags.resume))
	return nil
}
