package wave_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/group"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/mail"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/signal"
	"github.com/wavehub/wavehub/internal/sqlite"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/wave"
	"github.com/wavehub/wavehub/internal/work"
)

// host is what survives a hub: its disk, its clock, and the world outside.
type host struct {
	t       *testing.T
	path    string // of the store
	witness *witness
	script  script
	hook    func(point string)
	clock   func() wave.Instant // nil: that of the process
	absent  map[string]bool     // workers that do not listen
	muted   sync.Map            // names of workers that have fallen silent
}

// passes lets time pass: that of the test's bubble, in which nobody waits for it.
func passes(d time.Duration) { <-time.NewTimer(d).C }

// script is what the worker of a task does with an attempt.
type script func(token string, attempt int) deed

// deed is one attempt at a task. An outcome of "" is an agent that works on until
// it is told to stop; after names a task whose effect it waits for.
type deed struct {
	outcome hub.Outcome
	claim   string // its own verify_result
	after   string
}

func (d deed) report(s hub.SessionStart) dispatch.SendInput {
	return dispatch.SendInput{
		Type: hub.TypeWorkerDone, Subject: "done", Body: s.WaveRef.Token + " " + string(d.outcome),
		Report: hub.Report{Task: s.Task, Dispatch: s.Dispatch, Outcome: d.outcome, Claim: d.claim},
	}
}

// witness counts what was done outside of any store.
type witness struct {
	mu      sync.Mutex
	effects map[hub.DispatchID]effect
	changed chan struct{} // closed with each effect, and made anew
}

type effect struct {
	token   string
	attempt int
}

func newWitness() *witness {
	return &witness{effects: map[hub.DispatchID]effect{}, changed: make(chan struct{})}
}

// saw notes an effect. A worker knows by the Dispatch what it has done.
func (w *witness) saw(id hub.DispatchID, e effect) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.effects[id] = e
	close(w.changed)
	w.changed = make(chan struct{})
}

