package wave

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// maxWorkspace bounds the label of a workspace.
const maxWorkspace = 128

func overBy(limit, room int) string {
	return fmt.Sprintf("%d; at most %d are taken", limit-room, limit)
}

// judge finds what is wrong with the words of each task, and what is odd.
func (p *planner) judge() {
	var undeclared, unheld, graded []int32
	for i, e := range p.entries {
		p.judgePlacement(i, e)
		p.judgeChecks(i, e)
		p.judgeWords(i, e)
		switch {
		case e.WriteScope == nil && !p.serializes():
			undeclared = append(undeclared, int32(i))
		case len(e.WriteScope) == 0 && p.options.Scope == hub.ScopeEnforce:
			unheld = append(unheld, int32(i))
		}
		if e.Start == nil && e.VerifyCmd != "" {
			graded = append(graded, int32(i))
		}
	}
	p.warnAll(undeclared, hub.WarnScopeUndeclared, "no write_scope is declared, so that conflicts with other tasks are not seen")
	p.warnAll(unheld, hub.WarnScopeUndeclared, "scope: enforce has no write_scope to hold these to")
	p.warnAll(graded, hub.WarnSelfGraded, "an attached worker runs its verify_cmd itself; its own word counts")
}

func (p *planner) judgeChecks(i int, e hub.WaveEntry) {
	if p.options.Verify == hub.VerifyRequired && blank(e.VerifyCmd) {
		p.find(i, hub.FindVerifyMissing, "verify: required needs a verify_cmd")
	}
	if e.TimeoutSecs < 0 {
		p.find(i, hub.FindTimeoutInvalid, "timeout_secs: %d is negative; leave it out for none", e.TimeoutSecs)
	}
	if _, err := (hub.Checks{VerifyCmd: e.VerifyCmd, HandoffPath: e.HandoffPath}).Clean(); err != nil {
		p.find(i, hub.FindValueInvalid, "%s", err.Error())
	}
}

func (p *planner) judgeWords(i int, e hub.WaveEntry) {
	if blank(e.Goal) {
		p.find(i, hub.FindValueInvalid, "goal: say what is to be done")
	} else if err := hub.CheckText("goal", e.Goal, hub.MaxSpecBytes); err != nil {
		p.find(i, hub.FindValueInvalid, "%s", err.Error())
	}
	if err := hub.CheckText("workspace", e.Workspace, maxWorkspace); err != nil {
		p.find(i, hub.FindValueInvalid, "%s", err.Error())
	}
	if n := len(e.Dependencies); n > hub.MaxDependencies {
		p.find(i, hub.FindValueInvalid, "dependencies: %d are named; at most %d are taken", n, hub.MaxDependencies)
	}
}

func (p *planner) judgePlacement(i int, e hub.WaveEntry) {
	var err error
	switch {
	case e.Worker == "" && e.Start == nil:
		p.find(i, hub.FindPlacementInvalid, "neither worker nor start says who does it; --agent or --worker say it for all tasks that do not")
	case e.Worker != "" && e.Start != nil:
		p.find(i, hub.FindPlacementInvalid, "worker and start cannot be combined")
	case e.Start != nil:
		err = checkStart(*e.Start)
	default:
		err = checkWorker(e.Worker)
	}
	if err != nil {
		p.find(i, hub.FindPlacementInvalid, "%s", err.Error())
	}
}

// checkWorker refuses what is neither name nor name@peer.
func checkWorker(worker string) error {
	name, peer, remote := strings.Cut(worker, "@")
	if remote && blank(peer) {
		return hub.Invalid("worker", "%.64q names no peer behind the @", worker)
	}
	return hub.CheckWorkerName(name)
}

// specOf is a placement as it is judged. A new worktree needs no name: it gets one
// of the wave and the task, for which another one stands here.
func specOf(s hub.WaveStart) hub.StartSpec {
	spec := hub.StartSpec{
		Worktree: s.Worktree, Repo: s.Repo, Name: s.Name, Base: s.Base, Parent: s.Parent, Agent: s.Agent, Setup: s.Setup, Terminal: hub.TerminalID(s.Terminal),
	}
	if spec.New() && spec.Name == "" {
		spec.Name = "task"
	}
	return spec
}

// checkStart refuses a placement that contradicts itself. A wave is in no directory.
func checkStart(s hub.WaveStart) error {
	spec := specOf(s)
	path, named := strings.CutPrefix(spec.Worktree, "path:")
	if err := spec.Check(s.On != ""); err != nil {
		return err
	}
	switch {
	case spec.Worktree == hub.WorktreeCurrent:
		return hub.Invalid("worktree", "current means the caller's directory, and a wave has none; say which it is by path:… or id:…")
	case named && s.On == "" && !filepath.IsAbs(path) && !strings.HasPrefix(path, "/"):
		return hub.Invalid("worktree", "path:%.128s is relative, and a wave is in no directory; say it from the root on", path)
	case spec.Worktree == hub.WorktreeNewChild && (spec.Parent == "" || spec.Parent == hub.WorktreeCurrent):
		return hub.Invalid("parent", "new-child needs the parent, by path:… or id:…: a wave is in no worktree")
	case spec.Name != "":
		return hub.CheckWorktreeName(spec.Name)
	}
	return nil
}
