package wave

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// view is everything that a decision rests on: one wave as the store has it, and
// what the engine knows of the world at this moment.
type view struct {
	wave    hub.Wave
	shape   *shape
	tasks   []task
	elapsed time.Duration // the wave's time by now
	patient bool          // the hub has just come up: links may still deliver finished work
	atStart time.Duration // the wave's time when it came up
	spent   Usage         // by all attempts
	// written is the last level whose done.json is on the disk; -1 without a folder.
	written int
	gates   map[string]hold // targets to which no start goes now
	now     time.Duration   // of the engine's clock
	flying  int             // start calls on their way
}

// task is a task of the wave as it is now.
type task struct {
	hub.WaveRow
	tries
	lost    bool     // its owner says so over a live link
	idle    bool     // no output and no report for longer than the policy's time
	flying  bool     // a start is on its way
	asking  bool     // a start whose outcome is unknown is being repeated
	pursued bool     // its owner was asked to stop it since the hub came up, and answered
	refused hub.Code // why its start can never be
	told    string   // the words of that refusal
	hold    hold     // its own start is tried again later
}

// hold is a refusal that may pass: for what it waits, and until when.
type hold struct {
	reason string
	until  time.Duration
}

// decision is what should be done, and is not yet.
type decision struct {
	ending  *hub.WaveEnding // to be committed with the changes
	causes  []int           // the tasks whose failure it is for
	changes []change
	final   hub.WaveStatus // the wave has come to its end
	starts  []int
	stops   []int    // fenced, with a worker that is to be ended
	repeats []int    // starts whose outcome is unknown: the request is made again
	waits   []string // by index: what each task waits for
}

// commits reports whether there is something to be written down.
func (d *decision) commits() bool { return d.ending != nil || len(d.changes) > 0 || d.final != "" }

// holding is what of a decision is still to be written down: the changes of tasks
// that are as they were; the ending if one of its causes is; and what follows, from
// that or from the ends of others, only if these hold.
func (d *decision) holding(same func(i int) bool) (ending *hub.WaveEnding, out []change) {
	for _, c := range d.changes {
		if same(c.index) {
			out = append(out, c)
		}
	}
	whole := len(out) == len(d.changes)
	switch {
	case d.ending == nil && whole:
		return nil, out
	case d.ending == nil || d.causes != nil && !slices.ContainsFunc(d.causes, same):
		return nil, slices.DeleteFunc(out, func(c change) bool { return c.follows })
	}
	return d.ending, slices.DeleteFunc(out, func(c change) bool { return !whole && c.progress.EndedReason == hub.EndBlocked })
}

// change is one task's part of a transaction. One that follows is the end of a task
// by the ends of others, or of its wave.
type change struct {
	index    int
	follows  bool
	progress hub.WaveProgress
	events   []event
	set      hub.TaskState // its Task's, "" for none
	fence    bool          // end its latest Dispatch
}

// event is a type and its data.
type event struct {
	kind string
	data any
}

// maxChanges bounds one transaction.
const maxChanges = 200

// decide computes what should be true of a running wave. It is pure: equal views
// have equal decisions. What it says to write down is written, and looked at
// again, before anything is started.
func decide(v *view) decision {
	s := &step{view: v, eff: make([]standing, len(v.tasks)), decision: decision{waits: make([]string, len(v.tasks))}}
	if s.reopen(); s.commits() {
		return s.decision
	}
	s.judge()
	s.end()
	for _, i := range s.causes[:min(len(s.causes), maxChanges)] {
		s.settle(i) // an ending is committed with what it is for
	}
	for _, i := range v.shape.inLine {
		if len(s.changes) >= maxChanges {
			return s.decision
		}
		if _, done := slices.BinarySearch(s.causes, i); !done {
			s.settle(i)
		}
		s.levels.pass(s.tasks[i].Level, s.eff[i].status)
	}
	if s.commits() {
		return s.decision
	}
	s.pursue()
	s.start()
	s.finish()
	return s.decision
}

// step is one decision in the making. eff is where each task will stand.
type step struct {
	*view
	decision
	eff    []standing
	failed []int // tasks
	levels levels
	held   []bool // by ordering edges
}

// levels follows a walk in line: dead says that a level before the present one has
// ended without being completed.
type levels struct {
	at              int
	open, shortfall bool
	dead            bool
}

func (l *levels) enter(level int) {
	if level == l.at {
		return
	}
	l.dead = l.dead || l.shortfall && !l.open
	l.at, l.open, l.shortfall = level, false, false
}

func (l *levels) pass(level int, st hub.WaveStatus) {
	l.enter(level)
	l.open = l.open || !st.Final()
	l.shortfall = l.shortfall || st != hub.WaveCompleted
}

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

// The data of events.
type (
	dispatched struct {
		Worker   string         `json:"worker"`
		Dispatch hub.DispatchID `json:"dispatch_id"`
		Server   string         `json:"server"`
		Attempt  int            `json:"attempt"`
	}
	completed struct {
		Result   string          `json:"result"`
		Data     json.RawMessage `json:"result_data,omitempty"`
		Dispatch hub.DispatchID  `json:"dispatch_id,omitempty"`
	}
	failure struct {
		Error    string         `json:"error"`
		Output   string         `json:"output,omitempty"`
		Dispatch hub.DispatchID `json:"dispatch_id,omitempty"`
	}
	cancellation struct {
		Reason   string         `json:"reason"`
		Dispatch hub.DispatchID `json:"dispatch_id,omitempty"`
	}
	warning struct {
		Code     string         `json:"code"`
		Detail   string         `json:"detail"`
		Dispatch hub.DispatchID `json:"dispatch_id,omitempty"`
	}
	verified struct {
		By       string            `json:"verified_by"`
		Result   string            `json:"verify_result"`
		Dispatch hub.DispatchID    `json:"dispatch_id"`
		Details  *hub.Verification `json:"verify,omitempty"`
	}
)
