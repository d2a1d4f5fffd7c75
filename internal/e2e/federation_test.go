//go:build unix

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/id"
	"github.com/wavehub/wavehub/internal/testkit"
	"github.com/wavehub/wavehub/openapi/api"
)

func TestAcceptance_F01_ARemoteStartKeepsTheTruthAtHome(t *testing.T) {
	t.Parallel()
	p := Pairing{Home: StartHub(t, "mac"), Worker: StartHub(t, "windows"), Root: NewRepo(t, map[string]string{"a.txt": "from the repository\n"})}
	Pair(t, p.Home, p.Worker, p.Root, "")
	get[api.RepoResult](t, p.Worker.Caller(), "repo", "add", p.Root, "--name", "demo")
	run := p.Home.NewRun("remote")
	start := run.Work(`cat a.txt; "$WAVEHUB_BIN" send --type status --subject s --body working; `+done+`"$(pwd)"`,
		"--on", "windows", "--repo", "demo", "--worktree", "new-top-level", "--name", "vet", "--agent", "sh")
	if start.Server.Name != "windows" || start.Server.PeerId == nil || count(start.Effects, "worktree") != 1 {
		t.Errorf("the receipt is %+v", start)
	}
	if m := run.Done(start.DispatchId); !strings.HasPrefix(m.Body, p.Worker.Data("worktrees")) || reportOf(m).Outcome != "succeeded" {
		t.Errorf("the report is %+v", m)
	}
	if d := run.Show(start.DispatchId).Dispatch; d.State != "succeeded" || run.State(start.TaskId) != "completed" {
		t.Errorf("the Dispatch at home is %+v", d)
	}
	if text := get[api.OutputPage](t, run.Caller, "worker", "read", start.DispatchId).Terminal.Text; !strings.Contains(text, "from the repository") {
		t.Errorf("the output is %q", text)
	}
	status := get[api.HubStatus](t, p.Worker.Caller(), "status")
	if status.Counts.Runs != 0 || status.Counts.Tasks != 0 {
		t.Errorf("the worker hub has Runs or Tasks: %+v", status.Counts)
	}
	all := get[api.HistoryPage](t, run.Caller, "check", "--all")
	if len(all.Messages) != 2 {
		t.Errorf("%d messages came home, want 2: %+v", len(all.Messages), all.Messages)
	}
}

func TestAcceptance_F02_UnreachableBeforeSend(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	run := p.Home.NewRun("unreachable")
	task := run.Task("true")
	p.Worker.Kill()
	refused(t, run.Caller, "remote_runtime_unavailable", append([]string{"worker", "start", "--task", task}, p.Place()...)...)
	if d := get[api.DispatchPage](t, run.Caller, "worker", "list"); len(d.Dispatches) != 0 || run.State(task) != "ready" {
		t.Errorf("the refusal left %+v, Task %s", d, run.State(task))
	}
	p.Worker.Start()
	run.Done(run.Begin(task, p.Place()...).DispatchId)
}

