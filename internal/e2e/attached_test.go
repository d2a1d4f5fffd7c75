//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/id"
	"github.com/wavehub/wavehub/openapi/api"
)

func TestAttached_TheTour(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run, w := h.NewRun("attached"), registered(t, h, "w-1")
	l := w.attach(t, `sh -c "cat > prompt; env | grep ^WAVEHUB_ | sort > vars; stat -c %a \"\$WAVEHUB_DISPATCH_FILE\" > mode; echo all done"`)
	start := get[api.StartReceipt](t, run.Caller, "dispatch", "--task", run.Task("count the files", "--title", "T"), "--to", "worker:w-1")
	if start.State != "ready" || start.Worker != "w-1" || !strings.Contains(start.Preamble, start.DispatchId) || start.Stage != "input_accepted" {
		t.Errorf("the receipt is %+v", start)
	}
	m := run.Done(start.DispatchId)
	if r := reportOf(m); r.Outcome != "succeeded" || r.Evidence != "report" || m.From != "dispatch:"+start.DispatchId || m.Body != "all done\n" {
		t.Errorf("the report is %+v: %q", r, m.Body)
	}
	dir := l.args[6]
	prompt, vars, mode := read(t, dir, "prompt"), read(t, dir, "vars"), read(t, dir, "mode")
	if !strings.HasSuffix(prompt, "The task:\n\ncount the files\n") || !strings.Contains(prompt, start.Preamble) {
		t.Errorf("the prompt is %q", prompt)
	}
	for _, want := range []string{"WAVEHUB_DISPATCH_ID=" + start.DispatchId, "WAVEHUB_TASK_ID=" + start.TaskId, "WAVEHUB_RUN_ID=" + run.Run, "WAVEHUB_SESSION_ID=" + start.DispatchId} {
		if !strings.Contains(vars, want+"\n") {
			t.Errorf("%s is not in the environment:\n%s", want, vars)
		}
	}
	if mode != "600\n" || strings.Contains(vars, w.Token) || strings.Contains(vars, "WAVEHUB_HOME=") {
		t.Errorf("mode %s, environment\n%s", mode, vars)
	}
	if d := run.Show(start.DispatchId); d.Dispatch.State != "succeeded" || d.Observation.Process != "unverifiable" || d.Observation.Lost {
		t.Errorf("shown as %+v", d)
	}
	if code := l.end(syscall.SIGTERM); code != 0 {
		t.Errorf("a drained loop exits %d\n%s", code, l.log)
	}
	if left, err := filepath.Glob(h.Data("attached", w.ID, "*")); err != nil || len(left) != 0 {
		t.Errorf("the loop left %v, %v", left, err)
	}
}

func read(t testing.TB, parts ...string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(parts...))
	must(t, err)
	return string(raw)
}

