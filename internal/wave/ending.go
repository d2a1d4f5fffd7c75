package wave

import (
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// end decides whether the wave is to be ended, and why; the first reason counts.
func (s *step) end() {
	if s.wave.Ending != nil {
		return
	}
	p := s.wave.Policy
	switch {
	case len(s.failed) > 0 && p.OnFailure == hub.FailFast:
		s.ending, s.causes = &hub.WaveEnding{As: hub.WaveFailed, Reason: hub.EndTaskFailed}, s.failed
	case s.expired(time.Duration(p.TimeoutSecs) * time.Second):
		s.ending = &hub.WaveEnding{As: hub.WaveFailed, Reason: hub.EndTimeout}
	case s.spent.over(p.Budget):
		s.ending = &hub.WaveEnding{As: hub.WaveFailed, Reason: hub.EndBudget}
	}
}

func (u Usage) over(b hub.Budget) bool {
	return b.CostUSD > 0 && u.CostUSD > b.CostUSD || b.Tokens > 0 && u.Tokens > b.Tokens
}

// ends is why the wave ends, nil if it does not.
func (s *step) ends() *hub.WaveEnding {
	if s.wave.Ending != nil {
		return s.wave.Ending
	}
	return s.ending
}

// pursue finds the workers that were fenced and have not come to an end, and the
// starts of which nobody knows what became.
func (s *step) pursue() {
	for i := range s.tasks {
		t := &s.tasks[i]
		if begun(t.WaveRow) && t.Dispatch.State == hub.StartUnknown && !t.asking && t.hold.until <= s.now {
			s.repeats = append(s.repeats, i)
		}
		if t.EndedAs != "" && t.Dispatch != nil && t.Noted == t.Dispatch.ID && (t.Dispatch.State == hub.Stopping || t.Dispatch.State == hub.StopUnknown) {
			s.stops = append(s.stops, i)
		}
	}
}

// finish ends the wave when all tasks have ended and no worker of it may do
// anything any more. A hub that has come up asks once more for what it did not know.
func (s *step) finish() {
	if s.flying > 0 {
		return
	}
	counts := map[hub.WaveStatus]int{}
	for i := range s.tasks {
		t := &s.tasks[i]
		if !s.eff[i].status.Final() || t.EndedAs == "" || t.flying || t.busy() {
			return
		}
		counts[s.eff[i].status]++
	}
	if s.final = gate(len(s.tasks), counts); s.wave.Ending != nil {
		s.final = s.wave.Ending.As
	}
}

// busy reports whether the worker of a task that has ended may still do something,
// as far as its owner was asked.
func (t *task) busy() bool {
	d := t.Dispatch
	return d != nil && t.Noted == d.ID && (alive(d.State) || d.State == hub.StopUnknown && !t.pursued)
}

// gate is what the tasks of a wave come to.
func gate(total int, counts map[hub.WaveStatus]int) hub.WaveStatus {
	switch {
	case counts[hub.WavePending]+counts[hub.WaveRunning] > 0:
		return hub.WaveRunning
	case counts[hub.WaveFailed] > 0:
		return hub.WaveFailed
	case counts[hub.WaveCompleted] == total:
		return hub.WaveCompleted
	}
	return hub.WaveCancelled
}