func TestAcceptance_F02_LostAfterSendIsUnknownAndThenKnown(t *testing.T) {
	t.Parallel()
	p := Pairing{Home: StartHub(t, "home"), Worker: StartHub(t, "worker"), Root: t.TempDir()}
	m := newMuter(t, strings.TrimPrefix(p.Worker.Endpoint().URL, "https://"))
	Pair(t, p.Home, p.Worker, p.Root, m.Addr())
	run := p.Home.NewRun("lost")
	witness, g := filepath.Join(p.Root, "witness"), newGate(t)
	task, key := run.Task("echo ran >> '"+witness+"'; "+g.wait()+done+"once"), id.New("req_")
	m.set(func() bool { return len(p.Worker.spawns()) > 0 })
	args := append([]string{"worker", "start", "--task", task, "--retry-request", key, "--timeout", "60s", "--json"}, p.Place()...)
	call := begin(t, func() (Result, error) { return run.CLI(args...), nil })
	eventually(t, "the worker has started", 30*time.Second, func() bool { return len(p.Worker.spawns()) > 0 && exists(witness) })
	m.cut()
	r := call.get(t, commandLimit).value
	receipt := decode[api.StartReceipt](t, r.Stdout)
	if r.Code != 10 || receipt.State != "outcome_unknown" || run.State(task) != "blocked" {
		t.Fatalf("the lost start: exit %d, %s, Task %s\n%s", r.Code, receipt.State, run.State(task), r.Stderr)
	}
	m.set(func() bool { return false })
	m.cut()
	eventually(t, "the same request returns the owner's receipt", 30*time.Second, func() bool {
		r = run.CLI(args...)
		receipt = decode[api.StartReceipt](t, r.Stdout)
		return r.Code == 0 && receipt.State == "ready"
	})
	if receipt.Stage != "input_accepted" || count(receipt.Effects, "terminal") != 1 {
		t.Errorf("the receipt is %+v", receipt)
	}
	g.open(t, 1)
	run.Done(receipt.DispatchId)
	raw, err := os.ReadFile(witness)
	if err != nil || strings.Count(string(raw), "ran") != 1 {
		t.Errorf("the worker ran %q %v", raw, err)
	}
}

// A report that settles the Dispatch proves that it had started: the request
// whose answer was lost is then answered by that, and not unknown for ever.
func TestAcceptance_F02_AReportAnswersALostStart(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(p Pairing){"cut": func(Pairing) {}, "home killed": func(p Pairing) { p.Home.Restart() }} {
		t.Run(name, func(t *testing.T) { testLostAndReported(t, meanwhile) })
	}
}