func TestAttached_TheTurnSpeaksForItself(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run, w, g := h.NewRun("speaks"), registered(t, h, ""), newGate(t)
	w.attach(t, `sh -s`, "--bare", "--parallel", "2")
	held := run.give(t, g.wait()+"true", w) // two at once: messages have to name their Dispatch
	script := `"$WAVEHUB_BIN" send --type status --subject half --body b
` + `a=$("$WAVEHUB_BIN" ask --question "Go on?" --timeout 60s)
"$WAVEHUB_BIN" session set-backend-ctx "$WAVEHUB_SESSION_ID" '{"id":"abc"}'
` + g.wait() + `"$WAVEHUB_BIN" done "it said $a and $(cat "$WAVEHUB_MAIL_FILE")"; exit 1`
	start := run.give(t, script, w)
	asked := run.Check("--types", "question")
	get[api.CheckResult](t, run.Caller, "check", "--ack", *asked.DeliveryId)
	q := asked.Messages[len(asked.Messages)-1]
	if q.Type != "question" || q.From != "dispatch:"+start.DispatchId {
		t.Fatalf("asked: %+v", asked.Messages)
	}
	get[api.SendResult](t, run.Caller, "send", "--to", "dispatch:"+start.DispatchId, "--type", "guidance", "--subject", "hint", "--body", "look at main.go")
	get[api.SendResult](t, run.Caller, "reply", "--id", q.MessageId, "--body", "yes")
	eventually(t, "the session has its backend_ctx", 20*time.Second, func() bool {
		return string(get[api.SessionOnly](t, run.Caller, "session", "get", start.DispatchId).Session.BackendCtx) == `{"id":"abc"}`
	})
	eventually(t, "the guidance has reached the turn", 20*time.Second, func() bool {
		files, _ := filepath.Glob(h.Data("attached", w.ID, "turn-*", "mail.ndjson"))
		for _, f := range files {
			if raw, err := os.ReadFile(f); err == nil && strings.Contains(string(raw), "look at main.go") {
				return true
			}
		}
		return false
	})
	g.open(t, 2)
	if m := run.Done(start.DispatchId); reportOf(m).Outcome != "succeeded" || !strings.Contains(m.Body, "it said yes") || !strings.Contains(m.Body, "look at main.go") {
		t.Errorf("the turn's own report is %+v", m)
	}
	eventually(t, "the other turn has ended too", 20*time.Second, func() bool { return run.Show(held.DispatchId).Dispatch.State == "succeeded" })
	if s := get[api.SessionOnly](t, run.Caller, "session", "get", start.DispatchId).Session; s.Status != "closed" {
		t.Errorf("the session is %+v", s)
	}
}

func TestAttached_AFailingTurnFails(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run, w := h.NewRun("fails"), registered(t, h, "")
	w.attach(t, "sh -s", "--bare")
	m := run.Done(run.give(t, "echo broken >&2; exit 3", w).DispatchId)
	if r := reportOf(m); r.Outcome != "failed" || !strings.Contains(m.Body, "exit status 3") || !strings.Contains(m.Body, "broken") {
		t.Errorf("the report is %+v: %q", r, m.Body)
	}
}

// V9: the session_start of an offline worker waits and arrives once.
func TestAcceptance_V09_AnOfflineWorkerGetsItsSessionStartOnce(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run, w := h.NewRun("offline"), registered(t, h, "")
	start := get[api.StartReceipt](t, run.Caller, "dispatch", "--task", run.Task("echo ran >> once"), "--to", "worker:"+w.Name, "--timeout", "1ms")
	if start.State != "starting" || start.DispatchState != "starting" || start.LastError != nil || len(start.NextCommands) == 0 {
		t.Errorf("the receipt is %+v", start)
	}
	if o := run.Show(start.DispatchId).Observation; *o.WaitingFor != "worker" || o.Process != "unverifiable" || o.Lost {
		t.Errorf("observed: %+v", o)
	}
	h.Restart()
	if d := run.Show(start.DispatchId).Dispatch; d.State != "starting" {
		t.Errorf("after a restart it is %+v", d)
	}
	l := w.attach(t, "sh -s", "--bare")
	if m := run.Done(start.DispatchId); reportOf(m).Outcome != "succeeded" {
		t.Errorf("the report is %+v", m)
	}
	if text := read(t, l.args[6], "once"); text != "ran\n" {
		t.Errorf("the turn ran: %q", text)
	}
}

func TestAttached_StopCancelsTheTurn(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run, w, g := h.NewRun("stop"), registered(t, h, ""), newGate(t)
	l := w.attach(t, "sh -s", "--bare")
	start := run.give(t, "touch began; "+g.wait()+"touch went-on", w)
	eventually(t, "the turn has begun", 20*time.Second, func() bool { return exists(filepath.Join(l.args[6], "began")) })
	waits := get[api.StartReceipt](t, run.Caller, "dispatch", "--task", run.Task("touch went-on"), "--to", "worker:"+w.Name) // taken up, without room
	if out := get[api.StopResult](t, run.Caller, "worker", "stop", waits.DispatchId); out.State != "stopped" || waits.State != "ready" {
		t.Errorf("the stop of a turn that has no room is %+v of %s", out, waits.State)
	}
	out := get[api.StopResult](t, run.Caller, "worker", "stop", start.DispatchId)
	if out.State != "stopped" || out.ProcessAction != "none" {
		t.Errorf("the stop is %+v", out)
	}
	if d := run.Show(start.DispatchId).Dispatch; d.Reason != nil || *d.Outcome != "cancelled" {
		t.Errorf("it is %+v", d)
	}
	next := run.give(t, "true", w)
	run.Done(next.DispatchId)
	if exists(filepath.Join(l.args[6], "went-on")) {
		t.Error("the cancelled turn went on")
	}
}

