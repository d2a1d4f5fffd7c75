package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/testkit"
	"github.com/wavehub/wavehub/relay"
)

const workers = 3

// world is one simulation.
type world struct {
	rng   *rand.Rand
	home  *host
	hosts []*host // the worker hubs
	links []*link
	run   hub.RunID
	by    hub.Principal // the coordinator
	books []*book
	tally totals
	trace []string // what the script did
}

// newWorld boots and pairs the hubs.
func newWorld(dir func() string, seed uint64) (*world, error) {
	w := &world{rng: rand.New(rand.NewPCG(seed, 1)), home: &host{name: "home", dir: dir()}}
	w.tally.seeds = 1
	byPeer := map[hub.PeerID]*link{}
	w.home.dial = func(ctx context.Context, id hub.PeerID) (relay.Conn, error) { return byPeer[id].dial(ctx) }
	for i := range workers {
		h := &host{name: fmt.Sprintf("worker-%d", i), dir: dir()}
		l := &link{
			net: testkit.NewFaultNet(seed*workers+uint64(i), testkit.Faults{}), worker: h,
			atHome: hub.NewPeerID(), atWorker: hub.NewPeerID(),
		}
		byPeer[l.atHome] = l
		w.hosts, w.links = append(w.hosts, h), append(w.links, l)
	}
	for _, h := range w.all() {
		if err := h.boot(); err != nil {
			return w, err
		}
	}
	return w, w.pair()
}

func (w *world) all() []*host { return append([]*host{w.home}, w.hosts...) }

func (w *world) pair() error {
	home := w.home.up()
	for i, l := range w.links {
		h := w.hosts[i]
		err := errors.Join(
			put(home, l.atHome, h, hub.RoleWorker),
			put(h.up(), l.atWorker, w.home, hub.RoleHome))
		if err != nil {
			return err
		}
		home.home.Add(l.atHome)
	}
	return w.begin(home)
}

func put(p *process, id hub.PeerID, other *host, role hub.Role) error {
	return p.store.Update(p.ctx, store.New, func(tx store.Tx) error {
		return tx.PutPeer(hub.Peer{
			ID: id, Name: other.name, Lineage: "hub_" + other.id, Fingerprint: "hub_" + other.id, Role: role,
			State: hub.PeerActive, StoreID: other.id, StoreEpoch: 1,
		})
	})
}

const operatorSum = "operator"

// begin makes the Run and its coordinator.
func (w *world) begin(p *process) error {
	w.by = hub.Principal{Kind: hub.Operator, Credential: operatorSum}
	err := p.store.Update(p.ctx, store.New, func(tx store.Tx) error {
		return tx.PutCredential(store.Credential{Sum: operatorSum, Kind: store.CredOperator})
	})
	if err != nil {
		return err
	}
	r, err := receipt.New(w.by, "", "run.create", nil)
	if err != nil {
		return err
	}
	b, err := p.runs.Create(p.ctx, r, run.CreateInput{Objective: "simulate"})
	w.run = b.Run.ID
	w.by.Consumer = hub.ConsumerProof{Run: b.Run.ID, Generation: b.Run.Generation}
	return err
}

// act is one kind of step; it reports whether there was anything to do.
type act struct {
	name   string
	weight int
	do     func(*world) (string, error)
}

var acts = []act{
	{"start", 10, (*world).start},
	{"say", 60, (*world).say},
	{"ask", 6, (*world).ask},
	{"answer", 8, (*world).answer},
	{"guide", 12, (*world).guide},
	{"report", 8, (*world).report},
	{"exit", 6, (*world).exit},
	{"stop", 2, (*world).stop},
	{"abandon", 1, (*world).abandon},
	{"weather", 12, (*world).weather},
	{"sun", 6, (*world).sun},
	{"cut", 4, (*world).cut},
	{"crash", 5, (*world).crash},
	{"boot", 24, (*world).boot},
	{"crash in a call", 4, (*world).crashInCall},
	{"clock", 3, (*world).clock},
	{"copy", 3, (*world).copyFiles},
	{"put back", 3, (*world).putBack},
	{"adopt", 3, (*world).adoptAny},
	{"pause", 30, (*world).pause},
}

// step draws and does one step.
func (w *world) step() error {
	sum := 0
	for _, a := range acts {
		sum += a.weight
	}
	n := w.rng.IntN(sum)
	for _, a := range acts {
		if n -= a.weight; n >= 0 {
			continue
		}
		what, err := a.do(w)
		w.trace = append(w.trace, a.name+" "+what)
		if err != nil {
			return fmt.Errorf("%s %s: %w", a.name, what, err)
		}
		return nil
	}
	return nil
}

// one draws a Dispatch; nil if there is none.
func (w *world) one() *book {
	if len(w.books) == 0 {
		return nil
	}
	return w.books[w.rng.IntN(len(w.books))]
}

// try does c, and what was pending for the Dispatch before it. A refusal is an
// answer; an error of any other kind leaves c pending.
func (w *world) try(b *book, c call) error {
	if b.pending != nil {
		if left := settle(b); left {
			return nil
		}
	}
	b.pending = &c
	settle(b)
	return nil
}

