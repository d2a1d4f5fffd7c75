package hub

import "testing"

func TestActivity(t *testing.T) {
	for _, c := range []struct {
		state TerminalState
		want  Activity
	}{
		{TerminalState{}, ""},
		{TerminalState{Agent: "state=idle:app=codex", Title: "⠂ demo"}, ActivityIdle},
		{TerminalState{Agent: "app=codex:state=done"}, ActivityIdle},
		{TerminalState{Agent: "state=working"}, ActivityWorking},
		{TerminalState{Agent: "state=blocked:app=codex:kind=permission"}, ActivityBlocked},
		{TerminalState{Agent: "state=dreaming", Title: "✳ demo"}, ""},
		{TerminalState{Agent: "idle", Title: "✳ demo"}, ActivityIdle},
		{TerminalState{Title: "⠐ demo"}, ActivityWorking},
		{TerminalState{Title: "⠋ demo"}, ActivityWorking},
		{TerminalState{Title: "◇  Ready (demo)"}, ActivityIdle},
		{TerminalState{Title: "✦  Working… (demo)"}, ActivityWorking},
		{TerminalState{Title: "✋  Action Required (demo)"}, ActivityBlocked},
		{TerminalState{Title: "[ ! ] Action Required | demo"}, ActivityBlocked},
		{TerminalState{Title: "demo"}, ""},
	} {
		if got := c.state.Activity(); got != c.want {
			t.Errorf("%+v is %q, want %q", c.state, got, c.want)
		}
	}
}

func TestTerminalIn(t *testing.T) {
	tree, folder := Terminal{Worktree: "wt_1", Dir: "/wt/a/sub"}, Terminal{Dir: "/srv"}
	for _, c := range []struct {
		t        Terminal
		worktree WorktreeID
		dir      string
		want     bool
	}{
		{tree, "wt_1", "/wt/a", true}, {tree, "wt_2", "/wt/a/sub", false}, {tree, "", "/wt/a/sub", false},
		{folder, "", "/srv", true}, {folder, "", "/srv/x", false}, {folder, "wt_1", "/srv", false},
	} {
		if got := c.t.In(c.worktree, c.dir); got != c.want {
			t.Errorf("%+v is in %q %q: %v", c.t, c.worktree, c.dir, got)
		}
	}
}