// until waits for an effect of a task.
func (w *witness) until(ctx context.Context, token string) {
	for {
		w.mu.Lock()
		changed, there := w.changed, false
		for _, e := range w.effects {
			there = there || e.token == token
		}
		w.mu.Unlock()
		if there {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// process is one life of the hub, with the workers that talk to it.
type process struct {
	*host
	store *sqlite.Store
	bus   *signal.Bus
	jobs  *group.Group
	work  *work.Service
	mail  *mail.Service
	disp  *dispatch.Service
	waves *wave.Service
}

func newHost(t *testing.T, s script) *host {
	t.Helper()
	return &host{t: t, path: filepath.Join(t.TempDir(), "hub.db"), witness: newWitness(), script: s, absent: map[string]bool{}}
}

// open opens the store of the host; nothing of the hub runs.
func (h *host) open() *process {
	h.t.Helper()
	p := &process{host: h, bus: &signal.Bus{}, jobs: group.New(context.Background())}
	st, err := sqlite.Open(context.Background(), sqlite.Config{
		Path: h.path, Hook: h.hook, OnFatal: func(err error) { h.t.Error(err) },
		Publish: func(ss []hub.Signal) {
			for _, s := range ss {
				p.bus.Publish(string(s.Topic), s.Key)
			}
		},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	p.store = st
	one := alone{st, make(chan struct{}, 1)}
	log := slog.New(slog.DiscardHandler)
	p.mail = &mail.Service{Store: one, Access: dispatch.Access{}, Bus: p.bus, Draining: make(chan struct{})}
	p.disp = &dispatch.Service{Store: one}
	p.work = work.New(work.Config{
		Store: one, Gate: receipt.NewGate(one, p.jobs.Go), Agents: agents{}, Bus: p.bus, Spawn: p.jobs.Go, Name: "mac", Bin: "/bin/wavehub",
		StoreID: "store_1", Epoch: 1, Log: log, AnswerLost: func(error) bool { return false }, LinkUp: func(hub.PeerID) bool { return false },
		Listening: p.mail.Listening, Unspool: func(context.Context, hub.DispatchID) error { return nil },
	})
	p.waves = wave.New(wave.Config{Store: one, Work: p.work, Bus: p.bus, Spawn: p.jobs.Go, LivenessSecs: 90, Clock: h.clock, Log: log})
	return p
}

// alone gives each transaction a commit of its own.
type alone struct {
	*sqlite.Store
	turn chan struct{}
}

func (a alone) Update(ctx context.Context, c store.Class, fn func(store.Tx) error) error {
	a.turn <- struct{}{}
	defer func() { <-a.turn }()
	return a.Store.Update(ctx, c, fn)
}

// agents tell attached workers how to report; nothing else is asked of them.
type agents struct{ work.Agents }

func (agents) AttachedPreamble(hub.TaskID, hub.DispatchID, hub.Checks, *hub.WaveRef) string {
	return "report"
}

// up starts a hub on the host, and the workers that listen.
func (h *host) up() *process {
	h.t.Helper()
	p := h.open()
	if err := p.work.Recover(context.Background()); err != nil {
		h.t.Fatal(err)
	}
	p.run(p.waves.Run)
	p.run(p.work.Presences)
	for _, w := range p.identities() {
		if !h.absent[w.Name] {
			p.listen(w)
		}
	}
	return p
}

func (p *process) run(fn func(context.Context) error) {
	p.jobs.Go(func(ctx context.Context) {
		if err := fn(ctx); err != nil && ctx.Err() == nil {
			p.t.Error(err)
		}
	})
}

// down ends the hub and its workers' talk with it.
func (p *process) down() {
	p.t.Helper()
	if !p.jobs.Stop(time.Minute) {
		p.t.Error("the hub does not stop")
	}
	if err := p.store.Close(); err != nil {
		p.t.Error(err)
	}
}

func (p *process) update(fn func(store.Tx) error) {
	p.t.Helper()
	if err := p.store.Update(context.Background(), store.New, fn); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) view(fn func(store.Rx) error) {
	p.t.Helper()
	if err := p.store.View(context.Background(), fn); err != nil {
		p.t.Fatal(err)
	}
}

var operator = hub.Principal{Kind: hub.Operator, Credential: "op"}

const (
	theRun  = hub.RunID("run_01h455vb4pex5vsknk084sn02q")
	theWave = hub.WaveID("w1")
)

// install makes a Run and an identity of each name.
func (p *process) install(workers ...string) {
	p.t.Helper()
	p.update(func(tx store.Tx) error {
		err := errors.Join(tx.PutCredential(store.Credential{Sum: "op", Kind: store.CredOperator}),
			tx.PutRun(hub.Run{ID: theRun, Objective: "o"}), tx.PutMailbox(store.Mailbox{Box: theRun.Box()}))
		for _, name := range workers {
			w := hub.Worker{ID: hub.NewWorkerID(), Name: name, State: hub.WorkerActive, Generation: 1}
			err = errors.Join(err, tx.PutWorker(w), tx.PutMailbox(store.Mailbox{Box: w.ID.Box()}),
				tx.PutCredential(store.Credential{Sum: "cred-" + string(w.ID), Kind: store.CredWorker, Subject: string(w.ID)}))
		}
		return err
	})
}

func (p *process) identities() (ws []hub.Worker) {
	p.t.Helper()
	p.view(func(rx store.Rx) (err error) {
		ws, _, err = rx.WorkerList(store.Page{Limit: 1000})
		return err
	})
	return ws
}

func (p *process) worker(name string) (w hub.Worker) {
	p.t.Helper()
	p.view(func(rx store.Rx) (err error) {
		w, err = rx.WorkerByName(name)
		return err
	})
	return w
}

func principalOf(w hub.Worker) hub.Principal {
	return hub.Principal{Kind: hub.AttachedWorker, ID: string(w.ID), Credential: "cred-" + string(w.ID)}
}

func (p *process) request(by hub.Principal, key hub.RequestID, op string, args any) receipt.Request {
	r, err := receipt.New(by, key, op, args)
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

// listen runs the loop of a worker: it does what it is handed, and then says that
// it has it. What was not acknowledged comes again, and is not done again.
func (p *process) listen(w hub.Worker) {
	by := principalOf(w)
	p.jobs.Go(func(ctx context.Context) {
		in := mail.CheckInput{Box: w.ID.Box(), WaitMS: mail.MaxWaitMS}
		for p.speaks(ctx, w) {
			b, err := p.mail.Check(ctx, p.request(by, "", "check", in), in)
			if err != nil {
				if ctx.Err() == nil {
					p.t.Errorf("%s: %v", w.Name, err)
				}
				return
			}
			for _, m := range b.Messages {
				if err := p.handle(ctx, by, m); err != nil && ctx.Err() == nil {
					p.t.Errorf("%s on a %s: %v", w.Name, m.Type, err)
				}
			}
			if !p.speaks(ctx, w) {
				return // cut off before it could acknowledge
			}
			in.Ack = b.Delivery
		}
	})
}

func (p *process) speaks(ctx context.Context, w hub.Worker) bool {
	_, silent := p.muted.Load(w.Name)
	return !silent && ctx.Err() == nil
}

func (p *process) handle(ctx context.Context, by hub.Principal, m hub.Message) error {
	switch m.Type {
	case hub.TypeSessionStart:
		var s hub.SessionStart
		if err := json.Unmarshal(m.Payload, &s); err != nil {
			return err
		}
		return p.do(ctx, by, s)
	case hub.TypeControl:
		var c hub.SessionControl
		if err := json.Unmarshal(m.Payload, &c); err != nil {
			return err
		}
		return p.send(ctx, by, dispatch.SendInput{
			Type: hub.TypeWorkerDone, Subject: "stopped", Body: "stopped", Report: hub.Report{Task: c.Task, Dispatch: c.Dispatch, Outcome: hub.OutcomeCancelled},
		})
	}
	return nil
}

// do is an attempt of a worker.
func (p *process) do(ctx context.Context, by hub.Principal, s hub.SessionStart) error {
	d := p.script(s.WaveRef.Token, s.Attempt)
	if _, _, err := p.work.Present(ctx, by, work.WorkerPresence{Dispatches: []hub.DispatchID{s.Dispatch}}); err != nil {
		return err
	}
	p.witness.saw(s.Dispatch, effect{s.WaveRef.Token, s.Attempt})
	if d.after != "" {
		p.witness.until(ctx, d.after)
	}
	if d.outcome == "" || ctx.Err() != nil {
		return ctx.Err()
	}
	return p.send(ctx, by, d.report(s))
}

func (p *process) send(ctx context.Context, by hub.Principal, in dispatch.SendInput) error {
	_, err := p.disp.Send(ctx, p.request(by, "", "send", in), in)
	return err
}

// planned is a task as the planner would have placed it.
type planned struct {
	token      string
	deps       []string
	level, sub int
	verify     bool
	timeout    int64
}

// store makes the pending wave, of one worker per task, unless it is there.
func (p *process) create(policy hub.WavePolicy, tasks []planned, orders ...hub.WaveOrder) {
	p.t.Helper()
	p.update(func(tx store.Tx) error {
		if _, err := tx.Wave(theWave); !hub.IsCode(err, hub.CodeWaveNotFound) {
			return err
		}
		uid, xs, ts := hub.WaveUID("wave_u1"), []hub.WaveTask{}, []hub.Task{}
		ids := map[string]hub.TaskID{}
		for i, x := range tasks {
			ids[x.token] = hub.NewTaskID()
			t := hub.Task{ID: ids[x.token], Run: theRun, Title: x.token, Spec: "do " + x.token, State: hub.TaskReady, Verify: hub.VerifyRecord, Scope: hub.ScopeAdvisory, Origin: hub.WaveOrigin(theWave), Version: 1}
			if x.verify {
				t.Verify, t.VerifyCmd = hub.VerifyRequired, "make check"
			}
			for _, d := range x.deps {
				t.Dependencies, t.State = append(t.Dependencies, ids[d]), hub.TaskPending
			}
			ts = append(ts, t)
			xs = append(xs, hub.WaveTask{Wave: theWave, Index: i, Level: x.level, Sub: x.sub, Task: t.ID, Entry: hub.WaveEntry{
				Token: x.token, Goal: t.Spec, Worker: "w-" + x.token, Dependencies: x.deps, TimeoutSecs: x.timeout,
			}})
		}
		w := hub.Wave{ID: theWave, UID: uid, Run: theRun, Goal: "g", Status: hub.WavePending, Policy: policy, Total: len(tasks), CreatedAt: tx.Now()}
		return errors.Join(tx.StageWaveTasks(uid, xs, ts), tx.StageWaveOrders(uid, orders), tx.PutWave(w))
	})
}

// workersOf are the names of the workers of the tasks.
func workersOf(tasks []planned) (names []string) {
	for _, x := range tasks {
		names = append(names, "w-"+x.token)
	}
	return names
}

// started is a hub with a spawned wave of the tasks.
func started(t *testing.T, h *host, policy hub.WavePolicy, tasks []planned, orders ...hub.WaveOrder) *process {
	t.Helper()
	p := h.open()
	p.install(workersOf(tasks)...)
	p.create(policy, tasks, orders...)
	p.down()
	p = h.up()
	if _, err := p.spawn(""); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *process) spawn(key hub.RequestID) (wave.Created, error) {
	return p.waves.Spawn(context.Background(), p.request(operator, key, "spawnWave", theWave), theWave, nil)
}

func (p *process) cancel(key hub.RequestID) error {
	_, err := p.waves.Cancel(context.Background(), p.request(operator, key, "cancelWave", theWave), theWave, wave.CancelInput{})
	return err
}

func (p *process) retry(in wave.RetryInput) error {
	_, err := p.waves.Retry(context.Background(), p.request(operator, "", "retryWave", in), theWave, in)
	return err
}

// now is the wave as it is.
func (p *process) now() (w hub.Wave, rows map[string]hub.WaveRow) {
	p.t.Helper()
	rows = map[string]hub.WaveRow{}
	p.view(func(rx store.Rx) error {
		rs, err := rx.WaveRows(theWave)
		for _, r := range rs {
			rows[r.Entry.Token] = r
		}
		if err == nil {
			w, err = rx.Wave(theWave)
		}
		return err
	})
	return w, rows
}

// until waits for the wave to come to where it is to be.
func (p *process) until(what string, ok func(hub.Wave, map[string]hub.WaveRow) bool) {
	p.t.Helper()
	limit := time.NewTimer(2 * time.Hour) // of the test's time
	defer limit.Stop()
	var woken [3]<-chan struct{}
	for i, topic := range []hub.Topic{hub.TopicWave, hub.TopicTask, hub.TopicDispatch} {
		ch, cancel := p.bus.Subscribe(string(topic), "")
		defer cancel()
		woken[i] = ch
	}
	for {
		w, rows := p.now()
		if ok(w, rows) {
			return
		}
		select {
		case <-woken[0]:
		case <-woken[1]:
		case <-woken[2]:
		case <-limit.C:
			p.t.Fatalf("never: %s; %+v\n%s", what, w, told(rows))
		}
	}
}

func told(rows map[string]hub.WaveRow) (s string) {
	for token, r := range rows {
		s += fmt.Sprintf("%s: %s %q %q %+v\n", token, r.State, r.EndedAs, r.EndedReason, r.Dispatch)
	}
	return s
}

func (p *process) final() (hub.Wave, map[string]hub.WaveRow) {
	p.t.Helper()
	p.until("the wave is final", func(w hub.Wave, _ map[string]hub.WaveRow) bool { return w.Status.Final() })
	return p.now()
}

// events are what the log has of the wave.
func (p *process) events() (es []hub.WaveEvent) {
	p.t.Helper()
	p.view(func(rx store.Rx) (err error) {
		es, err = rx.Events(store.EventFilter{Wave: theWave}, 0, 100_000)
		return err
	})
	return es
}

func reasonOf(w hub.Wave) string {
	if w.Ending == nil {
		return ""
	}
	return w.Ending.Reason
}

// kindOf is the kind that the payload of a notice names.
func kindOf(t *testing.T, m hub.Message) string {
	t.Helper()
	var p struct{ Kind string }
	if err := json.Unmarshal(m.Payload, &p); err != nil {
		t.Error(err)
	}
	return p.Kind
}

// inbox is the coordinator's mail that wakes it.
func (p *process) inbox() (ms []hub.Message) {
	p.t.Helper()
	p.view(func(rx store.Rx) (err error) {
		ms, _, err = rx.History(theRun.Box(), store.HistoryFilter{Limit: 1000})
		return err
	})
	var out []hub.Message
	for _, m := range ms {
		if !m.History {
			out = append(out, m)
		}
	}
	return out
}
