//go:build unix

package e2e

import (
	"testing"

	"github.com/wavehub/wavehub/openapi/api"
)

// attachedCodes are provoked about attached workers.
var attachedCodes = map[string]scenario{
	"worker_not_found": as(operator, "worker-identity drain nobody"),
	"worker_draining": func(t *testing.T, s *stage) Result {
		run, w := s.solo().run, registered(t, s.solo().Hub, "code-draining")
		get[api.WorkerResult](t, s.solo().Caller(), "worker-identity", "drain", w.Name)
		return run.json("dispatch", "--task", run.Task("x"), "--to", "worker:"+w.Name)
	},
	"session_not_found": as(operator, "session get w1--t1"),
}

// attachedAdvice is what is printed about attached workers.
var attachedAdvice = map[string]advice{
	"a Dispatch that waits": {sites: "work.attachedTo", provoke: func(t *testing.T, s *stage) printed {
		run := s.solo().run
		return printed{by: run.Caller, next: run.give(t, "x", registered(t, s.solo().Hub, "")).NextCommands}
	}},
	"mail of an attached worker": {sites: "dispatch.others", provoke: func(t *testing.T, s *stage) printed {
		run := s.solo().run
		d := run.give(t, "x", registered(t, s.solo().Hub, "")).DispatchId
		return printed{by: run.Caller, next: run.json("check", "--all", "--mailbox", "dispatch:"+d).nextCommands(t)}
	}},
	"a session_start": {sites: "work.startMail", provoke: func(t *testing.T, s *stage) printed {
		run, w := s.solo().run, registered(t, s.solo().Hub, "")
		start := w.startOf(t, run.give(t, "x", w).DispatchId)
		var next [][]string
		for _, argv := range start.Commands {
			next = append(next, argv)
		}
		return printed{by: w.turn(t, start), next: next}
	}},
}
