//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/id"
	"github.com/wavehub/wavehub/openapi/api"
)

// soloAdvice is printed by one hub and its command line.
var soloAdvice = map[string]advice{
	"task_state_invalid":     {sites: "hub.Change", provoke: by(consumer, soloCodes["task_state_invalid"])},
	"task_not_startable":     {sites: "hub.notStartable", provoke: by(consumer, soloCodes["task_not_startable"])},
	"a Task that waits":      {sites: "hub.firstStart", provoke: by(consumer, startOfPending)},
	"retry without a start":  {provoke: by(consumer, retryOfNone)},
	"retry of a live one":    {sites: "hub.retryStart", provoke: by(consumer, retryOfLive)},
	"precondition_failed":    {sites: "run.Update", provoke: by(consumer, soloCodes["precondition_failed"])},
	"repo_not_found":         {sites: "work.FindRepo", provoke: by(consumer, soloCodes["repo_not_found"])},
	"run_required, asked":    {sites: "run.unbound", provoke: by(func(s solo) Caller { return s.Caller("WAVEHUB_CONSUMER=whc_nobody") }, soloCodes["run_required"])},
	"run_required":           {sites: "cli.runRequired", provoke: runRequired},
	"no Run yet":             {sites: "cli.named", provoke: noRunYet},
	"already_bound":          {sites: "run.refuseBound", provoke: alreadyBound},
	"no child Run yet":       {sites: "cli.runRequired", provoke: noChildYet},
	"a second child Run":     {sites: "run.admitChild", provoke: secondChild},
	"two mailboxes":          {sites: "cli.ofWorkerOrChild", provoke: twoMailboxes},
	"consumer_required":      {sites: "run.required", provoke: consumerRequired},
	"consumer_fenced":        {sites: "run.fenced", provoke: fencedConsumer},
	"a token that was taken": {sites: "cli.settle", provoke: tokenTaken},
	"mailbox_ambiguous":      {sites: "cli.ambiguous", provoke: mailboxAmbiguous},
	"a batch":                {sites: "cli.ackCommand", provoke: batch},
	"a time-out of ask":      {sites: "cli.waitForAnswer cli.noAnswer server.answerOf", provoke: askTimedOut},
	"no repository":          {sites: "work.needsRepo", provoke: by(consumer, onTask("--worktree new-top-level --name x --agent sh"))},
	"a failed start":         {sites: "work.failed", provoke: failedStart},
	"a Run without consumer": {provoke: unboundRun}, // printed for people only
}

// by has the scenario's problem print commands to the caller.
func by(who func(s solo) Caller, provoke scenario) func(*testing.T, *stage) printed {
	return func(t *testing.T, s *stage) printed {
		return printed{by: who(s.solo()), next: provoke(t, s).nextCommands(t)}
	}
}

// nextCommands are those of the problem on stderr.
func (r Result) nextCommands(t testing.TB) [][]string {
	t.Helper()
	for line := range strings.Lines(r.Stderr) {
		if strings.HasPrefix(line, "{") {
			return decode[api.Problem](t, line).NextCommands
		}
	}
	t.Fatalf("%q: no problem: exit %d %s%s", r.Args, r.Code, r.Stdout, r.Stderr)
	return nil
}

// printedAfter is the command line that text shows behind a mark.
func printedAfter(t testing.TB, text, mark string) []string {
	t.Helper()
	_, line, ok := strings.Cut(text, mark)
	if !ok {
		t.Fatalf("%q is not in %q", mark, text)
	}
	line, _, _ = strings.Cut(line, "\n")
	return strings.Fields(line)
}

func retryOfLive(t *testing.T, s *stage) Result {
	return onHeldTask("worker start --worktree path:/ --agent sh --retry-of "+s.solo().worker.DispatchId+" --task")(t, s)
}

func startOfPending(t *testing.T, s *stage) Result {
	c := s.solo().run
	waits := get[api.TaskResult](t, c.Caller, "task", "create", "--run", c.Run, "--spec", "x", "--deps", c.Task("first")).Task.TaskId
	return c.json("worker", "start", "--worktree", "path:/", "--agent", "sh", "--task", waits)
}

func retryOfNone(t *testing.T, s *stage) Result {
	return onTask("--worktree path:/ --agent sh --retry-of "+s.solo().worker.DispatchId)(t, s)
}

// runRequired needs a hub of its own: the newest Run is proposed, and used.
func runRequired(t *testing.T, _ *stage) printed {
	h := StartHub(t, "mac")
	h.NewRun("the newest")
	return printed{by: h.Caller(), next: h.Caller().json("task", "list").nextCommands(t)}
}

// noRunYet needs a hub of its own too.
func noRunYet(t *testing.T, _ *stage) printed {
	h := StartHub(t, "mac")
	c := h.Caller("WAVEHUB_CONSUMER_FILE=" + filepath.Join(t.TempDir(), "consumer"))
	latest := []string{"run", "use", "--latest"}
	return printed{by: c, next: c.json(latest...).nextCommands(t), cured: latest}
}

func noChildYet(t *testing.T, s *stage) printed {
	w, _ := s.solo().run.chief(t, s.solo().Hub)
	list := []string{"task", "list"}
	return printed{by: w.Caller(), next: w.Caller().json(list...).nextCommands(t), cured: list}
}

func secondChild(t *testing.T, s *stage) printed {
	w, _ := s.solo().run.chief(t, s.solo().Hub)
	create := []string{"run", "create", "--objective", "parts"}
	get[api.RunBound](t, w.Caller(), create...)
	return printed{by: w.Caller(), next: w.Caller().json(create...).nextCommands(t)}
}