// settle repeats a pending call; it reports whether it is still pending.
func settle(b *book) bool {
	c := b.pending
	if c == nil {
		return false
	}
	p := c.on.up()
	if p == nil {
		return true
	}
	err := c.do(p)
	var refused *hub.Error
	switch {
	case err == nil:
		c.note()
	case errors.As(err, &refused) && refused.Code != hub.CodeInternal && p.ctx.Err() == nil:
	default:
		return true
	}
	b.pending = nil
	return false
}

func worker(d hub.DispatchID) hub.Principal {
	return hub.Principal{Kind: hub.DispatchCap, ID: string(d), Credential: "cap-" + string(d)}
}

// sending is the call that sends in as by on a hub, always under one request id.
func sending(on *host, by hub.Principal, in dispatch.SendInput, note func(dispatch.Sent)) (call, error) {
	r, err := receipt.New(by, hub.NewRequestID(), "message.send", in)
	var sent dispatch.Sent
	return call{
		on: on,
		do: func(p *process) (err error) {
			sent, err = p.dispatch.Send(p.ctx, r, in)
			return err
		},
		note: func() { note(sent) },
	}, err
}

// start begins a Dispatch whose worker is attached at once; the peer call of a
// start has tests of its own.
func (w *world) start() (string, error) {
	i := w.rng.IntN(workers)
	home, owner := w.home.up(), w.hosts[i].up()
	if home == nil || owner == nil || len(w.books) >= 8 {
		return "nothing", nil
	}
	b := &book{id: hub.NewDispatchID(), at: i, texts: map[hub.MessageID]string{}, loose: map[string]bool{}}
	r, err := receipt.New(w.by, "", "task.create", b.id)
	if err != nil {
		return "", err
	}
	c, err := home.runs.CreateTask(home.ctx, r, w.run, hub.Task{Spec: "simulate"})
	if err != nil {
		return "", err
	}
	b.task = c.Task.ID
	l := w.links[i]
	err = home.store.Update(home.ctx, store.New, func(tx store.Tx) error {
		_, err := dispatch.Begin(tx, dispatch.Attempt{
			ID: b.id, Task: b.task, Server: hub.Server{PeerID: l.atHome, Name: w.hosts[i].name},
			Pin: hub.Pin{Lineage: "hub_" + owner.id, StoreID: owner.id, Epoch: owner.epoch}, PeerRequest: []byte("{}"),
		})
		if err != nil {
			return err
		}
		_, err = dispatch.EndStart(tx, b.id, dispatch.Start{Event: hub.EvStarted})
		return err
	})
	if err != nil {
		return "", err
	}
	err = owner.store.Update(owner.ctx, store.New, func(tx store.Tx) error {
		a := hub.Attachment{Dispatch: b.id, Task: b.task, Run: w.run, Home: l.atWorker, Capability: hub.CapActive, Completion: "report"}
		return dispatch.Attach(tx, a, "cap-"+string(b.id))
	})
	w.books = append(w.books, b)
	w.tally.dispatches++
	return w.hosts[i].name, err
}

func (w *world) say() (string, error) {
	b := w.one()
	if b == nil {
		return "nothing", nil
	}
	text := w.number(b)
	return text, w.sayOf(b, text)
}

func (w *world) sayOf(b *book, text string) error {
	c, err := sending(w.hosts[b.at], worker(b.id), dispatch.SendInput{Type: hub.TypeStatus, Subject: "s", Body: text},
		func(s dispatch.Sent) { b.said, b.texts[s.Message] = append(b.said, s.Message), text })
	return errors.Join(err, w.try(b, c))
}

// number is a text that no other message of the Dispatch has.
func (w *world) number(b *book) string {
	b.n++
	return fmt.Sprintf("%s/%d", b.id, b.n)
}

func (w *world) guide() (string, error) {
	b := w.one()
	if b == nil {
		return "nothing", nil
	}
	text := w.number(b)
	return text, w.guideOf(b, text)
}

func (w *world) guideOf(b *book, text string) error {
	c, err := sending(w.home, w.by, dispatch.SendInput{To: b.id.Box(), Type: hub.TypeGuidance, Subject: "g", Body: text},
		func(dispatch.Sent) { b.guided = append(b.guided, text) })
	return errors.Join(err, w.try(b, c))
}

func (w *world) ask() (string, error) {
	b := w.one()
	if b == nil {
		return "nothing", nil
	}
	text := w.number(b)
	c, err := sending(w.hosts[b.at], worker(b.id), dispatch.SendInput{Type: hub.TypeQuestion, Body: text},
		func(s dispatch.Sent) { b.asked = append(b.asked, s.Message) })
	return text, errors.Join(err, w.try(b, c))
}

