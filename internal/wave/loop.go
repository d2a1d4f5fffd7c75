package wave

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// loop reconciles one running wave, in one goroutine. What it remembers is what it
// last read of the store, and what came of its own calls; a new loop of the same
// wave goes on alike.
type loop struct {
	s  *Service
	id hub.WaveID

	wave  hub.Wave
	shape *shape
	tasks []task
	used  map[hub.DispatchID]Usage // by settled Dispatches
	watch watch
	clock elapsed
	gates map[string]hold
	pause map[string]time.Duration // how long each target or task was held last
	ended map[int]struct{}         // whose stop has been asked for
	files filing
	again []paused // stops to be asked for again

	mu     sync.Mutex // guards what follows
	dirty  map[hub.TaskID]struct{}
	stale  bool // everything is to be read anew
	linkUp map[hub.PeerID]struct{}
	came   []landed       // what start calls came to
	asked  []int          // whose start was repeated
	sought []int          // whose stop was asked for and answered
	waits  map[int]string // what each task waits for
	woken  chan struct{}
	uncut  []int // whose stop came to nothing
}

func newLoop(s *Service, id hub.WaveID) *loop {
	return &loop{
		s: s, id: id, used: map[hub.DispatchID]Usage{}, watch: newWatch(), gates: map[string]hold{}, pause: map[string]time.Duration{}, ended: map[int]struct{}{},
		dirty: map[hub.TaskID]struct{}{}, linkUp: map[hub.PeerID]struct{}{}, waits: map[int]string{}, woken: make(chan struct{}, 1), stale: true,
	}
}

// poke has the loop look at what change left to be looked at.
func (l *loop) poke(change func()) {
	l.mu.Lock()
	change()
	l.mu.Unlock()
	select {
	case l.woken <- struct{}{}:
	default:
	}
}

// rereadEvery is how often a loop reads all of its wave although nothing told it
// to; tickEvery how often it looks at what no signal tells.
const (
	rereadEvery = time.Minute
	tickEvery   = 5 * time.Second
)

// run reconciles until the wave is final or ctx ends. recovered says that the hub
// has just come up. A failure is logged and tried again.
func (l *loop) run(ctx context.Context, recovered bool) {
	l.clock.recovered = recovered
	timer := time.NewTimer(0)
	defer timer.Stop()
	for pause := minPause; ; {
		next, done, err := l.reconcile(ctx)
		switch {
		case ctx.Err() != nil || done && err == nil:
			return
		case err != nil:
			l.s.Log.Error("reconciling a wave", "wave", l.id, "error", err)
			l.poke(func() { l.stale = true })
			next, pause = pause, min(2*pause, maxPause)
		default:
			pause = minPause
		}
		timer.Reset(min(next, tickEvery))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-l.woken:
			if err != nil { // not at once again
				select {
				case <-ctx.Done():
					return
				case <-timer.C:
				}
			}
		}
	}
}

// reconcile brings the wave to where nothing is to be decided: it reads what has
// changed, decides, writes down, and makes the calls that follow. next is when
// time alone may change something.
func (l *loop) reconcile(ctx context.Context) (next time.Duration, done bool, err error) {
	for {
		if err := l.refresh(ctx); err != nil {
			return 0, false, err
		}
		if l.wave.Status != hub.WaveRunning {
			return 0, true, l.fileAll(ctx)
		}
		d := decide(l.view())
		l.say(d.waits)
		if !d.commits() && d.final == "" {
			if err := l.file(ctx); err != nil {
				return 0, false, err
			}
			l.act(d)
			return l.next(), false, l.keepTime(ctx)
		}
		if err := l.commitFitting(ctx, d); err != nil {
			return 0, false, err
		}
	}
}

// view is what is decided on.
func (l *loop) view() *view {
	v := &view{
		wave: l.wave, shape: l.shape, tasks: l.tasks, elapsed: l.clock.elapsed(), patient: l.clock.patient(), atStart: l.clock.atStart,
		spent: l.spent(), written: l.files.through, gates: l.gates, now: l.clock.now,
	}
	if l.wave.CheckpointDir == "" {
		v.written = -1
	}
	for i := range l.tasks {
		if l.tasks[i].flying {
			v.flying++
		}
	}
	return v
}

// refresh reads what has changed since it was read last, and what the owners say.
func (l *loop) refresh(ctx context.Context) error {
	l.mu.Lock()
	all, dirty, came, asked, sought, up := l.stale, l.dirty, l.came, l.asked, l.sought, l.linkUp
	l.stale, l.dirty, l.came, l.asked, l.sought, l.linkUp = false, map[hub.TaskID]struct{}{}, nil, nil, nil, map[hub.PeerID]struct{}{}
	l.mu.Unlock()
	l.clock.look(l.s.clock())
	err := l.read(ctx, all || l.shape == nil || l.clock.now-l.clock.read > rereadEvery, dirty)
	if err != nil {
		l.poke(func() {
			l.stale, l.came, l.asked = true, append(came, l.came...), append(asked, l.asked...)
			l.sought = append(sought, l.sought...)
			maps.Copy(l.linkUp, up)
		})
		return err
	}
	for _, c := range came {
		l.land(c)
	}
	for _, i := range asked {
		t := &l.tasks[i]
		t.asking, t.hold = false, hold{waitUnknown, l.later("start of "+t.Entry.Token, 0)}
	}
	for _, i := range sought {
		l.tasks[i].pursued = true
	}
	if len(up) > 0 {
		l.release(up)
	}
	l.observe()
	return nil
}

