package wave

import (
	"context"
	"slices"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/work"
)

// Pauses between tries of what was refused but may pass.
const (
	minPause = 500 * time.Millisecond
	maxPause = 30 * time.Second
)

// act makes the calls that a decision asks for. Each runs on its own and ends with
// the hub: the state that asks for it is committed.
func (l *loop) act(d decision) {
	l.stopAgain()
	for _, i := range d.stops {
		l.stop(i)
	}
	for _, i := range d.repeats {
		l.repeat(i)
	}
	for _, i := range d.starts {
		t := &l.tasks[i]
		task := t.Task
		call, err := l.starting(t.WaveRow)
		if err != nil {
			l.s.Log.Error("preparing a start", "wave", l.id, "task", t.Entry.Token, "error", err)
			continue
		}
		t.flying = l.s.Config.Spawn(func(ctx context.Context) {
			err := call(ctx)
			l.poke(func() { l.came = append(l.came, landed{i, err}); l.dirty[task] = struct{}{} })
		})
	}
}

// repeat makes the request of a start again whose outcome is unknown: a peer that
// never got it gets the same bytes, anybody else is only asked.
func (l *loop) repeat(i int) {
	t := &l.tasks[i]
	id, task := t.Dispatch.ID, t.Task
	t.asking = l.s.Config.Spawn(func(ctx context.Context) {
		err := l.s.Work.RepeatStart(ctx, id)
		if err != nil && ctx.Err() == nil {
			l.s.Log.Warn("asking what became of a start", "wave", l.id, "dispatch_id", id, "error", err)
		}
		l.poke(func() { l.asked = append(l.asked, i); l.dirty[task] = struct{}{} })
	})
}

// stop asks the owner of a fenced Dispatch, once in the life of this loop: after
// that its order and its proof go over the relay.
func (l *loop) stop(i int) {
	if _, ok := l.ended[i]; ok {
		return
	}
	l.ended[i] = struct{}{}
	task := l.tasks[i].Task
	q, in, err := stopRequest(l.wave, l.tasks[i].WaveRow)
	if err != nil {
		l.s.Log.Error("preparing a stop", "wave", l.id, "error", err)
		return
	}
	l.s.Config.Spawn(func(ctx context.Context) {
		if err := l.askToStop(ctx, i, q, in); err != nil && ctx.Err() == nil {
			l.s.Log.Warn("stopping a wave's worker", "wave", l.id, "dispatch_id", in.Dispatch, "error", err)
		}
		l.poke(func() { l.sought = append(l.sought, i); l.dirty[task] = struct{}{} })
	})
}

// askToStop makes the call of a stop. One of which it is not even on record that its
// outcome is unknown came to nothing: it is to be made again.
func (l *loop) askToStop(ctx context.Context, i int, q receipt.Request, in work.StopInput) error {
	out, err := l.s.Work.Stop(ctx, q, in)
	if err != nil || out.State == hub.Stopping {
		l.poke(func() { l.uncut = append(l.uncut, i) })
	}
	return err
}

// stopAgain has stops asked for again that came to nothing, each after a pause.
func (l *loop) stopAgain() {
	l.mu.Lock()
	uncut := l.uncut
	l.uncut = nil
	l.mu.Unlock()
	for _, i := range uncut {
		l.again = append(l.again, paused{i, l.later("stop of "+l.tasks[i].Entry.Token, 0)})
	}
	l.again = slices.DeleteFunc(l.again, func(p paused) bool {
		if p.until > l.clock.now {
			return false
		}
		delete(l.ended, p.index)
		return true
	})
}
