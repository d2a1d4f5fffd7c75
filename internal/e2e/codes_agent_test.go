//go:build unix

package e2e

import (
	"path/filepath"
	"testing"

	"github.com/wavehub/wavehub/openapi/api"
)

// agentCodes are provoked about agents and what they write.
var agentCodes = map[string]scenario{
	"agent_not_found":          as(operator, "agent test nobody"),
	"cursor_dispatch_mismatch": cursorOfAnother,
	"capability_unsupported":   resumesNothing,
	"source_changed": func(t *testing.T, _ *stage) Result {
		run := StartHub(t, "mac", withScribe).NewRun("sources")
		s := newScribe(t, run, t.TempDir(), "says a one; announce")
		return run.json("worker", "read", s.DispatchId, "--cursor", *s.read().Cursor, "--source", "terminal")
	},
}

// agentAdvice is what is printed about agents.
var agentAdvice = map[string]advice{
	"no such agent":           {sites: "work.TestAgent", provoke: by(operator, agentCodes["agent_not_found"])},
	"a provider that refuses": {sites: "dispatch.PoolOpen", provoke: refusedByProvider},
}

// ranToItsEnd runs a shell command as a worker to its end.
func ranToItsEnd(t *testing.T, run Coordinator, spec string) string {
	t.Helper()
	id := run.Begin(run.Task(spec), "--worktree", "path:"+t.TempDir(), "--agent", "sh").DispatchId
	run.CLI("worker", "wait", id)
	return id
}

func cursorOfAnother(t *testing.T, s *stage) Result {
	run := s.solo().run
	page := get[api.OutputPage](t, run.Caller, "worker", "read", ranToItsEnd(t, run, "echo one"))
	return run.json("worker", "read", ranToItsEnd(t, run, "echo two"), "--cursor", *page.Cursor)
}

// resumesNothing retries an attempt that has left no session behind.
func resumesNothing(t *testing.T, s *stage) Result {
	run := s.solo().run
	task := run.Task("exit 1")
	place := []string{"--worktree", "path:" + t.TempDir(), "--agent", "sh"}
	first := run.Begin(task, place...).DispatchId
	run.CLI("worker", "wait", first)
	return run.json(append([]string{"worker", "start", "--task", task, "--retry-of", first, "--resume-session"}, place...)...)
}

const limitedAgent = `#!/bin/sh
[ "$1" = --version ] && exec echo 1.0
echo '{"type":"result","subtype":"success","is_error":true,"result":"You have hit your limit","session_id":"s"}'
exit 1
`

// refusedByProvider starts an agent again whose provider has refused work.
func refusedByProvider(t *testing.T, _ *stage) printed {
	program := filepath.Join(t.TempDir(), "limited")
	writeProgram(t, program, limitedAgent)
	run := StartHub(t, "limited", withConfig("agents:\n  limited: {like: claude, command: ["+program+"]}\n")).NewRun("limited")
	place := []string{"--worktree", "path:" + t.TempDir(), "--agent", "limited", "--mode", "headless"}
	run.CLI("worker", "wait", run.Begin(run.Task("x"), place...).DispatchId)
	again := append([]string{"worker", "start", "--spec", "y"}, place...)
	return printed{by: run.Caller, next: run.json(again...).nextCommands(t), cured: again}
}
