package wave

import (
	"context"
	"sync"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// engine knows the loops of the running waves, and takes each signal to the loop
// that it is for.
type engine struct {
	mu     sync.Mutex // guards what follows
	loops  map[hub.WaveID]*loop
	byTask map[hub.TaskID]*loop
	byWork map[hub.DispatchID]place
}

// place is whose Dispatch it is.
type place struct {
	loop *loop
	task hub.TaskID
}

func newEngine() *engine {
	return &engine{loops: map[hub.WaveID]*loop{}, byTask: map[hub.TaskID]*loop{}, byWork: map[hub.DispatchID]place{}}
}

// New makes a Service; it starts nothing.
func New(c Config) *Service {
	if c.Clock == nil {
		c.Clock = processClock()
	}
	return &Service{Config: c, engine: newEngine()}
}

func (s *Service) clock() Instant { return s.Config.Clock() }

// Run reconciles running waves until ctx ends, and then waits for their loops. What
// it is told of is a hint: each loop reads the store, and all of it now and then.
func (s *Service) Run(ctx context.Context) error {
	var loops sync.WaitGroup
	defer loops.Wait()
	topics := []hub.Topic{hub.TopicWave, hub.TopicTask, hub.TopicDispatch, hub.TopicPresence}
	woken, take, cancel := s.gather(ctx, topics)
	defer cancel()
	if err := s.begin(ctx, &loops, true); err != nil {
		return err
	}
	tick := time.NewTicker(rereadEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			if err := s.begin(ctx, &loops, false); err != nil && ctx.Err() == nil {
				s.Log.Error("looking for running waves", "error", err)
			}
		case i := <-woken:
			s.told(ctx, &loops, topics[i], take[i]())
		}
	}
}

// gather merges the hints of some topics into one channel of their indexes.
func (s *Service) gather(ctx context.Context, topics []hub.Topic) (woken chan int, take []func() []string, cancel func()) {
	woken = make(chan int)
	ctx, stop := context.WithCancel(ctx)
	var ends []func()
	var forwards sync.WaitGroup
	for i, t := range topics {
		hint, keys, end := s.Bus.Gather(string(t))
		take, ends = append(take, keys), append(ends, end)
		forwards.Go(func() { forward(ctx, hint, woken, i) })
	}
	return woken, take, func() {
		stop()
		forwards.Wait()
		for _, end := range ends {
			end()
		}
	}
}

func forward(ctx context.Context, from <-chan struct{}, to chan<- int, i int) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-from:
		}
		select {
		case <-ctx.Done():
			return
		case to <- i:
		}
	}
}

// begin gives every running wave its loop.
func (s *Service) begin(ctx context.Context, loops *sync.WaitGroup, recovered bool) error {
	var ids []hub.WaveID
	err := s.Store.View(ctx, func(rx store.Rx) (err error) {
		ids, err = rx.RunningWaves()
		return err
	})
	for _, id := range ids {
		s.follow(ctx, loops, id, recovered)
	}
	return err
}

// follow runs the loop of a wave, if it has none.
func (s *Service) follow(ctx context.Context, loops *sync.WaitGroup, id hub.WaveID, recovered bool) {
	l, fresh := s.engine.loopOf(s, id)
	if !fresh {
		return
	}
	loops.Go(func() {
		l.run(ctx, recovered)
		if s.engine.leave(l); ctx.Err() == nil {
			s.toldOfWave(ctx, loops, id) // it may have been retried since
		}
	})
}

// told takes what was published to the loops that it is for.
func (s *Service) told(ctx context.Context, loops *sync.WaitGroup, topic hub.Topic, keys []string) {
	for _, key := range keys {
		switch topic {
		case hub.TopicWave:
			s.toldOfWave(ctx, loops, hub.WaveID(key))
		case hub.TopicTask:
			s.engine.changed(hub.TaskID(key))
		case hub.TopicDispatch, hub.TopicPresence:
			s.engine.moved(hub.DispatchID(key))
		default:
		}
	}
}

// toldOfWave has a running wave followed, or its loop look at it again.
func (s *Service) toldOfWave(ctx context.Context, loops *sync.WaitGroup, id hub.WaveID) {
	if l := s.engine.loop(id); l != nil {
		l.poke(func() {})
		return
	}
	var w hub.Wave
	err := s.Store.View(ctx, func(rx store.Rx) (err error) {
		w, err = rx.Wave(id)
		return err
	})
	switch {
	case err != nil && ctx.Err() == nil && !hub.IsCode(err, hub.CodeWaveNotFound):
		s.Log.Error("reading a wave", "wave", id, "error", err)
	case err == nil && w.Status == hub.WaveRunning:
		s.follow(ctx, loops, id, false)
	}
}

// LinkUp has what waits for a peer tried at once.
func (s *Service) LinkUp(p hub.PeerID) {
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	for _, l := range s.engine.loops {
		l.poke(func() { l.linkUp[p] = struct{}{} })
	}
}

func (e *engine) loopOf(s *Service, id hub.WaveID) (l *loop, fresh bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l, ok := e.loops[id]; ok {
		return l, false
	}
	l = newLoop(s, id)
	e.loops[id] = l
	return l, true
}

func (e *engine) loop(id hub.WaveID) *loop {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.loops[id]
}

// route notes whose tasks these are.
func (e *engine) route(l *loop, rows []hub.WaveRow) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range rows {
		e.byTask[r.Task] = l
	}
}

// know notes whose Dispatch it is.
func (e *engine) know(l *loop, d hub.DispatchID, t hub.TaskID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.byWork[d] = place{l, t}
}

// leave forgets a loop that has ended.
func (e *engine) leave(l *loop) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.loops, l.id)
	for t, of := range e.byTask {
		if of == l {
			delete(e.byTask, t)
		}
	}
	for d, p := range e.byWork {
		if p.loop == l {
			delete(e.byWork, d)
		}
	}
}

func (e *engine) changed(t hub.TaskID) {
	e.mu.Lock()
	l := e.byTask[t]
	e.mu.Unlock()
	if l != nil {
		l.poke(func() { l.dirty[t] = struct{}{} })
	}
}

func (e *engine) moved(d hub.DispatchID) {
	e.mu.Lock()
	p, ok := e.byWork[d]
	e.mu.Unlock()
	if ok {
		p.loop.poke(func() { p.loop.dirty[p.task] = struct{}{} })
	}
}
