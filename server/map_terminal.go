package server

import (
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/work"
	"github.com/wavehub/wavehub/openapi/api"
)

func terminalOf(t work.ShownTerminal) api.Terminal {
	return api.Terminal{
		TerminalId: string(t.ID), Role: api.TerminalRole(t.Role), WorktreeId: null(t.Worktree), Dir: t.Dir, Agent: null(t.Agent),
		Name: null(t.Name), Size: sizeOf(t.Size), DispatchId: null(t.Dispatch), Busy: t.Busy, Process: api.Liveness(t.Process.Liveness),
		ExitCode: t.Process.ExitCode, CreatedAt: at(t.CreatedAt), EndedAt: maybeAt(t.EndedAt),
	}
}

// sizeOf is nil for pipes, which have no size.
func sizeOf(s hub.TerminalSize) *api.TerminalSize {
	if s == (hub.TerminalSize{}) {
		return nil
	}
	return &api.TerminalSize{Rows: s.Rows, Cols: s.Cols}
}

func terminalReceipt(r hub.TerminalReceipt) api.TerminalReceipt {
	t := work.ShownTerminal{Terminal: r.Terminal, Process: hub.ProcessState{Liveness: hub.Unverifiable}}
	switch r.State {
	case hub.TerminalReady:
		t.Process.Liveness = hub.Live
	case hub.TerminalFailed:
		t.Process.Liveness = hub.Exited
	}
	return api.TerminalReceipt{
		Terminal: terminalOf(t), State: api.TerminalReceiptState(r.State), Stage: string(r.Stage), FailedStage: null(r.FailedStage),
		LastError: null(r.LastError), NextCommands: commands(r.NextCommands), Mutation: mutationOf(r.Mutation),
	}
}

func terminalDetail(t work.ShownTerminal) api.TerminalDetail {
	out := api.TerminalDetail{Terminal: terminalOf(t)}
	o := &out.Observation
	o.Process, o.ExitCode, o.Signal = api.Liveness(t.Process.Liveness), t.Process.ExitCode, t.Process.Signal
	o.Title, o.Activity, o.Size = null(t.State.Title), null(t.State.Activity()), sizeOf(t.State.Size)
	o.OutputBytes, o.LastOutputAt = t.State.Total, maybeAt(max(t.State.LastOutputAt, t.Process.LastOutputAt))
	return out
}

func screenOf(id string, s hub.Screen, live hub.Liveness) api.TerminalScreen {
	return api.TerminalScreen{
		TerminalId: id, Process: api.Liveness(live), Size: api.TerminalSize{Rows: s.Size.Rows, Cols: s.Size.Cols}, Title: null(s.Title),
		Lines: texts(s.Lines), Scrollback: texts(s.Scrollback), CursorRow: s.CursorRow, CursorCol: s.CursorCol, Truncated: s.Truncated,
	}
}

func rangeOf(id string, o hub.OutputRange, ended bool) api.TerminalOutput {
	data := o.Data
	if data == nil {
		data = []byte{} // "" in JSON, not null
	}
	return api.TerminalOutput{
		TerminalId: id, From: o.From, Next: o.From + int64(len(o.Data)), First: o.First, Total: o.Total, Data: data, Ended: ended,
	}
}

func waitedOf(id string, w work.Waited) api.TerminalWait {
	return api.TerminalWait{
		TerminalId: id, Met: w.Met, TimedOut: w.TimedOut, Source: null(w.Source), Line: null(w.Line),
		Process: api.Liveness(w.Process.Liveness), ExitCode: w.Process.ExitCode,
	}
}

func terminalSent(r hub.TerminalInput) api.TerminalSent {
	return api.TerminalSent{
		TerminalId: string(r.Terminal), State: api.TerminalSentState(r.State), Bytes: r.Bytes, LastError: null(r.LastError),
		Mutation: mutationOf(r.Mutation),
	}
}

func terminalClosed(r hub.TerminalEnd) api.TerminalClosed {
	return api.TerminalClosed{
		TerminalId: string(r.Terminal), State: api.TerminalClosedState(r.State), AlreadyClosed: r.AlreadyClosed,
		ProcessAction: api.TerminalClosedProcessAction(r.Action), ExitCode: r.ExitCode, LastError: null(r.LastError),
		NextCommands: commands(r.NextCommands), Mutation: mutationOf(r.Mutation),
	}
}
