package wave

import (
	"context"
	"slices"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

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
