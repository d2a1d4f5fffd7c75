//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/wavehub/wavehub/openapi/api"
)

// startAdvice is printed of starts and stops whose supervisor says nothing.
var startAdvice = map[string]advice{
	"an unknown start":       {sites: "work.unknown cli.repeated", provoke: unknownStart, exits: []int{1}},
	"a start that is left":   {sites: "work.left", provoke: leftStart, exits: []int{6}},
	"a Task that would wait": {sites: "work.waits", provoke: startOfWaiting},
	"a stop that is left":    {sites: "work.Stop cli.repeated", provoke: leftStop, exits: []int{6}},

	"an unknown terminal":         {sites: "work.doubtful cli.repeated", provoke: unknownTerminal, exits: []int{1}},
	"a close that proves nothing": {sites: "work.undecided cli.repeated", provoke: unprovenClose, exits: []int{10}},
}

// supervisedBy starts a hub whose supervisors are a script. restore makes them
// real again.
func supervisedBy(t *testing.T, script string) (h *Hub, restore func()) {
	t.Helper()
	h = NewHub(t, "mute")
	h.bin = filepath.Join(t.TempDir(), "wavehub")
	raw, err := os.ReadFile(wavehubBin)
	must(t, err)
	writeProgram(t, h.bin, string(raw))
	h.Start()
	must(t, os.Rename(h.bin, h.bin+".real"))
	writeProgram(t, h.bin, "#!/bin/sh\n"+script+"\n")
	return h, func() { must(t, os.Rename(h.bin+".real", h.bin)) }
}

// unknownStart has a supervisor that claims the launch and ends.
func unknownStart(t *testing.T, _ *stage) printed {
	h, _ := supervisedBy(t, `printf '{"supervisor":null}' > "$2/claim.json"`)
	run := h.NewRun("unknown")
	r := run.json("worker", "start", "--task", run.Task("x"), "--worktree", "path:"+t.TempDir(), "--agent", "sh")
	return printed{by: run.Caller, next: slices.Concat(unproven[api.StartReceipt](t, r).NextCommands, r.nextCommands(t))}
}

// unproven is the receipt of what exits 10.
func unproven[T any](t *testing.T, r Result) T {
	t.Helper()
	if r.Code != 10 {
		t.Fatalf("%q: exit %d\n%s%s", r.Args, r.Code, r.Stdout, r.Stderr)
	}
	return decode[T](t, r.Stdout)
}

// leftStart stops the hub while a supervisor has not decided anything yet.
func leftStart(t *testing.T, _ *stage) printed {
	h, restore := supervisedBy(t, newGate(t).wait())
	run := h.NewRun("left")
	args := []string{"worker", "start", "--task", run.Task("x"), "--worktree", "path:" + t.TempDir(), "--agent", "sh"}
	call := begin(t, func() (Result, error) { return run.json(args...), nil })
	eventually(t, "the supervisor is started", 20*time.Second, func() bool { return h.launches() > 0 })
	h.Stop()
	receipt := unproven[api.StartReceipt](t, call.get(t, 20*time.Second).value)
	return printed{by: run.Caller, next: receipt.NextCommands, mend: func(*testing.T) {
		restore()
		h.Start()
	}}
}

// launches counts the terminals of which something was launched.
func (h *Hub) launches() int {
	specs, _ := filepath.Glob(h.Data("terminals", "*", "supervisor.log")) // the pattern is well-formed
	return len(specs)
}

// startOfWaiting would create a Task whose dependency is open.
func startOfWaiting(t *testing.T, s *stage) printed {
	c := s.solo().NewRun("waiting")
	r := c.json("worker", "start", "--spec", "x", "--deps", c.Task("first"), "--worktree", "path:/", "--agent", "sh")
	return printed{by: c.Caller, next: r.nextCommands(t)}
}

// leftStop stops the hub while a supervisor that does not answer is waited for.
func leftStop(t *testing.T, _ *stage) printed {
	h := StartHub(t, "mute")
	run := h.NewRun("left")
	w, supervisor := run.heldWorker(t, h), h.spawns()[0].Supervisor.PID
	must(t, syscall.Kill(supervisor, syscall.SIGSTOP))
	call := begin(t, func() (Result, error) { return run.json("worker", "stop", w.DispatchId), nil })
	eventually(t, "the stop is on record", 20*time.Second, func() bool {
		return get[api.DispatchPage](t, run.Caller, "worker", "list").Dispatches[0].State == "stopping"
	})
	h.Stop()
	r := call.get(t, 20*time.Second).value
	next := unproven[api.StopResult](t, r).NextCommands
	return printed{by: run.Caller, next: slices.Concat(next, r.nextCommands(t)), mend: func(t *testing.T) {
		must(t, syscall.Kill(supervisor, syscall.SIGCONT))
		h.Start()
	}}
}

// unknownTerminal has a supervisor that claims the launch and ends.
func unknownTerminal(t *testing.T, _ *stage) printed {
	h, _ := supervisedBy(t, `printf '{"supervisor":null}' > "$2/claim.json"`)
	r := h.CLI("terminal", "create", "--dir", t.TempDir(), "--json")
	return printed{by: h.Caller(), next: slices.Concat(unproven[api.TerminalReceipt](t, r).NextCommands, r.nextCommands(t))}
}

// unprovenClose closes a terminal whose supervisor does not answer.
func unprovenClose(t *testing.T, _ *stage) printed {
	h := StartHub(t, "mute")
	id := newTerminal(t, h.Caller(), "--command", "read -r _")
	supervisor := h.spawns()[0].Supervisor.PID
	must(t, syscall.Kill(supervisor, syscall.SIGSTOP))
	r := h.CLI("terminal", "close", id, "--timeout", "1s", "--json")
	next := unproven[api.TerminalClosed](t, r).NextCommands
	return printed{by: h.Caller(), next: slices.Concat(next, r.nextCommands(t)), mend: func(t *testing.T) {
		must(t, syscall.Kill(supervisor, syscall.SIGCONT))
	}}
}
