package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/openapi/api"
)

// cmdUntil holds a batch file until there is a file go in its folder. The call
// between is what takes time.
const cmdUntil = ":again\n\"%WAVEHUB_BIN%\" version >nul\nif not exist go goto again\n"

const cmdDone = `"%WAVEHUB_BIN%" done `

// winePair is a home on Linux and its worker hub on Windows.
type winePair struct {
	home, windows *Hub
	run           Coordinator
	root          string // granted, as Linux calls it
}

// begin starts a batch file on Windows in a folder of its own, which it returns.
func (p winePair) begin(t *testing.T, name, script string) (api.StartReceipt, string) {
	t.Helper()
	dir := filepath.Join(p.root, name)
	must(t, os.Mkdir(dir, 0o700))
	return p.run.Work(script, "--on", "windows", "--worktree", "path:"+windowsPath(dir), "--agent", "cmd"), dir
}

// exited asserts the proof that the worker's process has ended, with the code.
func (p winePair) exited(t *testing.T, dispatch string, code int) {
	t.Helper()
	eventually(t, "the exit is proved", 20*time.Second, func() bool {
		o := p.run.Show(dispatch).Observation
		return o.Process == "exited" && o.ExitCode != nil && *o.ExitCode == code
	})
}

func (w *wine) testHub(t *testing.T) {
	p := winePair{home: StartHub(t, "mac"), windows: StartHub(t, "windows", w.host), root: t.TempDir()}
	Pair(t, p.home, p.windows, windowsPath(p.root), "")
	p.run = p.home.NewRun("on Windows")
	first, dir := p.begin(t, "first", "@echo seen by cmd\r\n@echo made > made.txt\n"+cmdDone+`"from Windows"`)
	if m := p.run.Done(first.DispatchId); m.Body != "from Windows" || reportOf(m).Outcome != "succeeded" || !exists(filepath.Join(dir, "made.txt")) {
		t.Errorf("the report is %+v", m)
	}
	p.exited(t, first.DispatchId, 0)
	failed, _ := p.begin(t, "failed", "exit 3")
	if m := p.run.Done(failed.DispatchId); reportOf(m).Outcome != "failed" || reportOf(m).ExitCode == nil || *reportOf(m).ExitCode != 3 {
		t.Errorf("the report of an exit is %+v", m)
	}
	p.overKill(t)
	p.stopped(t)
	p.intact(t, first)
}

// overKill kills the hub under a live worker, which reports to the next one.
func (p winePair) overKill(t *testing.T) {
	t.Helper()
	w, dir := p.begin(t, "live", cmdUntil+cmdDone+`"after the kill"`)
	p.windows.Restart()
	eventually(t, "the worker is known to live", 30*time.Second, func() bool {
		d := p.run.Show(w.DispatchId)
		return d.Observation.Link == "up" && d.Observation.Process == "live"
	})
	must(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	if m := p.run.Done(w.DispatchId); m.Body != "after the kill" {
		t.Errorf("the report is %+v", m)
	}
	p.exited(t, w.DispatchId, 0)
	next, _ := p.begin(t, "next", cmdDone+`"by the next hub"`)
	if m := p.run.Done(next.DispatchId); m.Body != "by the next hub" {
		t.Errorf("the report is %+v", m)
	}
	p.exited(t, next.DispatchId, 0)
}

// stopped ends a worker that would never end. Whether the call or the fence that
// is relayed was first is not said here.
func (p winePair) stopped(t *testing.T) {
	t.Helper()
	w, _ := p.begin(t, "stopped", cmdUntil)
	s := get[api.StopResult](t, p.run.Caller, "worker", "stop", w.DispatchId)
	if s.State != "stopped" || s.ProcessAction == "unknown" {
		t.Errorf("the stop is %+v", s)
	}
	eventually(t, "its end is proved", 20*time.Second, func() bool {
		return p.run.Show(w.DispatchId).Observation.Process == "exited"
	})
}

// intact looks at what the home and the owner have of a Dispatch of before.
func (p winePair) intact(t *testing.T, first api.StartReceipt) {
	t.Helper()
	if d := p.run.Show(first.DispatchId).Dispatch; d.State != "succeeded" || p.run.State(first.TaskId) != "completed" {
		t.Errorf("the first Dispatch is %+v", d)
	}
	if text := get[api.OutputPage](t, p.run.Caller, "worker", "read", first.DispatchId).Terminal.Text; !strings.Contains(text, "seen by cmd") {
		t.Errorf("its output is %q", text)
	}
	found := 0
	for _, m := range get[api.HistoryPage](t, p.run.Caller, "check", "--all").Messages {
		if m.From == "dispatch:"+first.DispatchId && m.Body == "from Windows" {
			found++
		}
	}
	if found != 1 {
		t.Errorf("its report is %d times in the mailbox", found)
	}
}
