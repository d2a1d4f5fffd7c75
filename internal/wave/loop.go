package wave

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
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
