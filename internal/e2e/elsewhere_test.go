//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/config"
	"github.com/wavehub/wavehub/openapi/api"
)

// lostMutation is a command line whose answer is lost, and what it makes.
type lostMutation struct {
	args []string
	// made are the ids of what the command has made so far.
	made func(t *testing.T) []string
	// settled waits until all that it started has ended.
	settled func(t *testing.T)
}

// TestAcceptance_Q07_TheRecoverCommandWorksElsewhere: the answer of a mutation is
// lost. The command that is printed for it, pasted into a shell in another
// directory, returns the recorded answer and makes nothing again.
func TestAcceptance_Q07_TheRecoverCommandWorksElsewhere(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	for name, of := range map[string]func(*testing.T, *Hub) lostMutation{"task create": lostTask, "send": lostSend, "worker start": lostWorker} {
		t.Run(name, func(t *testing.T) { of(t, h).recover(t, h) })
	}
}

func lostTask(_ *testing.T, h *Hub) lostMutation {
	run, direct := h.NewRun("lost task"), h.Client("")
	return lostMutation{
		args: []string{"task", "create", "--run", run.Run, "--title", odd, "--spec", odd},
		made: func(t *testing.T) (ids []string) {
			page, err := direct.Tasks(t.Context(), run.Run, "", client.Page{})
			must(t, err)
			for _, x := range page.Tasks {
				ids = append(ids, x.TaskId)
			}
			return ids
		},
		settled: func(*testing.T) {},
	}
}

func lostSend(_ *testing.T, h *Hub) lostMutation {
	run, direct := h.NewRun("lost message"), h.Client("")
	return lostMutation{
		args: []string{"send", "--to", run.Box(), "--type", "status", "--subject", odd, "--body", odd},
		made: func(t *testing.T) (ids []string) {
			page, err := direct.History(t.Context(), run.Box(), "all", nil, client.Page{})
			must(t, err)
			for _, x := range page.Messages {
				ids = append(ids, x.MessageId)
			}
			return ids
		},
		settled: func(*testing.T) {},
	}
}

// lostWorker is a start in a named place; the worker itself is the witness of
// how often it ran.
func lostWorker(t *testing.T, h *Hub) lostMutation {
	run, direct := h.NewRun("lost worker"), h.Client("")
	witness := filepath.Join(t.TempDir(), "witness")
	task := run.Task("echo ran >> '" + witness + "'")
	return lostMutation{
		args: []string{"worker", "start", "--task", task, "--worktree", "path:" + t.TempDir(), "--agent", "sh"},
		made: func(t *testing.T) (ids []string) {
			page, err := direct.Dispatches(t.Context(), client.DispatchFilter{Task: task}, client.Page{})
			must(t, err)
			for _, x := range page.Dispatches {
				ids = append(ids, x.DispatchId)
			}
			return ids
		},
		settled: func(t *testing.T) {
			eventually(t, "the worker has ended", 20*time.Second, func() bool { return run.State(task) == "completed" })
			raw, err := os.ReadFile(witness)
			must(t, err)
			if n := strings.Count(string(raw), "ran"); n != 1 {
				t.Errorf("the worker ran %d times", n)
			}
		},
	}
}

// lose runs the command line and loses every answer once it has made something.
func (x lostMutation) lose(t *testing.T, h *Hub) (Caller, Result) {
	t.Helper()
	e, m := h.Endpoint(), newMuter(t, strings.TrimPrefix(h.Endpoint().URL, "https://"))
	c := h.at(t, config.Endpoint{URL: m.Addr(), Fingerprint: e.Fingerprint, HubID: e.HubID}, h.Token())
	there := func() bool { return len(x.made(t)) > 0 }
	m.set(there)
	call := begin(t, func() (Result, error) { return c.CLI(x.args...), nil })
	eventually(t, "the hub has the request", 20*time.Second, there)
	x.settled(t)
	m.cut()
	r := call.get(t, commandLimit).value
	m.set(func() bool { return false })
	return c, r
}

func (x lostMutation) recover(t *testing.T, h *Hub) {
	c, r := x.lose(t, h)
	_, line, ok := strings.Cut(r.Stderr, "recover: ")
	if r.Code != 10 || !ok {
		t.Fatalf("%q: exit %d\n%s%s", x.args, r.Code, r.Stdout, r.Stderr)
	}
	line, _, _ = strings.Cut(line, "\n")
	before := x.made(t)
	c.dir = t.TempDir()
	if again := c.paste(line); again.Code != 0 || again.Stdout == "" {
		t.Errorf("%s: exit %d\n%s%s", line, again.Code, again.Stdout, again.Stderr)
	}
	recorded := c.paste(line + " --json")
	answer := decode[struct {
		Mutation api.Mutation `json:"mutation"`
	}](t, recorded.Stdout)
	if len(before) != 1 || !answer.Mutation.Replayed || !strings.Contains(recorded.Stdout, `"`+before[0]+`"`) || !strings.Contains(line, answer.Mutation.RequestId) {
		t.Errorf("%q were made; %s answers\n%s", before, line, recorded.Stdout)
	}
	if after := x.made(t); len(after) != 1 {
		t.Errorf("after the recover command there are %q", after)
	}
	x.settled(t)
}
