package work_test

import (
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

// What this hub knows by itself is refused before there is a Task; what lies on its
// disk is not looked at.
func TestVet(t *testing.T) {
	m := newMachine(t)
	s := m.hubOf(m.store)
	for name, c := range map[string]struct {
		on   string
		spec hub.StartSpec
		code hub.Code
	}{
		"nothing":      {"", hub.StartSpec{}, hub.CodeInvalidArgument},
		"good":         {"", hub.StartSpec{Agent: "sh", Worktree: "path:/nowhere"}, ""},
		"worktree":     {"", hub.StartSpec{Agent: "sh", Worktree: "id:wt_none"}, ""},
		"new":          {"", hub.StartSpec{Agent: "sh", Worktree: hub.WorktreeNewTopLevel, Name: "n", Repo: "demo"}, ""},
		"terminal":     {"", hub.StartSpec{Terminal: hub.NewTerminalID(), Worktree: "path:/nowhere"}, ""},
		"no repo":      {"", hub.StartSpec{Agent: "sh", Worktree: hub.WorktreeNewTopLevel, Name: "n"}, hub.CodeInvalidArgument},
		"unknown repo": {"", hub.StartSpec{Agent: "sh", Worktree: hub.WorktreeNewTopLevel, Name: "n", Repo: "other"}, hub.CodeRepoNotFound},
		"current":      {"", hub.StartSpec{Agent: "sh", Worktree: hub.WorktreeCurrent}, hub.CodeInvalidArgument},
		"agent":        {"", hub.StartSpec{Agent: "none", Worktree: "path:/nowhere"}, hub.CodeAgentUnconfigured},
		"worker":       {"", hub.StartSpec{Worker: "none"}, hub.CodeWorkerNotFound},
		"peer":         {"none", hub.StartSpec{Worker: "none"}, hub.CodePeerNotFound},
	} {
		if err := s.Vet(t.Context(), c.on, c.spec); hub.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %q", name, err, c.code)
		}
	}
}
