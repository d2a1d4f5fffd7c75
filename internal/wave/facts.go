package wave

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// question is what is asked once for all tasks that it is the same for. fresh and
// current are of the worktree: such ones need what others do not.
type question struct {
	on, agent, repo, worker string
	fresh, current          bool
}

// answer is a question with one spec that stands for its tasks, and what was said.
type answer struct {
	question
	spec  hub.StartSpec
	tasks []string
	err   error
}

// Limits of what peers are asked for one plan.
const (
	factsAtOnce = 4
	factsMost   = 64
	factsTime   = 10 * time.Second
)

var (
	errNotAsked = errors.New("a plan asks no more than 64 questions of peers")
	errTooSlow  = errors.New("it did not answer in time")
)

// facts are what this hub and its peers would refuse of the tasks' placements, and
// warnings of what could not be asked.
func (s *Service) facts(ctx context.Context, entries []hub.WaveEntry) (findings, unchecked []hub.Finding, err error) {
	asked := questions(entries)
	if err := s.askHere(ctx, asked); err != nil {
		return nil, nil, err
	}
	askPeers(ctx, s.Work.Vet, asked, factsTime)
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	for _, a := range asked {
		code := a.code()
		switch {
		case code == "":
		case code != hub.WarnUnchecked:
			findings = append(findings, hub.Finding{Code: code, Tasks: a.tasks, Detail: a.err.Error()})
		case a.on == "":
			return nil, nil, a.err
		default:
			unchecked = append(unchecked, hub.Finding{Code: code, Tasks: a.tasks, Detail: a.on + " was not asked: " + a.err.Error()})
		}
	}
	return findings, unchecked, nil
}

// questions are in the order of the first task of each. What a task says of its
// placement that contradicts itself is not asked about: the planner says so.
func questions(entries []hub.WaveEntry) []*answer {
	var out []*answer
	known := map[question]*answer{}
	for _, e := range entries {
		on, spec, ok := placementOf(e)
		if !ok {
			continue
		}
		q := question{on, spec.Agent, spec.Repo, spec.Worker, spec.New(), spec.Worktree == hub.WorktreeCurrent}
		a := known[q]
		if a == nil {
			a = &answer{question: q, spec: spec}
			known[q] = a
			out = append(out, a)
		}
		a.tasks = append(a.tasks, e.Token)
	}
	return out
}

// placementOf is where a task's worker goes, as a start says it; false if the task
// does not say it in one way.
func placementOf(e hub.WaveEntry) (on string, spec hub.StartSpec, ok bool) {
	if (e.Worker == "") == (e.Start == nil) {
		return "", spec, false
	}
	on, worker := e.Target()
	spec.Worker = worker
	if e.Start != nil {
		spec = specOf(*e.Start)
	}
	return on, spec, spec.Check(on != "") == nil
}

// askHere answers what this hub knows itself.
func (s *Service) askHere(ctx context.Context, asked []*answer) error {
	for _, a := range asked {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if a.on == "" {
			a.err = s.Work.Vet(ctx, "", a.spec)
		}
	}
	return nil
}

// askPeers asks the rest, some at once, as long as limit lasts.
func askPeers(ctx context.Context, vet func(context.Context, string, hub.StartSpec) error, asked []*answer, limit time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var asking sync.WaitGroup
	turns := make(chan struct{}, factsAtOnce)
	n := 0
	for _, a := range asked {
		if a.on == "" {
			continue
		}
		if n++; n > factsMost {
			a.err = errNotAsked
			continue
		}
		asking.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			a.ask(ctx, vet)
		})
	}
	asking.Wait()
}

// ask leaves the error of a question whose time was over as one that says so.
func (a *answer) ask(ctx context.Context, vet func(context.Context, string, hub.StartSpec) error) {
	if a.err = ctx.Err(); a.err == nil {
		a.err = vet(ctx, a.on, a.spec)
	}
	if a.err != nil && ctx.Err() != nil {
		a.err = errTooSlow
	}
}

// code is that of the finding or the warning which the answer makes, "" for none.
func (a *answer) code() string {
	if a.err == nil {
		return ""
	}
	code, ok := factCodes[hub.CodeOf(a.err)]
	if !ok {
		return hub.WarnUnchecked
	}
	return code
}

// factCodes says what a refusal of a start is to a plan. Worktrees, names and
// terminals come and go: they are judged when the task starts.
var factCodes = map[hub.Code]string{
	hub.CodeWorkerNotFound:           hub.FindWorkerNotFound,
	hub.CodeWorkerDraining:           hub.FindWorkerNotFound,
	hub.CodeAgentUnconfigured:        hub.FindAgentUnconfigured,
	hub.CodeAgentNotFound:            hub.FindAgentUnconfigured,
	hub.CodePeerNotFound:             hub.FindPeerNotFound,
	hub.CodePeerRevoked:              hub.FindPeerNotFound,
	hub.CodeServerRequired:           hub.FindPeerNotFound,
	hub.CodeRepoNotFound:             hub.FindRepoNotFound,
	hub.CodeRepoNotGranted:           hub.FindRepoNotFound,
	hub.CodeInvalidArgument:          hub.FindPlacementInvalid,
	hub.CodeOutOfScope:               hub.FindPlacementInvalid,
	hub.CodeCapabilityUnsupported:    hub.FindPlacementInvalid,
	hub.CodeWorktreeNotFoundOnServer: "",
	hub.CodeNameTaken:                "",
	hub.CodeTerminalNotFound:         "",
	hub.CodeTerminalBusy:             "",
	hub.CodeTerminalWorktreeMismatch: "",
}