func twoMailboxes(t *testing.T, s *stage) printed {
	w, _ := s.solo().run.chief(t, s.solo().Hub)
	get[api.RunBound](t, w.Caller(), "run", "create", "--objective", "parts")
	return printed{by: w.Caller(), next: w.Caller().json("check", "--wait").nextCommands(t)}
}

func alreadyBound(t *testing.T, s *stage) printed {
	c := s.solo().spoilt(t, inTerminal7)
	get[api.RunBound](t, c, "run", "create", "--objective", "one", "--bind")
	return printed{by: c, next: c.json("run", "create", "--objective", "two").nextCommands(t)}
}

func consumerRequired(t *testing.T, s *stage) printed {
	mine, other := s.solo().NewRun("mine"), s.solo().NewRun("another's")
	refused := []string{"check", "--run", other.Run}
	return printed{by: mine.Caller, next: mine.json(refused...).nextCommands(t), cured: refused}
}

func fencedConsumer(t *testing.T, s *stage) printed {
	old := s.solo().NewRun("fenced")
	get[api.RunBound](t, s.solo().Caller(), "run", "use", old.Run)
	return printed{by: old.Caller, next: old.json("check").nextCommands(t), cured: []string{"check"}}
}

// tokenTaken repeats a request whose token another consumer has fenced since.
func tokenTaken(t *testing.T, s *stage) printed {
	file, key := filepath.Join(t.TempDir(), "it's a file"), id.New("req_")
	c := s.solo().Caller("WAVEHUB_CONSUMER_FILE=" + file)
	create := []string{"run", "create", "--objective", "taken", "--bind", "--consumer-file", file, "--retry-request", key}
	run := get[api.RunBound](t, s.solo().Caller(), create...).Run.RunId
	get[api.RunBound](t, s.solo().Caller(), "run", "use", run)
	return printed{by: c, next: s.solo().Caller().json(create...).nextCommands(t), cured: []string{"check"}}
}

func mailboxAmbiguous(t *testing.T, s *stage) printed {
	c := s.solo().worker.Caller()
	c.env = append(c.env, s.solo().run.env...)
	send(t, s.solo().run, "status", "for the Run")
	return printed{by: c, next: c.json("check").nextCommands(t)}
}

// batch prints for people how to acknowledge it.
func batch(t *testing.T, s *stage) printed {
	run := s.solo().NewRun("a batch")
	send(t, run, "status", "one")
	c := s.solo().Caller("WAVEHUB_CONSUMER=" + run.Token)
	r := c.CLI("check", "--run", run.Run)
	return printed{by: c, next: [][]string{printedAfter(t, r.Stdout, "acknowledge with: ")}}
}

// askTimedOut prints the command that waits on before the wait and behind it,
// there for programs and for people.
func askTimedOut(t *testing.T, s *stage) printed {
	w, run := s.solo().worker, s.solo().run
	ask := []string{"ask", "--question", "Go on?", "--timeout", "1ms"}
	r, text := w.Caller().json(ask...), w.Caller().CLI(ask...).Stdout
	out := decode[struct {
		Message string   `json:"message_id"`
		Resume  []string `json:"resume_command"`
	}](t, r.Stdout)
	return printed{
		by: w.Caller(), next: [][]string{printedAfter(t, r.Stderr, "resume with: "), out.Resume, printedAfter(t, text, "resume with: ")},
		during: func(t *testing.T) { get[api.SendResult](t, run.Caller, "reply", "--id", out.Message, "--body", "yes") },
	}
}

func failedStart(t *testing.T, s *stage) printed {
	r := onTask("--worktree path:/ --agent broken")(t, s)
	receipt := decode[api.StartReceipt](t, r.Stdout)
	if r.Code != 1 || receipt.State != "failed" {
		t.Fatalf("exit %d %s", r.Code, r.Stdout)
	}
	return printed{by: s.solo().run.Caller, next: receipt.NextCommands}
}

func unboundRun(t *testing.T, s *stage) printed {
	c := s.solo().Caller()
	r := c.CLI("run", "create", "--objective", "unbound", "--no-bind")
	return printed{by: c, next: [][]string{printedAfter(t, r.Stdout, "become it with: ")}}
}

// TestAWorkerIsOfferedItsOwnMailboxOnly: a worker's processes have no other
// credential than its own, so the Run's mailbox is not proposed to them.
func TestAWorkerIsOfferedItsOwnMailboxOnly(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run, dir, g := h.NewRun("inside"), t.TempDir(), newGate(t)
	file := func(name string) string { return filepath.Join(dir, name) }
	run.Work("export WAVEHUB_CONSUMER="+run.Token+"\nwavehub check --json 2> err; mv err problem\n"+g.wait()+"sh ./next; echo $? > err; mv err code\n",
		"--worktree", "path:"+dir, "--agent", "sh")
	eventually(t, "the problem is there", 20*time.Second, func() bool { return exists(file("problem")) })
	text, err := os.ReadFile(file("problem"))
	must(t, err)
	p := decode[api.Problem](t, string(text))
	if p.Code != "mailbox_ambiguous" || len(p.NextCommands) != 1 {
		t.Fatalf("the problem is %+v", p)
	}
	must(t, os.WriteFile(file("next"), []byte(strings.Join(p.NextCommands[0], " ")), 0o600))
	g.open(t, 1)
	eventually(t, "the command has run", 20*time.Second, func() bool { return exists(file("code")) })
	if code, err := os.ReadFile(file("code")); err != nil || string(code) != "0\n" {
		t.Errorf("%q exits %q %v", p.NextCommands[0], code, err)
	}
}
