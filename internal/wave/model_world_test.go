package wave

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/work"
)

// play is one wave without a hub: what a store would have of it, the workers, and
// the calls that are on their way. What is decided is the real engine's.
type play struct {
	t      *rapid.T
	wave   hub.Wave
	tasks  []*wtask
	orders []hub.WaveOrder
	log    []logged
	sets   map[string]bool // moves of Tasks that are on record
	ids    int
	now    Instant
	spent  int64

	loop    *loop
	view    *view // what the decision rests on, nil before it
	plan    decision
	flights []*flight
	lost    map[hub.DispatchID]bool
	calm    bool         // nothing goes wrong any more
	touched map[int]bool // by a person
	cut     bool         // the wave was ended, and did not come to its end by itself
}

// wtask is a task of it with its Task.
type wtask struct {
	hub.WaveTask
	state  hub.TaskState
	deps   []int
	opened []hub.DispatchID // behind which somebody set it ready
	tries  []*try
}

// try is a Dispatch.
type try struct {
	hub.Dispatch
	iteration int
	byPerson  bool
	asked     bool // its owner knows that it is to be stopped
}

// logged is an entry of the log of events.
type logged struct {
	iteration, index int // -1: of the wave itself
	kind             string
	dispatch         hub.DispatchID
}

// flight is a start call.
type flight struct {
	index   int
	decided hub.Wave
	behind  hub.DispatchID
	landed  bool
	err     error
}

func (w *play) latest(i int) *try {
	if n := len(w.tasks[i].tries); n > 0 {
		return w.tasks[i].tries[n-1]
	}
	return nil
}

func (w *play) row(i int) hub.WaveRow {
	x := w.tasks[i]
	r := hub.WaveRow{WaveTask: x.WaveTask, State: x.state, Attempts: len(x.tries)}
	if y := w.latest(i); y != nil {
		d := y.Dispatch
		r.Dispatch = &d
	}
	return r
}

func (w *play) standing(i int) standing {
	r := w.row(i)
	tried, err := triesOf(rx{w: w}, r)
	if err != nil {
		w.t.Fatal(err)
	}
	return standingOf(w.wave, r, tried.failures)
}

// rx is what the engine reads of the play.
type rx struct {
	store.Rx
	w *play
}

func (r rx) Wave(hub.WaveID) (hub.Wave, error)                  { return r.w.wave, nil }
func (r rx) WaveOrders(hub.WaveID) ([]hub.WaveOrder, error)     { return r.w.orders, nil }
func (r rx) WaveUsages(hub.WaveID) ([]hub.DispatchUsage, error) { return nil, nil }
func (r rx) WaveRow(id hub.TaskID) (hub.WaveRow, bool, error) {
	return r.w.row(r.w.indexOf(id)), true, nil
}
func (r rx) WaveRows(hub.WaveID) (rows []hub.WaveRow, err error) {
	for i := range r.w.tasks {
		rows = append(rows, r.w.row(i))
	}
	return rows, nil
}

// DispatchList gives pages of two, so that there are several.
func (r rx) DispatchList(f store.DispatchFilter, p store.Page) (ds []hub.Dispatch, next int64, err error) {
	tries := r.w.tasks[r.w.indexOf(f.Task)].tries
	n := len(tries)
	if p.Before > 0 {
		n = int(p.Before)
	}
	for n > 0 && len(ds) < 2 {
		n--
		ds = append(ds, tries[n].Dispatch)
	}
	return ds, int64(n), nil
}

func (w *play) indexOf(id hub.TaskID) int {
	return slices.IndexFunc(w.tasks, func(x *wtask) bool { return x.Task == id })
}

// View implements store.Reader.
func (w *play) View(_ context.Context, fn func(store.Rx) error) error { return fn(rx{w: w}) }

// Update implements store.Writer: the engine's decisions are carried out apart.
func (w *play) Update(context.Context, store.Class, func(store.Tx) error) error {
	w.t.Fatal("the engine wrote on its own")
	return nil
}

// engine is a hub that comes up: it remembers nothing, and its calls are gone.
func (w *play) engine(recovered bool) {
	s := New(Config{Store: w, Work: work.New(work.Config{}), Log: slog.New(slog.DiscardHandler), Clock: func() Instant { return w.now }})
	w.loop, w.view, w.flights = newLoop(s, w.wave.ID), nil, nil
	w.loop.clock.recovered = recovered
}

func (w *play) passes(d time.Duration) {
	w.now.Mono += d
	w.now.SinceBoot += d
	w.now.Wall = w.now.Wall.Add(d)
}

// stale has the engine read these tasks again at its next look.
func (w *play) dirty(is ...int) {
	w.loop.poke(func() {
		for _, i := range is {
			w.loop.dirty[w.tasks[i].Task] = struct{}{}
		}
	})
}

func (w *play) all() []int {
	is := make([]int, len(w.tasks))
	for i := range is {
		is[i] = i
	}
	return is
}

// happens is the one way in which a Dispatch changes, as in package dispatch.
func (w *play) happens(i int, y *try, e hub.Event) bool {
	d, changed, _ := hub.Apply(y.Dispatch, e)
	if !changed {
		return false
	}
	d.Version++
	y.Dispatch = d
	if x := w.tasks[i]; w.latest(i) == y && x.state != hub.TaskCompleted {
		x.state = hub.TaskStateFor(d.State)
		w.unlock()
	}
	return true
}

func (w *play) unlock() {
	for i, x := range w.tasks {
		if x.state == hub.TaskPending {
			x.state = hub.Readiness(w.depStates(i))
		}
	}
}

func (w *play) depStates(i int) (out []hub.TaskState) {
	for _, j := range w.tasks[i].deps {
		out = append(out, w.tasks[j].state)
	}
	return out
}