// What was never handed over is stopped for certain; what was is not, without the
// worker's word.
func TestAttached_StopWithoutTheWorker(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run, w := h.NewRun("stop"), registered(t, h, "")
	queued, seen := run.give(t, "x", w), ""
	if out := get[api.StopResult](t, run.Caller, "worker", "stop", queued.DispatchId); out.State != "stopped" {
		t.Errorf("queued work: %+v", out)
	}
	seen = run.give(t, "y", w).DispatchId
	s := w.startOf(t, seen) // the one that was taken back does not come
	r := run.json("worker", "stop", seen, "--timeout", "200ms")
	if out := decode[api.StopResult](t, r.Stdout); r.Code != 10 || out.State != "stop_unknown" {
		t.Errorf("exit %d, %+v", r.Code, out)
	}
	var cancels int
	for _, m := range w.mail(t) {
		c := decode[hub.SessionControl](t, string(m.Payload))
		if m.Type == "control" && c.Action == "cancel" && string(c.Dispatch) == seen && c.Task == s.Task && c.Session == s.Session {
			cancels++
		}
	}
	if cancels != 1 {
		t.Errorf("%d cancels came", cancels)
	}
	_, err := w.client().Send(t.Context(), api.MessageSend{Type: "worker_done", TaskId: string(s.Task), DispatchId: seen, Outcome: "cancelled", Body: "gave up"})
	must(t, err)
	if d := run.Show(seen).Dispatch; d.State != "stopped" {
		t.Errorf("after the worker's word: %+v", d)
	}
}

func TestAttached_ATurnThatACrashCutIsNotRunAgain(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run, w, g := h.NewRun("crash"), registered(t, h, ""), newGate(t)
	l := w.attach(t, "sh -s", "--bare")
	dir := l.args[6]
	start := run.give(t, "echo $$ > pid; echo ran >> runs; "+g.wait(), w)
	eventually(t, "the turn runs", 20*time.Second, func() bool { return exists(filepath.Join(dir, "runs")) })
	pid := strings.TrimSpace(read(t, dir, "pid"))
	l.end(syscall.SIGKILL)
	l.start()
	m := run.Done(start.DispatchId)
	if r := reportOf(m); r.Outcome != "failed" || !strings.HasPrefix(m.Body, "attach_restarted") {
		t.Errorf("the report is %+v: %q", r, m.Body)
	}
	if runs := read(t, dir, "runs"); runs != "ran\n" {
		t.Errorf("the turn ran: %q", runs)
	}
	if exists("/proc/self") && exists(filepath.Join("/proc", pid, "cwd")) {
		t.Errorf("process %s of the turn that was cut goes on", pid)
	}
}

func TestAttached_ATurnThatACrashCutIsResumed(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run, w, g := h.NewRun("resume"), registered(t, h, ""), newGate(t)
	l := w.attach(t, "sh -s", "--bare", "--resume-exec", `sh -c "cat >/dev/null; echo resumed \$WAVEHUB_DISPATCH_ID"`)
	start := run.give(t, "touch began; "+g.wait(), w)
	eventually(t, "the turn runs", 20*time.Second, func() bool { return exists(filepath.Join(l.args[6], "began")) })
	l.end(syscall.SIGKILL)
	l.start()
	if m := run.Done(start.DispatchId); reportOf(m).Outcome != "succeeded" || m.Body != "resumed "+start.DispatchId+"\n" {
		t.Errorf("the report is %+v", m)
	}
}