func testLostAndReported(t *testing.T, meanwhile func(Pairing)) {
	p := Pairing{Home: StartHub(t, "home"), Worker: StartHub(t, "worker"), Root: t.TempDir()}
	m := newMuter(t, strings.TrimPrefix(p.Worker.Endpoint().URL, "https://"))
	Pair(t, p.Home, p.Worker, p.Root, m.Addr())
	run := p.Home.NewRun("lost and reported")
	witness := filepath.Join(p.Root, "witness")
	task := run.Task(done + "early; echo ran >> '" + witness + "'")
	m.set(func() bool { return len(p.Worker.spawns()) > 0 })
	args := append([]string{"worker", "start", "--task", task, "--retry-request", id.New("req_"), "--timeout", "60s", "--json"}, p.Place()...)
	call := begin(t, func() (Result, error) { return run.CLI(args...), nil })
	eventually(t, "the worker has reported", 30*time.Second, func() bool { return exists(witness) })
	m.cut()
	meanwhile(p)
	if r := call.get(t, commandLimit).value; r.Code != 10 {
		t.Fatalf("the lost start: exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	m.set(func() bool { return false })
	m.cut()
	if done := run.Check("--types", "worker_done"); done.Count != 1 || reportOf(done.Messages[0]).Outcome != "succeeded" {
		t.Fatalf("the report is %+v", done.Messages)
	}
	r := run.CLI(args...)
	receipt := decode[api.StartReceipt](t, r.Stdout)
	// Its Dispatch is ready where the owner's word on the start came before the report.
	known := receipt.DispatchState == "succeeded" || receipt.DispatchState == "ready"
	if r.Code != 0 || receipt.State != "ready" || !known || run.State(task) != "completed" {
		t.Errorf("the same request: exit %d, %s, %s, Task %s", r.Code, receipt.State, receipt.DispatchState, run.State(task))
	}
}

func TestAcceptance_F05_AWorkerFinishesWhileItsHomeIsDown(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	run := p.Home.NewRun("home down")
	w := run.heldWorker(t, p.Worker, p.Place()...)
	p.Home.Kill()
	queued := get[api.SendResult](t, w.Caller(), w.report("succeeded", "while you were away")...)
	if queued.State != "queued" || queued.Verdict != nil {
		t.Errorf("the report is %+v", queued)
	}
	w.gate.open(t, 1)
	eventually(t, "the worker has ended", 20*time.Second, func() bool {
		return exists(p.Worker.Data("terminals", terminalOf(w.StartReceipt), "exit.json"))
	})
	p.Worker.Restart()
	p.Home.Start()
	eventually(t, "the link is up", 20*time.Second, func() bool {
		return get[api.PeerDetail](t, p.Home.Caller(), "peer", "show", "worker").Link.State == "up"
	})
	up := time.Now()
	if m := run.Done(w.DispatchId); m.Body != "while you were away" {
		t.Errorf("the report is %+v", m)
	}
	if took := time.Since(up); took > 5*time.Second {
		t.Errorf("delivered %s after link-up", took)
	}
	if all := get[api.HistoryPage](t, run.Caller, "check", "--all"); len(all.Messages) != 1 {
		t.Errorf("%d messages came", len(all.Messages))
	}
}

func TestAcceptance_F06_AnswersWaitForTheWorkerHub(t *testing.T) {
	t.Parallel()
	p := Pairing{Home: StartHub(t, "home"), Worker: StartHub(t, "worker"), Root: t.TempDir()}
	proxy := newProxy(t, p.Worker)
	Pair(t, p.Home, p.Worker, p.Root, "https://"+proxy.Addr())
	run := p.Home.NewRun("answers")
	w := run.heldWorker(t, p.Worker, p.Place()...)
	asked := get[api.Answer](t, w.Caller(), "ask", "--question", "Which branch?", "--option", "main", "--option", "dev", "--timeout", "100ms")
	if !asked.TimedOut || asked.Answer != nil {
		t.Errorf("the ask is %+v", asked)
	}
	q := run.Check("--types", "question").Messages[0]
	var payload struct {
		Options []string `json:"options"`
	}
	must(t, json.Unmarshal(q.Payload, &payload))
	if q.MessageId != asked.MessageId || len(payload.Options) != 2 {
		t.Errorf("the question is %+v", q)
	}
	p.Worker.Kill()
	proxy.Refuse(true)
	get[api.SendResult](t, run.Caller, "reply", "--id", q.MessageId, "--body", "main")
	get[api.SendResult](t, run.Caller, "send", "--to", "dispatch:"+w.DispatchId, "--type", "guidance", "--subject", "s", "--body", "later")
	refused(t, run.Caller, "answer_conflict", "reply", "--id", q.MessageId, "--body", "dev")
	p.Worker.Start()
	c := w.Client()
	waiting := begin(t, func() (*api.Answer, error) { return c.Answer(t.Context(), q.MessageId, time.Minute) })
	proxy.Refuse(false)
	if got := waiting.get(t, 60*time.Second); got.err != nil || got.value.Answer == nil || *got.value.Answer != "main" {
		t.Errorf("the asker got %+v %v", got.value, got.err)
	}
	mail := get[api.CheckResult](t, w.Caller(), "check", "--wait", "--timeout", "20s", "--types", "guidance")
	guidance := 0
	for _, m := range mail.Messages {
		if m.Type == "guidance" && m.Body == "later" {
			guidance++
		}
	}
	if guidance != 1 {
		t.Errorf("the worker's mail is %+v", mail.Messages)
	}
}

func newProxy(t testing.TB, h *Hub) *testkit.Proxy {
	t.Helper()
	proxy, err := testkit.NewProxy(strings.TrimPrefix(h.Endpoint().URL, "https://"))
	must(t, err)
	t.Cleanup(func() { proxy.Close() })
	return proxy
}

func TestAcceptance_F13_MisplacedStartsAreRefused(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	run := p.Home.NewRun("misplaced")
	task := run.Task("true")
	for _, x := range []struct {
		code string
		args []string
	}{
		{"invalid_argument", []string{"--on", "worker", "--worktree", "current", "--agent", "sh"}},
		{"invalid_argument", []string{"--on", "worker", "--worktree", "new-child", "--name", "x", "--agent", "sh"}},
		{"peer_not_found", []string{"--on", "nobody", "--worktree", "path:" + p.Root, "--agent", "sh"}},
		{"worktree_not_found_on_server", []string{"--on", "worker", "--worktree", "id:" + id.New("wt_"), "--agent", "sh"}},
		{"repo_not_found", []string{"--on", "worker", "--repo", "none", "--worktree", "new-top-level", "--name", "x", "--agent", "sh"}},
		{"repo_not_granted", []string{"--on", "worker", "--worktree", "path:" + t.TempDir(), "--agent", "sh"}},
		{"agent_unconfigured", []string{"--on", "worker", "--worktree", "path:" + p.Root, "--agent", "nobody"}},
	} {
		refused(t, run.Caller, x.code, append([]string{"worker", "start", "--task", task}, x.args...)...)
	}
	if d := get[api.DispatchPage](t, run.Caller, "worker", "list"); len(d.Dispatches) != 0 || run.State(task) != "ready" || len(p.Worker.spawns()) != 0 {
		t.Errorf("a refusal had an effect: %+v", d)
	}
}

// A hub on loopback says so when it invites, and what to do about it.
func TestPeer_AnInviteOfALoopbackHubWarns(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	warnings := get[api.InviteResult](t, h.Caller(), "peer", "invite").Warnings
	if len(warnings) != 1 || !strings.Contains(warnings[0], "wavehub config set listen ") || !strings.Contains(warnings[0], "wavehub serve --listen ") {
		t.Errorf("the warnings are %q", warnings)
	}
	elsewhere := StartHub(t, "linux", withConfig("advertise: ['linux.example:7443']\n"))
	if warnings := get[api.InviteResult](t, elsewhere.Caller(), "peer", "invite").Warnings; len(warnings) != 0 {
		t.Errorf("a hub that others reach by a name warns: %q", warnings)
	}
}

func TestAcceptance_F11_CodesAreUsedOnce(t *testing.T) {
	t.Parallel()
	home, worker := StartHub(t, "home"), StartHub(t, "worker")
	invite := get[api.InviteResult](t, worker.Caller(), "peer", "invite", "--allow-repo", t.TempDir(), "--ttl", "10m")
	add := func(code string) Result {
		c := home.Caller()
		c.stdin = code
		return c.CLI("peer", "add", "worker", worker.Endpoint().URL, "--code-file", "-", "--json")
	}
	code := *invite.Invite.Code
	typo := code[:len(code)-1] + string("23456789"[(strings.IndexByte("23456789", code[len(code)-1])+1)%8])
	if r := add(typo); r.Code != 2 {
		t.Errorf("a typo: exit %d %s", r.Code, r.Stderr)
	}
	if r := add(code); r.Code != 0 {
		t.Fatalf("the right code after a typo: exit %d %s", r.Code, r.Stderr)
	}
	other := StartHub(t, "other")
	c := other.Caller()
	c.stdin = code
	if r := c.CLI("peer", "add", "worker", worker.Endpoint().URL, "--code-file", "-", "--json"); r.Code == 0 {
		t.Error("a code was used twice")
	}
	list := get[api.PeerPage](t, home.Caller(), "peer", "list")
	if len(list.Peers) != 1 || list.Peers[0].Fingerprint != worker.Endpoint().Fingerprint {
		t.Errorf("the peers are %+v", list.Peers)
	}
}

// A link that has long been down is dialled at the end of a growing pause. A
// command that names the peer does not wait for that.
func TestLink_ACommandThatNamesThePeerDialsAtOnce(t *testing.T) {
	t.Parallel()
	p := Pairing{Home: StartHub(t, "home"), Worker: StartHub(t, "worker"), Root: t.TempDir()}
	proxy := newProxy(t, p.Worker)
	Pair(t, p.Home, p.Worker, p.Root, "https://"+proxy.Addr())
	c := p.Home.Client("")
	state := func() string {
		d, err := c.Peer(t.Context(), "worker")
		must(t, err)
		return string(d.Link.State)
	}
	eventually(t, "the link is up", 20*time.Second, func() bool { return state() == "up" })
	proxy.Refuse(true)
	proxy.CutAll()
	<-time.After(7 * time.Second) // the pause has grown to 4 s and more
	proxy.Refuse(false)
	eventually(t, "a command has the link dialled", 1500*time.Millisecond, func() bool { return state() == "up" })
}
