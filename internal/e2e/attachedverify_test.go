//go:build unix

package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/openapi/api"
)

// TestAttached_ATokenNeedsAFile: where the token cannot be written nothing is
// registered.
func TestAttached_ATokenNeedsAFile(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	w := registered(t, h, "")
	for _, file := range []string{w.file, filepath.Join(t.TempDir(), "nowhere", "token")} {
		refused(t, h.Caller(), "invalid_argument", "worker-identity", "register", "another", "--token-file", file)
	}
	if all := get[api.WorkerPage](t, h.Caller(), "worker-identity", "list"); len(all.Workers) != 1 {
		t.Errorf("registered are %+v", all.Workers)
	}
}

// TestAttached_AWorkerGradesItself: no hub runs the check of an attached worker's
// Task. Its own word counts, and no word does not.
func TestAttached_AWorkerGradesItself(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	t.Run("here", func(t *testing.T) { gradesItself(t, p.Home.NewRun("graded here"), registered(t, p.Home, ""), "") })
	t.Run("at a peer", func(t *testing.T) {
		gradesItself(t, p.Home.NewRun("graded there"), registered(t, p.Worker, ""), "@"+p.Worker.Name)
	})
}

func gradesItself(t *testing.T, run Coordinator, w attachedWorker, at string) {
	for result, want := range map[string]string{"passed": "completed", "failed": "failed", "": "failed"} {
		task := get[api.TaskResult](t, run.Caller, "task", "create", "--spec", "x", "--verify-cmd", "exit 1", "--verify", "required").Task.TaskId
		r := get[api.StartReceipt](t, run.Caller, "dispatch", "--task", task, "--to", "worker:"+w.Name+at, "--no-wait")
		if !strings.Contains(strings.Join(r.Warnings, "\n"), "self_graded") {
			t.Errorf("the receipt warns of %q", r.Warnings)
		}
		start := w.startOf(t, r.DispatchId)
		if start.VerifyCmd != "exit 1" || !strings.Contains(start.Preamble, "exit 1") {
			t.Errorf("the worker is told %+v", start)
		}
		args := []string{"done", "did it"}
		if result != "" {
			args = append(args, "--verify-result", result)
		}
		get[api.SendResult](t, w.turn(t, start), args...)
		run.Done(r.DispatchId)
		if got := run.State(task); got != want {
			t.Errorf("a verify_result of %q leaves the Task %s, want %s", result, got, want)
		}
	}
}