func TestAttached_TheHubIsKilledInTheMiddleOfATurn(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run, w, g := h.NewRun("kill"), registered(t, h, ""), newGate(t)
	l := w.attach(t, "sh -s", "--bare")
	start := run.give(t, "echo ran >> runs; "+g.wait()+"echo over", w)
	eventually(t, "the turn runs", 20*time.Second, func() bool { return exists(filepath.Join(l.args[6], "runs")) })
	h.Kill()
	g.open(t, 1) // the turn ends while there is no hub
	h.Start()
	if m := run.Done(start.DispatchId); reportOf(m).Outcome != "succeeded" || m.Body != "over\n" {
		t.Errorf("the report is %+v", m)
	}
	if runs := read(t, l.args[6], "runs"); runs != "ran\n" {
		t.Errorf("the turn ran: %q", runs)
	}
	run.Done(run.give(t, "true", w).DispatchId) // the loop goes on
}

func TestAttached_AnotherLoopFencesTheFirst(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	w := registered(t, h, "")
	first := w.attach(t, "true")
	other := *first
	other.log = &journal{}
	other.start()
	t.Cleanup(func() { other.end(syscall.SIGKILL) })
	select {
	case <-first.done:
		first.done <- nil
	case <-time.After(30 * time.Second):
		t.Fatal("the first loop goes on")
	}
	if code := first.cmd.ProcessState.ExitCode(); code != exitOf(t, "consumer_fenced") || !strings.Contains(first.log.String(), "consumer_fenced") {
		t.Errorf("exit %d\n%s", code, first.log)
	}
}

func TestAttached_RevokeEndsTheLoop(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	w := registered(t, h, "")
	l := w.attach(t, "true")
	get[api.WorkerResult](t, h.Caller(), "worker-identity", "revoke", w.Name)
	select {
	case <-l.done:
		l.done <- nil
	case <-time.After(30 * time.Second):
		t.Fatal("the loop goes on")
	}
	if code := l.cmd.ProcessState.ExitCode(); code != exitOf(t, "invalid_token") {
		t.Errorf("exit %d\n%s", code, l.log)
	}
	registered(t, h, w.Name) // the name is free
}

func TestAttached_DrainOnSigtermFinishesItsTurn(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run, w, g := h.NewRun("drain"), registered(t, h, ""), newGate(t)
	l := w.attach(t, "sh -s", "--bare")
	start := run.give(t, "touch began; "+g.wait()+"echo finished", w)
	eventually(t, "the turn runs", 20*time.Second, func() bool { return exists(filepath.Join(l.args[6], "began")) })
	must(t, l.cmd.Process.Signal(syscall.SIGTERM))
	eventually(t, "it drains", 20*time.Second, func() bool { return strings.Contains(l.log.String(), "draining") })
	left := run.give(t, "echo later", w)
	g.open(t, 1)
	if m := run.Done(start.DispatchId); m.Body != "finished\n" {
		t.Errorf("the report is %+v", m)
	}
	if code := l.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit %d\n%s", code, l.log)
	}
	l.start()
	if m := run.Done(left.DispatchId); m.Body != "later\n" {
		t.Errorf("what was handed back: %+v", m)
	}
}

// An interrupt ends the loop also while there is no hub.
func TestAttached_DrainWithoutAHub(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run, w, g := h.NewRun("drain"), registered(t, h, ""), newGate(t)
	l := w.attach(t, "sh -s", "--bare")
	start := run.give(t, "touch began; "+g.wait(), w)
	eventually(t, "the turn runs", 20*time.Second, func() bool { return exists(filepath.Join(l.args[6], "began")) })
	h.Kill()
	must(t, l.cmd.Process.Signal(syscall.SIGTERM))
	eventually(t, "it drains", 20*time.Second, func() bool { return strings.Contains(l.log.String(), "draining") })
	if code := l.end(syscall.SIGTERM); code != 0 { // the second one: the turn is left
		t.Errorf("exit %d\n%s", code, l.log)
	}
	h.Start()
	l.start()
	if m := run.Done(start.DispatchId); !strings.HasPrefix(m.Body, "attach_restarted") {
		t.Errorf("the report is %+v", m)
	}
}

