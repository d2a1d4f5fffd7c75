package wave

import (
	"encoding/json"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// watch is what a loop remembers of its live Dispatches, whose owners say it again
// after a restart.
type watch struct {
	quiet map[hub.DispatchID]quiet
	usage map[hub.DispatchID]Usage
}

// quiet is since when nothing new was seen of a worker.
type quiet struct {
	output, report hub.Micros
	since          time.Duration // of the engine's clock
}

func newWatch() watch {
	return watch{map[hub.DispatchID]quiet{}, map[hub.DispatchID]Usage{}}
}

func (w watch) forget(d hub.DispatchID) {
	delete(w.quiet, d)
	delete(w.usage, d)
}

// observe asks what is known of the workers: who is lost by the word of an owner
// that is heard, who is idle, and what they have used so far.
func (l *loop) observe() {
	for _, i := range l.running() {
		t := &l.tasks[i]
		d := *t.Dispatch
		t.lost, t.idle = false, false
		o, ok := l.s.Work.Known(d)
		if !ok {
			continue
		}
		t.lost = o.Lost && o.Link != "down" && l.wave.Policy.LivenessSecs > 0 && d.State == hub.Ready
		if o.Usage != nil {
			l.watch.usage[d.ID] = usageOf(o.Usage)
		}
		q, seen := l.watch.quiet[d.ID]
		if !seen || q.output != o.LastOutputAt || q.report != o.LastReportAt || o.Link == "down" || d.State != hub.Ready {
			l.watch.quiet[d.ID] = quiet{o.LastOutputAt, o.LastReportAt, l.clock.now}
			continue
		}
		limit := time.Duration(l.wave.Policy.IdleSecs) * time.Second
		t.idle = limit > 0 && l.clock.now-q.since >= limit
	}
}

// spent is what all attempts used, as far as it is known.
func (l *loop) spent() (sum Usage) {
	for _, u := range l.used {
		sum = sum.plus(u)
	}
	for d, u := range l.watch.usage {
		if _, settled := l.used[d]; !settled {
			sum = sum.plus(u)
		}
	}
	return sum
}

func (u Usage) plus(v Usage) Usage {
	return Usage{CostUSD: u.CostUSD + v.CostUSD, Tokens: u.Tokens + v.Tokens, Unmetered: u.Unmetered + v.Unmetered}
}

// usageOf reads what one Dispatch used; what cannot be read is unmetered.
func usageOf(raw json.RawMessage) Usage {
	u, ok := hub.ParseUsage(raw)
	if !ok {
		return Usage{Unmetered: 1}
	}
	return Usage{CostUSD: u.CostUSD, Tokens: u.Tokens}
}