// set is task update.
func (w *play) set(i int, to hub.TaskState) error {
	x := w.tasks[i]
	t, refused := hub.Change(hub.Task{ID: x.Task, State: x.state}, w.row(i).Dispatch, w.depStates(i), hub.TaskChange{State: to})
	if refused != nil {
		return refused
	}
	x.state = t.State
	w.unlock()
	return nil
}

// begin is the transaction that begins a start.
func (w *play) begin(i int, behind hub.DispatchID, byPerson bool) error {
	x := w.tasks[i]
	if e := hub.Startable(hub.Task{ID: x.Task, State: x.state}, w.row(i).Dispatch, behind); e != nil {
		return e
	}
	w.ids++
	x.tries = append(x.tries, &try{
		Dispatch: hub.Dispatch{
			ID: hub.DispatchID(fmt.Sprintf("disp_%d", w.ids)), Task: x.Task, State: hub.Starting, RetryOf: behind, Version: 1, CreatedAt: w.now.Wall,
		},
		iteration: w.wave.Iteration, byPerson: byPerson,
	})
	x.state = hub.TaskDispatched
	return nil
}

// look is the first half of the engine's turn: it reads and decides. Of tasks that
// nothing told it of it may have an older state.
func (w *play) look() {
	if err := w.loop.refresh(context.Background()); err != nil {
		w.t.Fatal(err)
	}
	for i := range w.loop.tasks {
		y := &w.loop.tasks[i]
		y.lost = y.Dispatch != nil && y.Dispatch.State == hub.Ready && w.lost[y.Dispatch.ID]
		y.idle = y.lost
	}
	w.view, w.plan = nil, decision{}
	if w.wave.Status != hub.WaveRunning {
		return
	}
	w.loop.files.through = -1
	w.view = w.loop.view()
	w.view.tasks = slices.Clone(w.loop.tasks)
	w.view.spent = Usage{Tokens: w.spent}
	w.plan = decide(w.view)
	if again := decide(w.view); !reflect.DeepEqual(again, w.plan) {
		w.t.Fatalf("one view, two decisions:\n%+v\n%+v", w.plan, again)
	}
}

// act is the second half: it writes down what was decided, or makes the calls.
func (w *play) act() {
	if w.view == nil {
		return
	}
	d := w.plan
	if d.commits() {
		w.commit(d)
	} else {
		w.call(d)
	}
	w.view = nil
}

func (w *play) call(d decision) {
	for _, i := range d.stops {
		w.latest(i).asked = true
		if w.calm || rapid.Bool().Draw(w.t, "answered") {
			w.loop.poke(func() { w.loop.sought = append(w.loop.sought, i) })
		}
	}
	for _, i := range d.starts {
		w.loop.tasks[i].flying = true
		w.flights = append(w.flights, &flight{index: i, decided: w.loop.wave, behind: latestID(w.loop.tasks[i].WaveRow)})
	}
	if w.loop.clock.due() {
		w.save(w.loop.clock.stamp(w.wave))
		w.loop.clock.saved()
	}
}

func (w *play) save(v hub.Wave) {
	v.Version = w.wave.Version + 1
	w.wave = v
}

// commit is loop.commit.
func (w *play) commit(d decision) {
	for _, c := range d.changes {
		w.dirty(c.index)
	}
	v := w.wave
	if v.Version != w.loop.wave.Version {
		return
	}
	stamped := w.loop.clock.stamp(v)
	v.ElapsedMS, v.DowntimeMS, v.Clock = stamped.ElapsedMS, stamped.DowntimeMS, stamped.Clock
	ending, changes := d.holding(func(i int) bool { return same(w.row(i), w.view.tasks[i].WaveRow) })
	for _, c := range changes {
		w.apply(c)
	}
	if ending != nil {
		e := *ending
		v.Ending = &e
		w.save(v)
	}
	if d.final != "" {
		w.finalize(v, d.final)
	}
	if ending == nil && d.final == "" && w.loop.clock.due() {
		w.save(v)
	}
	if d.ending != nil || d.final != "" || w.loop.clock.due() {
		w.loop.clock.saved()
	}
}

// apply is Service.apply.
func (w *play) apply(c change) {
	i := c.index
	was := w.tasks[i].WaveProgress
	if c.fence {
		w.happens(i, w.latest(i), hub.Event{Kind: hub.EvStop})
	}
	if key := fmt.Sprint(pass(w.wave), i, c.set, latestID(w.row(i))); c.set != "" && !w.sets[key] {
		if err := w.set(i, c.set); err != nil {
			w.t.Fatalf("task %d cannot be set: %v", i, err)
		}
		w.sets[key] = true
	}
	w.tasks[i].WaveProgress = c.progress
	for _, e := range c.events {
		w.note(i, e)
	}
	w.checkEnd(i, was)
}

func (w *play) note(i int, e event) {
	x := logged{iteration: pass(w.wave), index: i, kind: e.kind}
	switch d := e.data.(type) {
	case dispatched:
		x.dispatch = d.Dispatch
	case completed:
		x.dispatch = d.Dispatch
	case failure:
		x.dispatch = d.Dispatch
	case cancellation:
		x.dispatch = d.Dispatch
	}
	w.log = append(w.log, x)
}

func (w *play) finalize(v hub.Wave, as hub.WaveStatus) {
	w.checkFinal(as)
	v.Status, w.cut = as, v.Ending != nil
	if v.Ending == nil && as != hub.WaveCompleted {
		v.Ending = &hub.WaveEnding{As: as, Reason: endOf(as)}
	}
	w.save(v)
	w.log = append(w.log, logged{iteration: pass(v), index: -1, kind: string(as)})
}
