//go:build unix

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/openapi/api"
)

// Result is how one command line ended.
type Result struct {
	Args           []string
	Code           int
	Stdout, Stderr string
}

// Caller runs command lines against one hub, in one folder, with additions to
// the environment, which is clean otherwise.
type Caller struct {
	hub   *Hub
	env   []string
	stdin string
	dir   string
}

// Caller is one that has neither terminal nor consumer token of its own.
func (h *Hub) Caller(env ...string) Caller { return Caller{hub: h, env: env, dir: h.Home} }

// CLI runs one command line as such a caller.
func (h *Hub) CLI(args ...string) Result {
	h.t.Helper()
	return h.Caller().CLI(args...)
}

const commandLimit = 90 * time.Second

// CLI runs one command line to its end.
func (c Caller) CLI(args ...string) Result {
	c.hub.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
	defer cancel()
	return c.finish(ctx, c.command(ctx, args...), args)
}

// paste runs shell text, in which wavehub is found as a user would find it.
func (c Caller) paste(text string, args ...string) Result {
	c.hub.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
	defer cancel()
	cmd := c.command(ctx, append([]string{"-c", text, "sh"}, args...)...)
	cmd.Path, cmd.Args[0] = "/bin/sh", "sh"
	cmd.Env = append(cmd.Env, "PATH="+filepath.Dir(wavehubBin)+":"+os.Getenv("PATH"))
	return c.finish(ctx, cmd, append([]string{text}, args...))
}

func (c Caller) finish(ctx context.Context, cmd *exec.Cmd, args []string) Result {
	c.hub.t.Helper()
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || ctx.Err() != nil) {
		c.hub.t.Fatalf("running %q: %v\n%s", args, err, problems.String())
	}
	return Result{Args: args, Code: cmd.ProcessState.ExitCode(), Stdout: out.String(), Stderr: problems.String()}
}

func (c Caller) command(ctx context.Context, args ...string) *exec.Cmd {
	argv := c.hub.argv(c.hub.cli, args...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = append(c.hub.environ(), c.env...), c.dir
	cmd.Stdin = strings.NewReader(c.stdin)
	return cmd
}

// get runs a command line with --json that has to succeed.
func get[T any](t testing.TB, c Caller, args ...string) T {
	t.Helper()
	r := c.CLI(append(args, "--json")...)
	if r.Code != 0 {
		t.Fatalf("%q: exit %d\n%s%s", args, r.Code, r.Stdout, r.Stderr)
	}
	return decode[T](t, r.Stdout)
}

func decode[T any](t testing.TB, text string) T {
	t.Helper()
	var out T
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("no JSON document: %v\n%s", err, text)
	}
	return out
}

// refused runs a command line with --json that has to fail with the code.
func refused(t testing.TB, c Caller, code string, args ...string) api.Problem {
	t.Helper()
	return c.CLI(append(args, "--json")...).problem(t, code)
}

func (r Result) problem(t testing.TB, code string) api.Problem {
	t.Helper()
	var p api.Problem
	for line := range strings.Lines(r.Stderr) {
		if json.Unmarshal([]byte(line), &p) == nil && p.Code != "" {
			break
		}
	}
	if string(p.Code) != code || r.Code != exitOf(t, code) {
		t.Fatalf("%q: exit %d and %q, want %d and %q\n%s%s", r.Args, r.Code, p.Code, exitOf(t, code), code, r.Stdout, r.Stderr)
	}
	return p
}

// eventually polls until ok says so; it is the one place that does.
func eventually(t testing.TB, what string, limit time.Duration, ok func() bool) {
	t.Helper()
	deadline := time.After(limit)
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !ok() {
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}

// Coordinator is a Run with a caller that is its consumer.
type Coordinator struct {
	Caller
	Run, Token string
}

// NewRun creates a Run and consumes it by a consumer file.
func (h *Hub) NewRun(objective string) Coordinator {
	h.t.Helper()
	file := filepath.Join(h.t.TempDir(), "consumer")
	bound := get[api.RunBound](h.t, h.Caller(), "run", "create", "--objective", objective, "--bind", "--consumer-file", file)
	return Coordinator{Caller: h.Caller("WAVEHUB_CONSUMER_FILE=" + file), Run: bound.Run.RunId, Token: *bound.Binding.ConsumerToken}
}

// Box is the Run's mailbox.
func (c Coordinator) Box() string { return "run:" + c.Run }

// Task creates a Task.
func (c Coordinator) Task(spec string, more ...string) string {
	c.hub.t.Helper()
	return get[api.TaskResult](c.hub.t, c.Caller, append([]string{"task", "create", "--spec", spec}, more...)...).Task.TaskId
}

// State is the present state of a Task.
func (c Coordinator) State(task string) string {
	c.hub.t.Helper()
	return string(get[api.TaskOnly](c.hub.t, c.Caller, "task", "show", task).Task.State)
}

// Work creates a Task of shell text and starts it with sh in a folder of its
// own.
func (c Coordinator) Work(script string, more ...string) api.StartReceipt {
	c.hub.t.Helper()
	return c.Begin(c.Task(script), more...)
}

// Begin starts a Task; sh in a folder of its own unless more says otherwise.
func (c Coordinator) Begin(task string, more ...string) api.StartReceipt {
	c.hub.t.Helper()
	if len(more) == 0 {
		more = []string{"--worktree", "path:" + c.hub.t.TempDir(), "--agent", "sh"}
	}
	r := get[api.StartReceipt](c.hub.t, c.Caller, append([]string{"worker", "start", "--task", task}, more...)...)
	if r.State != "ready" {
		c.hub.t.Fatalf("the start of %s is %s: %v", task, r.State, r.LastError)
	}
	return r
}

// Show is worker show.
func (c Coordinator) Show(dispatch string) api.DispatchDetail {
	c.hub.t.Helper()
	return get[api.DispatchDetail](c.hub.t, c.Caller, "worker", "show", dispatch)
}

// Check waits for the next batch.
func (c Coordinator) Check(more ...string) api.CheckResult {
	c.hub.t.Helper()
	return get[api.CheckResult](c.hub.t, c.Caller, append([]string{"check", "--wait", "--timeout", "30s"}, more...)...)
}

// Done waits for one worker_done of the dispatch and acknowledges its batch.
func (c Coordinator) Done(dispatch string) api.Message {
	c.hub.t.Helper()
	for range 100 {
		b := c.Check("--types", "worker_done")
		if b.DeliveryId == nil {
			c.hub.t.Fatalf("no mail about %s", dispatch)
		}
		get[api.CheckResult](c.hub.t, c.Caller, "check", "--ack", *b.DeliveryId)
		for _, m := range b.Messages {
			if m.Type == "worker_done" && m.From == "dispatch:"+dispatch || reportOf(m).Dispatch == dispatch {
				return m
			}
		}
	}
	c.hub.t.Fatalf("no worker_done of %s in 100 batches", dispatch)
	return api.Message{}
}

// report is the payload of a worker_done.
type report struct {
	Task     string `json:"task_id"`
	Dispatch string `json:"dispatch_id"`
	Outcome  string `json:"outcome"`
	Evidence string `json:"evidence"`
	Reason   string `json:"reason"`
	ExitCode *int   `json:"exit_code"`
}

func reportOf(m api.Message) report {
	var r report
	if json.Unmarshal(m.Payload, &r) != nil {
		return report{}
	}
	return r
}
