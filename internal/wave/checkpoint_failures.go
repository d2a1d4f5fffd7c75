package wave

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/wavehub/wavehub/internal/hub"
)

// failed reports whether a task failed, or was cancelled for a reason of its own:
// others are cancelled since the wave or what they depend on did not go on.
func (p *projected) failed(i int) bool {
	s := p.standings[i]
	own := s.reason == hub.EndByWorker || s.reason == hub.EndSetByOperator
	return s.status == hub.WaveFailed || s.status == hub.WaveCancelled && own
}

// failures is the failures.json of a level: there from the first failure on.
func (p *projected) failures(level int) folderFile {
	f := folderFile{path: failuresName(level), level: level}
	var failed []int
	for _, i := range p.levels[level-1] {
		if p.failed(i) {
			failed = append(failed, i)
		}
	}
	if len(failed) == 0 {
		return f
	}
	blocked := p.blocked(level, failed)
	f.iteration, f.key = p.wave.Iteration, p.failureKey(failed, blocked)
	f.data = func() []byte {
		return encodeFile(failuresFile{
			fileHead: p.head, Level: level, Iteration: f.iteration, Tasks: p.told(failed), Blocked: p.tokens(blocked),
		}, " ")
	}
	return f
}

// failureKey covers what a failures.json is made of, as evidenceKey does.
func (p *projected) failureKey(failed, blocked []int) (key [sha256.Size]byte) {
	h := sha256.New()
	fmt.Fprintln(h, p.head, p.wave.Iteration, blocked)
	for _, i := range failed {
		fmt.Fprintf(h, "%s %q ", p.standings[i].status, p.standings[i].reason)
		keyRow(h, p.rows[i])
	}
	h.Sum(key[:0])
	return key
}

// told describes failed tasks: the first ones with what they said.
func (p *projected) told(failed []int) []taskFailure {
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
func (p *projected) blocked(level int, failed []int) []int {
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
	var out []int
	for i, is := range behind {
		if is && p.standings[i].status != hub.WaveCompleted {
			out = append(out, i)
		}
	}
	return out
}

// follow marks what depends on the tasks, however far away.
func (p *projected) follow(tasks []int, behind []bool) {
	followers := p.followers()
	for queue := slices.Clone(tasks); len(queue) > 0; queue = queue[1:] {
		for _, i := range followers[queue[0]] {
			if !behind[i] {
				behind[i] = true
				queue = append(queue, i)
			}
		}
	}
}

// followers are the tasks that depend on each.
func (p *projected) followers() [][]int {
	if p.after != nil {
		return p.after
	}
	of := make(map[string]int, len(p.rows))
	for i, r := range p.rows {
		of[r.Entry.Token] = i
	}
	p.after = make([][]int, len(p.rows))
	for i, r := range p.rows {
		for _, d := range r.Entry.Dependencies {
			p.after[of[d]] = append(p.after[of[d]], i)
		}
	}
	return p.after
}

func (p *projected) tokens(tasks []int) []string {
	out := make([]string, len(tasks))
	for n, i := range tasks {
		out[n] = p.rows[i].Entry.Token
	}
	return out
}

// marker is MAX_ITERATIONS_REACHED.
func (p *projected) marker() folderFile {
	f := folderFile{path: markerName}
	if !p.wave.Exhausted {
		return f
	}
	var failed, remaining []int
	for i := range p.rows {
		if p.failed(i) {
			failed = append(failed, i)
		}
		if p.standings[i].status != hub.WaveCompleted {
			remaining = append(remaining, i)
		}
	}
	f.holds(markerFile{
		fileHead: p.head, Status: p.wave.Status, Current: p.current, Total: len(p.levels), Iteration: p.wave.Iteration,
		MaxIterations: p.wave.Policy.MaxIterations, Failed: p.told(failed), Remaining: p.tokens(remaining),
	})
	return f
}