// answer replies to the last question that was asked, if it has come home.
func (w *world) answer() (string, error) {
	b := w.one()
	if b == nil || len(b.asked) == 0 {
		return "nothing", nil
	}
	in := dispatch.ReplyInput{Message: b.asked[len(b.asked)-1], Body: w.number(b)}
	r, err := receipt.New(w.by, hub.NewRequestID(), "message.reply", in)
	if err != nil {
		return "", err
	}
	return in.Body, w.try(b, call{on: w.home, note: func() {}, do: func(p *process) error {
		_, err := p.dispatch.Reply(p.ctx, r, in)
		return err
	}})
}

func (w *world) report() (string, error) {
	b := w.one()
	if b == nil || w.rng.IntN(3) > 0 {
		return "nothing", nil
	}
	outcome := []hub.Outcome{hub.OutcomeSucceeded, hub.OutcomeFailed}[w.rng.IntN(2)]
	return string(outcome), w.end(b, outcome)
}

func (w *world) end(b *book, outcome hub.Outcome) error {
	in := dispatch.SendInput{
		Type: hub.TypeWorkerDone, Subject: "s", Body: w.number(b),
		Report: hub.Report{Task: b.task, Dispatch: b.id, Outcome: outcome},
	}
	c, err := sending(w.hosts[b.at], worker(b.id), in, func(s dispatch.Sent) {
		if len(b.reports) == 0 && !b.exited {
			b.first = outcome
		}
		b.reports = append(b.reports, s.Message)
	})
	return errors.Join(err, w.try(b, c))
}

func (w *world) exit() (string, error) {
	b := w.one()
	if b == nil || len(b.reports) == 0 && w.rng.IntN(4) > 0 {
		return "nothing", nil
	}
	return string(b.id), w.leave(b)
}

func (w *world) leave(b *book) error {
	code := 0
	return w.try(b, call{on: w.hosts[b.at], note: func() { b.exited = true }, do: func(p *process) error {
		return p.store.Update(p.ctx, store.Settle, func(tx store.Tx) error {
			return dispatch.Exit(tx, w.links[b.at].atWorker, b.id, hub.ExitItem{ExitCode: &code}, "")
		})
	}})
}

func (w *world) stop() (string, error) {
	return w.giveUp(func(tx store.Tx, b *book) error {
		_, _, err := dispatch.Fence(tx, b.id, hub.FenceItem{Request: hub.NewRequestID()})
		return err
	})
}

func (w *world) abandon() (string, error) {
	return w.giveUp(func(tx store.Tx, b *book) error {
		_, _, err := dispatch.Abandon(tx, b.id)
		return err
	})
}

func (w *world) giveUp(how func(store.Tx, *book) error) (string, error) {
	b := w.one()
	if b == nil {
		return "nothing", nil
	}
	b.given = true
	return string(b.id), w.try(b, call{on: w.home, note: func() {}, do: func(p *process) error {
		return p.store.Update(p.ctx, store.Settle, func(tx store.Tx) error { return how(tx, b) })
	}})
}

func (w *world) anyLink() *link { return w.links[w.rng.IntN(workers)] }

func (w *world) weather() (string, error) {
	l := w.anyLink()
	l.disturb(w.rng)
	w.tally.weathers++
	return l.worker.name, nil
}

func (w *world) sun() (string, error) {
	l := w.anyLink()
	l.heal()
	return l.worker.name, nil
}

func (w *world) cut() (string, error) {
	l := w.anyLink()
	l.net.CutAll()
	return l.worker.name, nil
}

func (w *world) crash() (string, error) {
	h := w.all()[w.rng.IntN(workers+1)]
	w.tally.crashes++
	return h.name, h.crash(func() { w.cutOf(h) })
}

// cutOf ends all connections of a host that goes down: like a process whose
// system ends them, or like a machine that falls silent.
func (w *world) cutOf(h *host) {
	silent := w.rng.IntN(2) == 0
	for _, l := range w.links {
		switch {
		case h != w.home && l.worker != h:
		case silent:
			l.net.HalfOpen(h == w.home)
		default:
			l.net.CutAll()
		}
	}
}

// boot starts one of the hubs that are down.
func (w *world) boot() (string, error) {
	var down []*host
	for _, h := range w.all() {
		if h.up() == nil {
			down = append(down, h)
		}
	}
	if len(down) == 0 {
		return "nothing", nil
	}
	h := down[w.rng.IntN(len(down))]
	return h.name, h.boot()
}

// crashInCall ends a worker hub, or the home, while it takes a message.
func (w *world) crashInCall() (string, error) {
	b := w.one()
	if b == nil {
		return "nothing", nil
	}
	h, do := w.hosts[b.at], (*world).sayOf
	if w.rng.IntN(3) == 0 {
		h, do = w.home, (*world).guideOf
	}
	done := make(chan error, 1)
	go func() { done <- do(w, b, w.number(b)) }()
	w.tally.crashes++
	return h.name, errors.Join(h.crash(func() { w.cutOf(h) }), <-done)
}

// beat is the pace of a script.
const beat = 300 * time.Microsecond

// pause lets the hubs work for a while.
func (w *world) pause() (string, error) {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for range 1 + w.rng.IntN(10) {
		<-tick.C
	}
	return "", nil
}
