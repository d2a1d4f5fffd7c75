//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/id"
	"github.com/wavehub/wavehub/openapi/api"
)

// as is a scenario of one command line on the lone hub; its words are separated
// by spaces.
func as(by func(s solo) Caller, line string) scenario {
	return func(t *testing.T, s *stage) Result { return by(s.solo()).json(strings.Fields(line)...) }
}

func operator(s solo) Caller { return s.Caller() }
func consumer(s solo) Caller { return s.run.Caller }
func worker(s solo) Caller   { return s.worker.Caller() }

const nothing = "00000000000000000000000000" // an id without its prefix that nothing has

// soloCodes are provoked by the operator or a Run's consumer, on one hub.
var soloCodes = map[string]scenario{
	"invalid_argument":   as(operator, "run list --limit 999"),
	"cursor_invalid":     as(operator, "run list --cursor x"),
	"run_required":       as(func(s solo) Caller { return s.Caller("WAVEHUB_CONSUMER=whc_nobody") }, "run current"),
	"agent_unconfigured": onTask("--worktree path:/ --agent nobody"),
	"invalid_token":      invalidToken,
	"consumer_required":  func(t *testing.T, s *stage) Result { return s.solo().Caller().json("check", "--run", s.solo().run.Run) },
	"run_not_found":      as(operator, "run show run_"+nothing),
	"task_not_found":     as(operator, "task show task_"+nothing),
	"dispatch_not_found": as(operator, "worker show dispatch_"+nothing),
	"message_not_found":  as(consumer, "reply --body x --id msg_"+nothing),
	"mailbox_not_found":  as(operator, "check --peek --mailbox dispatch:dispatch_"+nothing),
	"peer_not_found":     as(operator, "peer show nobody"),
	"terminal_not_found": onTask("--worktree path:/ --terminal term_" + nothing),
	"terminal_busy": func(t *testing.T, s *stage) Result {
		return s.solo().CLI("terminal", "close", ownTerminal(t, s.solo().run.Caller, s.solo().worker.DispatchId), "--json")
	},
	"terminal_worktree_mismatch": terminalElsewhere,
	"repo_not_found":             onTask("--worktree new-top-level --name x --agent sh --repo none"),
	"request_not_found":          as(operator, "request show req_"+nothing),
	"request_mismatch":           requestMismatch,
	"task_not_startable":         onHeldTask("worker start --worktree path:/ --agent sh --task"),
	"task_state_invalid":         onHeldTask("task cancel"),
	"consumer_fenced":            consumerFenced,
	"stale_delivery":             as(consumer, "check --ack delivery_"+nothing),
	"waiter_exists":              waiterExists,
	"transcript_required": func(t *testing.T, s *stage) Result {
		return s.solo().CLI("worker", "read", s.solo().worker.DispatchId, "--source", "transcript", "--json")
	},
	"name_taken":          nameTaken,
	"worktree_not_empty":  worktreeNotEmpty,
	"precondition_failed": onHeldTask("task update --title x --if-match v99"),
	"too_large": func(t *testing.T, s *stage) Result {
		c := s.solo().Caller()
		c.stdin = strings.Repeat("x", 64<<10+1)
		return c.json("send", "--to", s.solo().run.Box(), "--type", "status", "--body-file", "-")
	},
	"worktree_not_found_on_server": onTask("--worktree nowhere --agent sh"),
}

// onTask starts a new Task with these flags.
func onTask(flags string) scenario {
	return func(t *testing.T, s *stage) Result {
		c := s.solo().run
		return c.json(append([]string{"worker", "start", "--task", c.Task("x")}, strings.Fields(flags)...)...)
	}
}

// onHeldTask is a command line about the Task whose worker runs.
func onHeldTask(line string) scenario {
	return func(t *testing.T, s *stage) Result {
		return s.solo().run.json(append(strings.Fields(line), s.solo().worker.TaskId)...)
	}
}

