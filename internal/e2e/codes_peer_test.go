//go:build unix

package e2e

import (
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/keystore"
)

// peerCodes are those of several hubs, and of one that has all that is wrong.
var peerCodes = map[string]scenario{
	"server_required": func(t *testing.T, s *stage) Result {
		run := s.trio().worker.NewRun("the wrong way round")
		return run.json("worker", "start", "--task", run.Task("x"), "--on", "home", "--worktree", "path:/", "--agent", "sh")
	},
	"repo_not_granted": func(t *testing.T, s *stage) Result {
		return s.trio().run.json("worker", "start", "--task", s.trio().run.Task("x"), "--on", "worker", "--worktree", "path:"+t.TempDir(), "--agent", "sh")
	},
	"worker_limit": func(t *testing.T, s *stage) Result {
		s.trio().run.heldWorker(t, s.trio().worker, s.trio().place()...)
		return s.trio().run.json(append([]string{"worker", "start", "--task", s.trio().run.Task("x")}, s.trio().place()...)...)
	},
	"peer_revoked":               onWrong("--on gone"),
	"peer_changed":               onWrong("--on changed"),
	"peer_store_changed":         onWrong("--on replaced"),
	"remote_runtime_unavailable": onWrong("--on away"),
	"receipts_full":              onWrong(""),
	"request_expired":            func(_ *testing.T, s *stage) Result { return s.trio().wrong.Caller().json("request", "show", longAgo) },
	"internal":                   func(t *testing.T, s *stage) Result { return s.trio().wrong.Caller().json("repo", "add", t.TempDir()) },
	"rate_limited":               func(t *testing.T, s *stage) Result { return s.trio().wrong.Caller().json("peer", "invite") },
	"pairing_proof_mismatch":     func(t *testing.T, s *stage) Result { return pairing(s.trio().home, s.trio().wrong) },
	"invite_expired":             func(t *testing.T, s *stage) Result { return pairing(s.trio().worker, s.solo().Hub) },
}

// onWrong starts a worker from the hub where all is wrong.
func onWrong(flags string) scenario {
	return func(t *testing.T, s *stage) Result {
		run := s.trio().wrongRun
		return run.json(append([]string{"worker", "start", "--task", run.Task("x"), "--worktree", "path:/", "--agent", "sh"}, strings.Fields(flags)...)...)
	}
}

// pairing joins with a code that is well-formed, but of no invite.
func pairing(by, with *Hub) Result {
	c := by.Caller()
	c.stdin = wellFormed()
	return c.json("peer", "add", "stranger", with.Endpoint().URL, "--code-file", "-")
}

// wellFormed is a code of no invite.
func wellFormed() string {
	const slot, secret = "ZZZ", "0123456789AB"
	return slot + string(keystore.CheckChar(slot+secret)) + secret
}
