package wave

import (
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// reopen opens, in a later iteration, what did not complete in those before.
func (s *step) reopen() {
	now := pass(s.wave)
	for i := range s.tasks {
		t := &s.tasks[i]
		if t.Iteration == now {
			continue
		}
		if len(s.changes) >= maxChanges {
			return
		}
		s.changes = append(s.changes, opened(s.wave, i, t.WaveRow))
	}
}

// opened is a task at the beginning of an iteration. A live Dispatch that somebody
// started meanwhile is adopted.
func opened(w hub.Wave, i int, r hub.WaveRow) change {
	p := hub.WaveProgress{Iteration: pass(w)}
	c := change{index: i}
	switch {
	case r.State == hub.TaskCompleted:
		p = kept(w, r)
	case r.Dispatch != nil && !r.Dispatch.State.Final():
		p.Base = r.Dispatch.RetryOf
	case r.Dispatch != nil:
		p.Base = r.Dispatch.ID
		fallthrough
	default:
		if r.State != hub.TaskReady && r.State != hub.TaskPending {
			c.set = hub.TaskReady
		}
	}
	c.progress = p
	return c
}

// kept is a completed task in a later iteration. One that came to another end in
// its own, and was completed by somebody since, comes to this one now.
func kept(w hub.Wave, r hub.WaveRow) hub.WaveProgress {
	p := r.WaveProgress
	if p.EndedAs != hub.WaveCompleted {
		p.EndedAs, p.EndedReason, p.CompletedAt = "", "", 0
	}
	p.Iteration = pass(w)
	return p
}

// judge computes where the tasks stand by what is committed.
func (s *step) judge() {
	now := pass(s.wave)
	for i := range s.tasks {
		t := &s.tasks[i]
		var plain bool
		if s.eff[i], plain = t.plainly(now); !plain {
			s.eff[i] = standingOf(s.wave, t.WaveRow, t.failures)
		}
		if t.refused != "" && s.wave.Ending == nil && s.eff[i].toStart() {
			s.eff[i] = standing{status: hub.WaveFailed, reason: string(t.refused)}
		}
		s.overdue(i)
		if s.eff[i].status == hub.WaveFailed {
			s.failed = append(s.failed, i)
		}
	}
}

// overdue fails a running task whose worker is lost or whose time is over.
func (s *step) overdue(i int) {
	t := &s.tasks[i]
	if s.eff[i].status != hub.WaveRunning || t.Dispatch == nil || t.Dispatch.State != hub.Ready && t.Dispatch.State != hub.StartUnknown && t.Dispatch.State != hub.Starting {
		return
	}
	ready := time.Duration(t.ReadyMS) * time.Millisecond
	limit := time.Duration(t.Entry.TimeoutSecs) * time.Second
	switch {
	case t.lost:
		s.eff[i] = standing{status: hub.WaveFailed, reason: hub.EndLiveness}
	case limit > 0 && t.ReadyMS > 0 && t.Noted == t.Dispatch.ID && s.expired(ready+limit):
		s.eff[i] = standing{status: hub.WaveFailed, reason: hub.EndTimeout}
	}
}

// expired reports whether the wave's time has come to a point. What had expired
// when the hub came up is given a minute.
func (s *step) expired(at time.Duration) bool {
	return s.elapsed >= at && !(s.patient && s.atStart >= at)
}

// settle decides what is to be written down of one task: what has happened, and its
// end if it has come to one, or can never begin. Those that it depends on have been
// looked at before.
func (s *step) settle(i int) {
	t := &s.tasks[i]
	c := change{index: i, progress: t.WaveProgress}
	if t.EndedAs != "" {
		if s.correct(&c, t) {
			s.changes = append(s.changes, c)
		}
		return
	}
	s.note(&c, t)
	before := s.eff[i]
	s.doom(i)
	c.follows = s.eff[i] != before
	if st := s.eff[i]; st.status.Final() {
		s.conclude(&c, t, st)
	}
	if c.progress != t.WaveProgress || c.set != "" || c.fence {
		s.changes = append(s.changes, c)
	}
}

// correct mends the record of a task that has ended: its worker is proven gone, so
// that its Task can have its end.
func (s *step) correct(c *change, t *task) bool {
	if t.State != hub.TaskBlocked || t.Dispatch == nil || !t.Dispatch.State.Final() {
		return false
	}
	c.set = taskState(t.EndedAs)
	return true
}

// note writes down that a Dispatch has begun, and when it was seen ready.
func (s *step) note(c *change, t *task) {
	if !begun(t.WaveRow) {
		return
	}
	for k, d := range t.missed {
		c.events = append(c.events, event{hub.EventTaskDispatched, dispatched{worker(t.Entry), d.ID, d.Server.Name, t.Attempts - len(t.missed) + k}})
	}
	if d := t.Dispatch; t.Noted != d.ID {
		c.progress.Noted, c.progress.ReadyMS = d.ID, 0
		if c.progress.StartedAt == 0 {
			c.progress.StartedAt = d.CreatedAt
		}
		c.events = append(c.events, event{hub.EventTaskDispatched, dispatched{worker(t.Entry), d.ID, d.Server.Name, t.Attempts}})
	}
	if t.Dispatch.State == hub.Ready && c.progress.ReadyMS == 0 && t.Entry.TimeoutSecs > 0 {
		c.progress.ReadyMS = max(s.elapsed.Milliseconds(), 1)
	}
	if t.idle && t.Idle != t.Dispatch.ID {
		c.progress.Idle = t.Dispatch.ID
		c.events = append(c.events, event{hub.EventWarning, warning{Code: "idle", Detail: "no output and no report for " + seconds(s.wave.Policy.IdleSecs), Dispatch: t.Dispatch.ID}})
	}
}

// doom ends what the wave's ending, or an end before it, leaves no way to go on.
func (s *step) doom(i int) {
	st := s.eff[i]
	if st.status.Final() {
		return
	}
	e := s.ends()
	switch {
	case st.toStart() && s.behindFailure(i), e == nil && st.toStart() && s.blocked(i):
		s.eff[i] = standing{status: hub.WaveCancelled, reason: hub.EndBlocked}
	case e != nil:
		s.eff[i] = s.cut(i, e.Reason)
	}
}

// cut is the end of a task in a wave that is ended: it has failed if its last attempt
// did, for which no retry comes any more.
func (s *step) cut(i int, reason string) standing {
	t := &s.tasks[i]
	if begun(t.WaveRow) && t.State == hub.TaskFailed && !uncounted(*t.Dispatch) {
		return standing{status: hub.WaveFailed, reason: t.Dispatch.Reason}
	}
	return standing{status: hub.WaveCancelled, reason: reason}
}

// behindFailure reports whether a task has not been started since one that it
// depends on, in any number of steps, has failed.
func (s *step) behindFailure(i int) bool {
	if begun(s.tasks[i].WaveRow) {
		return false
	}
	for _, j := range s.shape.deps[i] {
		if st := s.eff[j]; st.status == hub.WaveFailed || st.status == hub.WaveCancelled && st.reason == hub.EndBlocked {
			return true
		}
	}
	return false
}

// blocked reports whether a task waits for what will not complete.
func (s *step) blocked(i int) bool {
	for _, j := range s.shape.deps[i] {
		if st := s.eff[j].status; st.Final() && st != hub.WaveCompleted {
			return true
		}
	}
	s.levels.enter(s.tasks[i].Level)
	return s.levels.dead && s.wave.Policy.Order == hub.OrderBarrier
}

// conclude ends a task: with its event, the end of its worker if it has one, else
// of its Task.
func (s *step) conclude(c *change, t *task, st standing) {
	c.progress.EndedAs, c.progress.EndedReason = st.status, st.reason
	c.events = append(c.events, s.outcome(t, st)...)
	if t.Dispatch != nil && !t.Dispatch.State.Final() {
		c.fence = begun(t.WaveRow)
		return
	}
	if want := taskState(st.status); t.State != want {
		c.set = want
	}
}

// taskState is the state of the Task of a task that has ended.
func taskState(s hub.WaveStatus) hub.TaskState {
	switch s {
	case hub.WaveCompleted:
		return hub.TaskCompleted
	case hub.WaveFailed:
		return hub.TaskFailed
	case hub.WaveCancelled, hub.WavePending, hub.WaveRunning:
	}
	return hub.TaskCancelled
}