func invalidToken(t *testing.T, s *stage) Result {
	return s.solo().at(t, s.solo().Endpoint(), "whu_nobody").json("status")
}

func requestMismatch(t *testing.T, s *stage) Result {
	h, key := s.solo(), id.New("req_")
	get[api.RunBound](t, h.Caller(), "run", "create", "--objective", "one", "--no-bind", "--retry-request", key)
	return h.CLI("run", "create", "--objective", "two", "--no-bind", "--retry-request", key, "--json")
}

func consumerFenced(t *testing.T, s *stage) Result {
	old := s.solo().NewRun("fenced")
	get[api.RunBound](t, s.solo().Caller(), "run", "use", old.Run)
	return old.json("check")
}

func waiterExists(t *testing.T, s *stage) Result {
	run := s.solo().NewRun("waited on")
	first := beginCheck(t, run, client.CheckOptions{Wait: commandLimit})
	r := run.json("check", "--wait", "--timeout", "5s")
	send(t, run, "status", "the end")
	must(t, first.get(t, commandLimit).err)
	return r
}

func nameTaken(t *testing.T, s *stage) Result {
	h := s.solo()
	get[api.RepoResult](t, h.Caller(), "repo", "add", t.TempDir(), "--name", "taken")
	return h.CLI("repo", "add", t.TempDir(), "--name", "taken", "--json")
}

// workerCodes are provoked by a worker, or about one.
var workerCodes = map[string]scenario{
	"mailbox_ambiguous": as(func(s solo) Caller {
		return s.worker.Hub.Caller("WAVEHUB_DISPATCH_FILE="+s.worker.File, "WAVEHUB_CONSUMER="+s.run.Token)
	}, "check"),
	"out_of_scope":         as(worker, "run create --objective x --no-bind"),
	"question_not_found":   as(worker, "ask --resume msg_"+nothing),
	"lifecycle_invalid":    as(worker, "send --type worker_done --body x"),
	"answer_conflict":      answerConflict,
	"dispatch_inactive":    func(t *testing.T, s *stage) Result { return abandoned(t, s).Caller().json("ask", "--question", "x") },
	"relay_quota_exceeded": relayQuota,
	"outcome_unknown":      outcomeUnknown,
	"hub_draining":         hubDraining,
}

func abandoned(t *testing.T, s *stage) Worker {
	w := s.solo().run.heldWorker(t, s.solo().Hub)
	get[api.StopResult](t, s.solo().run.Caller, "worker", "abandon", w.DispatchId)
	return w
}

func answerConflict(t *testing.T, s *stage) Result {
	asked := get[api.Answer](t, s.solo().worker.Caller(), "ask", "--question", "Go on?", "--timeout", "1ms")
	get[api.SendResult](t, s.solo().run.Caller, "reply", "--id", asked.MessageId, "--body", "yes")
	return s.solo().run.json("reply", "--id", asked.MessageId, "--body", "no")
}

// relayQuota sends more reports than are kept of a Dispatch that has ended.
func relayQuota(t *testing.T, s *stage) Result {
	w := abandoned(t, s)
	c := w.Client()
	for range 16 {
		in := api.MessageSend{Type: "worker_done", TaskId: w.TaskId, DispatchId: w.DispatchId, Outcome: "succeeded", Body: "late"}
		if _, err := c.Send(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	return w.Caller().json(w.report("succeeded", "late")...)
}

// worktreeNotEmpty removes a worktree that holds an untracked file.
func worktreeNotEmpty(t *testing.T, s *stage) Result {
	c := s.solo().Caller()
	get[api.RepoResult](t, c, "repo", "add", NewRepo(t, map[string]string{"a": "a"}), "--name", "holds")
	w := get[api.WorktreeReceipt](t, c, "worktree", "create", "--repo", "holds", "--name", "holds").Worktree
	must(t, os.WriteFile(filepath.Join(w.Path, "untracked"), nil, 0o600))
	return c.json("worktree", "remove", "id:"+w.WorktreeId)
}
