package wave

import (
	"slices"

	"github.com/wavehub/wavehub/internal/hub"
)

// failed reports whether a task failed, or was cancelled for a reason of its own:
// others are cancelled since the wave or what they depend on did not go on.
func (p *view) failed(i int) bool {
	s := p.standings[i]
	own := s.reason == hub.EndByWorker || s.reason == hub.EndSetByOperator
	return s.status == hub.WaveFailed || s.status == hub.WaveCancelled && own
}

// failures is the failures.json of a level: there from the first failure on.
func (p *view) failures(level int) file {
	f := file{path: failuresName(level), level: level}
	var failed []int
	for _, i := range p.levels[level-1] {
		if p.failed(i) {
			failed = append(failed, i)
		}
	}
	if len(failed) == 0 {
		return f
	}
	f.iteration = p.wave.Iteration
	f.holds(failuresFile{
		fileHead: p.head, Level: level, Iteration: f.iteration, Tasks: p.told(failed), Blocked: p.blocked(level, failed),
	})
	return f
}

// told describes failed tasks: the first ones with what they said.
func (p *view) told(failed []int) []taskFailure {
	out := []taskFailure{}
	for n, i := range failed {
		out = append(out, failureOf(p.rows[i], p.standings[i], n < maxFailureTexts))
	}
	return out
}

func failureOf(r hub.WaveRow, s standing, texts bool) taskFailure {
	f := taskFailure{Token: r.Entry.Token, Task: r.Task, Status: s.status, Reason: s.reason, EndedAt: r.CompletedAt, Attempts: r.Attempts}
	if texts {
		f.Error = hub.Cut(r.Result, maxFailureText)
	}
	d := r.Dispatch
	if d == nil {
		return f
	}
	f.Dispatch, f.ExitCode = d.ID, d.ExitCode
	if f.EndedAt == 0 {
		f.EndedAt = d.SettledAt
	}
	if d.Findings == nil {
		return f
	}
	f.VerifyResult = d.Findings.VerifyResult
	if texts {
		f.Verification, f.Violations = clippedVerification(d.Findings.Verification, maxFailureText), d.Findings.Violations
	}
	return f
}

// blocked are the tasks behind the failed ones of a level, as declared: those that
// depend on one, and under barrier all of later levels.
func (p *view) blocked(level int, failed []int) []string {
	behind := make([]bool, len(p.rows))
	if p.wave.Policy.Order == hub.OrderBarrier {
		for _, later := range p.levels[level:] {
			for _, i := range later {
				behind[i] = true
			}
		}
	} else {
		p.follow(failed, behind)
	}
	return p.tokens(func(i int) bool { return behind[i] && p.standings[i].status != hub.WaveCompleted })
}

// follow marks what depends on the tasks, however far away.
func (p *view) follow(tasks []int, behind []bool) {
	followers := p.followers()
	for queue := slices.Clone(tasks); len(queue) > 0; queue = queue[1:] {
		for _, i := range followers[p.rows[queue[0]].Entry.Token] {
			if !behind[i] {
				behind[i] = true
				queue = append(queue, i)
			}
		}
	}
}

// followers are the tasks by the token of each dependency.
func (p *view) followers() map[string][]int {
	if p.after == nil {
		p.after = map[string][]int{}
		for i, r := range p.rows {
			for _, d := range r.Entry.Dependencies {
				p.after[d] = append(p.after[d], i)
			}
		}
	}
	return p.after
}

func (p *view) tokens(of func(int) bool) []string {
	out := []string{}
	for i, r := range p.rows {
		if of(i) {
			out = append(out, r.Entry.Token)
		}
	}
	return out
}

// marker is MAX_ITERATIONS_REACHED.
func (p *view) marker() file {
	f := file{path: markerName}
	if !p.wave.Exhausted {
		return f
	}
	var failed []int
	for i := range p.rows {
		if p.failed(i) {
			failed = append(failed, i)
		}
	}
	f.holds(markerFile{
		fileHead: p.head, Status: p.wave.Status, Current: p.current, Total: len(p.levels), Iteration: p.wave.Iteration,
		MaxIterations: p.wave.Policy.MaxIterations, Failed: p.told(failed),
		Remaining: p.tokens(func(i int) bool { return p.standings[i].status != hub.WaveCompleted }),
	})
	return f
}
