package wave

import "github.com/wavehub/wavehub/internal/hub"

// What a task waits for, beside what an agent waits for (hub.Waits…).
const (
	waitDependency  = "dependency"
	waitOrdering    = "ordering"
	waitConcurrency = "concurrency"
	waitLimit       = "limit"
	waitPeer        = "peer"
	waitAgent       = "agent"
	waitOperator    = "operator"
	waitAnswer      = "answer"
	waitCheckpoint  = "checkpoint"
	waitUnknown     = "unknown"
)

// Bounds of the start calls that are on their way at once: of a wave, and to one
// target, so that a refusal of one holds back the others.
const (
	maxFlying       = 16
	maxFlyingTarget = 6
)

// start chooses what is started, in line, and says of everything else what it
// waits for.
func (s *step) start() {
	if s.wave.Ending != nil {
		return
	}
	room := s.slots()
	flying := s.flyingTo()
	barrier := s.barrier()
	s.held = s.ordered()
	for _, i := range s.shape.inLine {
		st := s.eff[i]
		if !st.toStart() {
			if st.held {
				s.waits[i] = waitOperator
			}
			continue
		}
		if s.tasks[i].flying {
			continue
		}
		s.waits[i] = s.holds(i, barrier)
		if s.waits[i] != "" {
			continue
		}
		to := target(s.tasks[i].Entry)
		switch {
		case room <= 0:
			s.waits[i] = waitConcurrency
		case s.flying+len(s.starts) >= maxFlying || flying[to] >= maxFlyingTarget:
			// a call of another one comes back first
		default:
			s.starts = append(s.starts, i)
			flying[to]++
			room--
		}
	}
}

// slots is how many more Dispatches the policy allows. An unproven stop holds its
// slot.
func (s *step) slots() int {
	limit := s.wave.Policy.Concurrency
	if limit == 0 {
		return len(s.tasks)
	}
	for i := range s.tasks {
		t := &s.tasks[i]
		if t.flying || begun(t.WaveRow) && !t.Dispatch.State.Final() {
			limit--
		}
	}
	return limit
}

func (s *step) flyingTo() map[string]int {
	n := map[string]int{}
	for i := range s.tasks {
		if s.tasks[i].flying {
			n[target(s.tasks[i].Entry)]++
		}
	}
	return n
}

// target is where a start goes: what is refused there for one may be for all.
func target(e hub.WaveEntry) string {
	on, worker := e.Target()
	if e.Start == nil {
		return on + "/worker:" + worker
	}
	return on + "/" + e.Start.Agent
}

// holds is what keeps a task from being started, "" for nothing.
func (s *step) holds(i int, barrier []string) string {
	t := &s.tasks[i]
	if why := s.before(i); why != "" {
		return why
	}
	if barrier != nil && barrier[i] != "" {
		return barrier[i]
	}
	if t.State != hub.TaskReady && t.State != hub.TaskFailed {
		return waitDependency
	}
	if h := s.gates[target(t.Entry)]; h.until > s.now {
		return h.reason
	}
	if t.hold.until > s.now {
		return t.hold.reason
	}
	return ""
}

// before is whether a task waits for a dependency, or for one that writes the same
// and whose worker is not proven gone.
func (s *step) before(i int) string {
	for _, j := range s.shape.deps[i] {
		if s.eff[j].status != hub.WaveCompleted {
			return waitDependency
		}
	}
	if s.held[i] {
		return waitOrdering
	}
	return ""
}

// ordered says which tasks wait by ordering edges. What comes before has to have
// ended, and its worker to be proven gone.
func (s *step) ordered() []bool {
	return held(len(s.tasks), s.shape.orders, func(j int) bool {
		t := &s.tasks[j]
		return t.EndedAs != "" && s.eff[j].status.Final() && (!begun(t.WaveRow) || t.Dispatch.State.Final())
	})
}

// barrier is, under that order, what holds each task back that is not of the first
// sub-wave that has not ended; nil under the other.
func (s *step) barrier() []string {
	if s.wave.Policy.Order != hub.OrderBarrier {
		return nil
	}
	type place struct{ level, sub int }
	waits, open := make([]string, len(s.tasks)), place{}
	for _, i := range s.shape.inLine {
		t := &s.tasks[i]
		at := place{t.Level, t.Sub}
		switch {
		case open != (place{}) && open != at && t.Level == open.level:
			waits[i] = waitOrdering
		case open != (place{}) && open != at:
			waits[i] = waitDependency
		case s.written >= 0 && t.Level > s.written+1:
			waits[i] = waitCheckpoint
		}
		if open == (place{}) && !s.eff[i].status.Final() {
			open = at
		}
	}
	return waits
}