func TestAttached_NameAtPeer(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	run, w := p.Home.NewRun("at a peer"), registered(t, p.Worker, "w-1")
	at := "worker:w-1@" + p.Worker.Name
	dry := get[api.StartReceipt](t, run.Caller, "dispatch", "--task", run.Task("x"), "--to", at, "--dry-run")
	if !dry.DryRun || dry.DispatchId != "" || len(get[api.DispatchPage](t, run.Caller, "worker", "list").Dispatches) != 0 {
		t.Errorf("the dry run is %+v", dry)
	}
	refused(t, run.Caller, "worker_not_found", "dispatch", "--task", run.Task("x"), "--to", "worker:nobody@"+p.Worker.Name)
	waiting := get[api.StartReceipt](t, run.Caller, "dispatch", "--task", run.Task("echo from $WAVEHUB_RUN_ID"), "--to", at, "--timeout", "200ms")
	if waiting.State != "starting" || waiting.Server.PeerId == nil || waiting.Worker != "w-1" || waiting.Preamble == "" {
		t.Errorf("the receipt is %+v", waiting)
	}
	if o := run.Show(waiting.DispatchId).Observation; *o.WaitingFor != "worker" || o.Link != "up" {
		t.Errorf("observed: %+v", o)
	}
	g := newGate(t)
	l := w.attach(t, "sh -s", "--bare")
	if m := run.Done(waiting.DispatchId); m.Body != "from "+run.Run+"\n" || reportOf(m).Outcome != "succeeded" {
		t.Errorf("the report is %+v", m)
	}
	start := get[api.StartReceipt](t, run.Caller, "dispatch", "--task", run.Task("touch began; "+g.wait()), "--to", at)
	if start.State != "ready" || start.DispatchState != "ready" {
		t.Errorf("the receipt is %+v", start)
	}
	eventually(t, "the turn runs", 20*time.Second, func() bool { return exists(filepath.Join(l.args[6], "began")) })
	get[api.SendResult](t, run.Caller, "send", "--to", "dispatch:"+start.DispatchId, "--type", "guidance", "--subject", "hint", "--body", "over the relay")
	eventually(t, "the guidance has reached the turn", 20*time.Second, func() bool {
		files, _ := filepath.Glob(p.Worker.Data("attached", w.ID, "turn-*", "mail.ndjson"))
		return len(files) == 1 && strings.Contains(read(t, files[0]), "over the relay")
	})
	if out := get[api.StopResult](t, run.Caller, "worker", "stop", start.DispatchId); out.State != "stopped" {
		t.Errorf("the stop is %+v", out)
	}
	run.Done(get[api.StartReceipt](t, run.Caller, "dispatch", "--task", run.Task("true"), "--to", at).DispatchId)
	eventually(t, "the worker has nothing left", 20*time.Second, func() bool {
		return len(get[api.WorkerPage](t, p.Worker.Caller(), "worker-identity", "list").Workers[0].Dispatches) == 0
	})
}

func TestAttached_TheTokenIsDerivedAgain(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	key := id.New("req_")
	register := []string{"worker-identity", "register", "w-1", "--retry-request", key}
	first := get[api.WorkerRegistered](t, h.Caller(), register...)
	h.Restart()
	again := get[api.WorkerRegistered](t, h.Caller(), register...)
	if first.Worker.Token == nil || again.Worker.Token == nil || *again.Worker.Token != *first.Worker.Token || !again.Mutation.Replayed {
		t.Errorf("%+v, then %+v", first, again)
	}
	if raw := read(t, h.Data("wavehub.db")); strings.Contains(raw, *first.Worker.Token) {
		t.Error("the token is in the database")
	}
	get[api.WorkerResult](t, h.Caller(), "worker-identity", "revoke", first.Worker.WorkerId)
	if gone := get[api.WorkerRegistered](t, h.Caller(), register...); gone.Worker.Token != nil || gone.Worker.SecretState != "revoked" {
		t.Errorf("after the revocation %+v", gone)
	}
	refused(t, h.Caller(), "name_taken", "worker-identity", "register", registered(t, h, "").Name)
}