// read reads the wave, and all of its tasks or some.
func (l *loop) read(ctx context.Context, all bool, dirty map[hub.TaskID]struct{}) error {
	return l.s.Store.View(ctx, func(rx store.Rx) error {
		w, err := rx.Wave(l.id)
		if err != nil {
			return err
		}
		if all || w.Iteration != l.wave.Iteration || w.UID != l.wave.UID {
			return l.readAll(rx, w)
		}
		l.wave = w
		for id := range dirty {
			i, ok := l.shape.byTask[id]
			if !ok {
				continue
			}
			r, ok, err := rx.WaveRow(id)
			if err != nil || !ok {
				return err
			}
			if err := l.take(rx, i, r); err != nil {
				return err
			}
		}
		return nil
	})
}

func (l *loop) readAll(rx store.Rx, w hub.Wave) error {
	rows, err := rx.WaveRows(w.ID)
	if err != nil {
		return err
	}
	if l.shape == nil || len(rows) != len(l.tasks) {
		orders, err := rx.WaveOrders(w.ID)
		if err != nil {
			return err
		}
		l.shape, l.tasks = shapeOf(rows, orders), make([]task, len(rows))
	}
	usages, err := rx.WaveUsages(w.ID)
	if err != nil {
		return err
	}
	for _, u := range usages {
		l.used[u.Dispatch] = usageOf(u.Usage)
	}
	if w.Iteration != l.wave.Iteration {
		clear(l.ended)
		clear(l.pause)
		for i := range l.tasks {
			t := &l.tasks[i]
			t.refused, t.hold, t.pursued = "", hold{}, false // of an iteration that has ended
		}
	}
	l.clock.begin(w)
	l.wave, l.clock.read = w, l.clock.now
	for i, r := range rows {
		if err := l.take(rx, i, r); err != nil {
			return err
		}
	}
	return nil
}

// take takes what the store says of one task.
func (l *loop) take(rx store.Rx, i int, r hub.WaveRow) (err error) {
	t := &l.tasks[i]
	if d := r.Dispatch; d != nil {
		if t.Dispatch == nil || t.Dispatch.ID != d.ID || t.Dispatch.State != d.State {
			l.moved(t, r)
		}
		if d.Usage != nil {
			l.used[d.ID] = usageOf(d.Usage)
		}
	}
	t.WaveRow = r
	l.files.due = true
	t.tries, err = triesOf(rx, r)
	return err
}

// moved takes note that a Dispatch has changed: what was refused may pass now.
func (l *loop) moved(t *task, r hub.WaveRow) {
	t.refused, t.hold = "", hold{}
	l.s.engine.know(l, r.Dispatch.ID, r.Task)
	d, to := *r.Dispatch, target(r.Entry)
	if d.State == hub.Ready || d.State == hub.Succeeded {
		delete(l.pause, to) // it takes work
	}
	if !d.State.Final() {
		return
	}
	if l.watch.forget(d.ID); uncounted(d) {
		l.shut(to, d)
	} else {
		l.open(to)
	}
}

// tries is what the latest Dispatch alone does not tell of the attempts of this
// iteration: how many failed and count as such, and those that were replaced before
// the log had them, the oldest first.
type tries struct {
	failures int
	missed   []hub.Dispatch
}

// triesOf looks at the attempts if there is something to be told.
func triesOf(rx store.DispatchReader, r hub.WaveRow) (x tries, err error) {
	if r.EndedAs != "" || !begun(r) || r.Dispatch.State != hub.Failed && !replaced(r) {
		return x, nil
	}
	p, logged := store.Page{Limit: 50}, false
	for {
		ds, next, err := rx.DispatchList(store.DispatchFilter{Task: r.Task}, p)
		if err != nil {
			return x, err
		}
		for _, d := range ds {
			if d.ID == r.Base {
				return x, nil
			}
			if d.State == hub.Failed && !uncounted(d) {
				x.failures++
			}
			if logged = logged || d.ID == r.Noted; !logged && d.ID != r.Dispatch.ID {
				x.missed = slices.Insert(x.missed, 0, d)
			}
		}
		if p.Before = next; next == 0 {
			return x, nil
		}
	}
}

// replaced reports whether the latest Dispatch came in the place of one that the log
// does not have.
func replaced(r hub.WaveRow) bool {
	d := r.Dispatch
	return d.ID != r.Noted && d.RetryOf != r.Noted && d.RetryOf != r.Base
}

// say lets Show know what the tasks wait for.
func (l *loop) say(waits []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.waits)
	for i, why := range waits {
		if why != "" {
			l.waits[i] = why
		}
	}
}

func (l *loop) waitsFor(i int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waits[i]
}

// next is how long nothing but a signal changes anything.
func (l *loop) next() time.Duration {
	next := tickEvery
	consider := func(at time.Duration) {
		if at > l.clock.now {
			next = min(next, at-l.clock.now)
		}
	}
	for _, h := range l.gates {
		consider(h.until)
	}
	for i := range l.tasks {
		consider(l.tasks[i].hold.until)
	}
	consider(l.clock.now + time.Duration(l.wave.Policy.TimeoutSecs)*time.Second - l.clock.elapsed())
	for i := range l.tasks {
		if t := &l.tasks[i]; t.ReadyMS > 0 && t.EndedAs == "" && t.Entry.TimeoutSecs > 0 {
			consider(l.clock.now + time.Duration(t.ReadyMS)*time.Millisecond + time.Duration(t.Entry.TimeoutSecs)*time.Second - l.clock.elapsed())
		}
	}
	consider(l.files.retryAt)
	return max(next, time.Millisecond)
}

// running are the tasks with a worker that is to be watched.
func (l *loop) running() []int {
	var out []int
	for i := range l.tasks {
		if t := &l.tasks[i]; t.Dispatch != nil && !t.Dispatch.State.Final() {
			out = append(out, i)
		}
	}
	return slices.Clip(out)
}
