//go:build unix

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/capfile"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/spool"
	"github.com/wavehub/wavehub/openapi/api"
)

// spooling is the script of a worker that reports three times and then its end,
// notes how each command ended, and exits with a failure.
func spooling(g gate, note string) string {
	var script strings.Builder
	script.WriteString(g.wait())
	for _, text := range []string{"progress one", "progress two", "progress three", "done four"} {
		fmt.Fprintf(&script, "\"$WAVEHUB_BIN\" %s --json >> '%s'; echo \"exit $?\" >> '%s'\n", text, note, note)
	}
	return script.String() + "exit 3"
}

// wasSpooled reads the note: every command exited 0 with state spooled.
func wasSpooled(t testing.TB, note string) {
	t.Helper()
	raw, err := os.ReadFile(note)
	must(t, err)
	spooled, ok := 0, 0
	for line := range strings.Lines(string(raw)) {
		var out api.SendResult
		switch {
		case line == "exit 0\n":
			ok++
		case json.Unmarshal([]byte(line), &out) == nil && out.State == "spooled" && out.Verdict == nil && strings.HasPrefix(out.Mutation.RequestId, "req_"):
			spooled++
		}
	}
	if spooled != 4 || ok != 4 {
		t.Fatalf("%d were spooled and %d exited 0:\n%s", spooled, ok, raw)
	}
}

// cameHome reads all mail of the Run: each message once, in its order, and the
// report, which settled before the exit.
func cameHome(t testing.TB, run Coordinator, start api.StartReceipt) {
	t.Helper()
	if r := reportOf(run.Done(start.DispatchId)); r.Outcome != "succeeded" || r.Evidence != "report" {
		t.Errorf("the report is %+v", r)
	}
	var bodies []string
	for _, m := range get[api.HistoryPage](t, run.Caller, "check", "--all").Messages {
		bodies = append(bodies, m.Body)
	}
	if got := strings.Join(bodies, " "); got != "one two three four" {
		t.Errorf("what came home is %q", got)
	}
	d := run.Show(start.DispatchId).Dispatch
	if d.State != "succeeded" || d.Evidence == nil || *d.Evidence != "report" || run.State(start.TaskId) != "completed" {
		t.Errorf("the Dispatch is %+v", d)
	}
}

func spoolOf(owner *Hub, start api.StartReceipt) string {
	return owner.Data("dispatches", terminalOf(start), "spool-"+start.DispatchId+".jsonl")
}

func testSpooled(t *testing.T, home, owner *Hub, place ...string) {
	run, g, note := home.NewRun("spooled"), newGate(t), filepath.Join(t.TempDir(), "note")
	start := run.Work(spooling(g, note), place...)
	owner.Kill()
	g.open(t, 1)
	eventually(t, "the worker has ended", 30*time.Second, func() bool {
		return exists(owner.Data("terminals", terminalOf(start), "exit.json"))
	})
	wasSpooled(t, note)
	if !exists(spoolOf(owner, start)) {
		t.Fatal("the spool is not beside the capability")
	}
	owner.Start()
	cameHome(t, run, start)
	eventually(t, "neither spool nor mark is left", 10*time.Second, func() bool {
		marks, err := os.ReadDir(owner.Data("dispatches", "spooled"))
		must(t, err)
		return !exists(spoolOf(owner, start)) && len(marks) == 0
	})
}

func TestAcceptance_F17_AWorkerReportsWhileItsHubIsDown(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	testSpooled(t, h, h)
}

func TestAcceptance_F17_ItsHomeElsewhereHearsIt(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	testSpooled(t, p.Home, p.Worker, p.Place()...)
}

// A hub that is killed again and again while it drains takes each message once
// and in its order.
func TestAcceptance_F17_ADrainCutByKillsLosesNothing(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("cut drains")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed: %d", seed)
	rng, n := rand.New(rand.NewPCG(seed, 17)), 190
	w := run.heldWorker(t, h)
	h.Kill()
	place, err := spool.PlaceOf(w.Cap.Spool)
	must(t, err)
	for i := range n {
		body := fmt.Appendf(nil, `{"type":"status","body":"line %d"}`, i)
		must(t, spool.Append(t.Context(), place, w.Cap.Token, spool.Line{Request: hub.NewRequestID(), Operation: "sendMessage", Body: body}))
	}
	must(t, exitedZero(w.Caller().CLI(w.report("succeeded", "line end")...)))
	cuts := 0
	for range scaled(t, 5, 20, 200) {
		before := h.PID()
		call := begin(t, func() (struct{}, error) { return struct{}{}, h.start() })
		eventually(t, "the hub begins", startLimit, func() bool { return h.PID() != before })
		if awaitDrain(t, place) {
			<-time.After(time.Duration(rng.Int64N(int64(40 * time.Millisecond))))
			cuts++
		}
		h.Kill()
		call.get(t, startLimit) // it may have been killed before it was ready
	}
	t.Logf("kills in a drain: %d", cuts)
	h.Start()
	run.Done(w.DispatchId)
	w.gate.open(t, 1)
	all := get[api.HistoryPage](t, run.Caller, "check", "--all", "--limit", "200").Messages
	for i, m := range all {
		if want := fmt.Sprintf("line %d", i); m.Body != want && (i != n || m.Body != "line end") {
			t.Fatalf("message %d is %q", i, m.Body)
		}
	}
	if len(all) != n+1 || cuts == 0 {
		t.Errorf("%d messages came, want %d, after %d cuts", len(all), n+1, cuts)
	}
}

// awaitDrain waits until somebody has the lock of the spool; false says that there
// is no spool any more.
func awaitDrain(t *testing.T, p spool.Place) (drains bool) {
	t.Helper()
	f, err := os.OpenFile(p.File()+".lock", os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	limit := time.After(startLimit)
	for exists(p.File()) {
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case errors.Is(err, syscall.EWOULDBLOCK):
			return true
		case err != nil:
			t.Fatal(err)
		}
		must(t, syscall.Flock(int(f.Fd()), syscall.LOCK_UN))
		select {
		case <-limit:
			t.Fatal("the spool was not drained")
		case <-time.After(time.Millisecond):
		}
	}
	return false
}

// Two command lines report at once while their hub is killed again and again:
// each command exits 0, and each message comes once, those of one in their order.
func TestAcceptance_F17_TwoReportWhileTheHubIsKilled(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("two reporters")
	w := run.heldWorker(t, h)
	n := scaled(t, 25, 60, 400)
	var ended [2]background[map[string]int]
	for who := range ended {
		ended[who] = begin(t, func() (map[string]int, error) {
			states := map[string]int{}
			for i := range n {
				r := w.Caller().CLI("progress", fmt.Sprintf("%d %d", who, i), "--json")
				if err := exitedZero(r); err != nil {
					return nil, err
				}
				states[string(decode[api.SendResult](t, r.Stdout).State)]++
			}
			return states, nil
		})
	}
	for range scaled(t, 5, 12, 80) {
		<-time.After(100 * time.Millisecond)
		h.Kill()
		<-time.After(50 * time.Millisecond)
		h.Start()
	}
	for _, e := range ended {
		got := e.get(t, commandLimit)
		must(t, got.err)
		t.Logf("states: %v", got.value)
	}
	must(t, exitedZero(w.Caller().CLI(w.report("succeeded", "end")...)))
	run.Done(w.DispatchId)
	var next [2]int
	all := get[api.HistoryPage](t, run.Caller, "check", "--all", "--limit", "200", "--types", "status")
	for {
		for _, m := range all.Messages {
			var who, i int
			if _, err := fmt.Sscanf(m.Body, "%d %d", &who, &i); err != nil || i != next[who] {
				t.Fatalf("%q came, awaited was %d", m.Body, next[who])
			}
			next[who]++
		}
		if all.NextCursor == nil {
			break
		}
		all = get[api.HistoryPage](t, run.Caller, "check", "--all", "--limit", "200", "--types", "status", "--cursor", *all.NextCursor)
	}
	if next != [2]int{n, n} {
		t.Errorf("%v came, of %d each", next, n)
	}
	w.gate.open(t, 1)
}

func exitedZero(r Result) error {
	if r.Code != 0 {
		return fmt.Errorf("%q: exit %d\n%s", r.Args, r.Code, r.Stderr)
	}
	return nil
}

// While something lies in the spool, a hub that answers does not let a direct
// message overtake it.
func TestSpool_ADirectMessageDoesNotOvertake(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("order")
	w := run.heldWorker(t, h)
	h.Kill()
	must(t, exitedZero(w.Caller().CLI("progress", "first")))
	h.Start()
	w = w.again(t)
	if exists(w.Cap.Spool) {
		t.Fatal("the start left the spool")
	}
	h.Signal(syscall.SIGSTOP)
	late := w.Caller().CLI("progress", "second", "--timeout", "1s", "--json") // no answer in that time
	h.Signal(syscall.SIGCONT)
	must(t, exitedZero(late))
	if out := decode[api.SendResult](t, late.Stdout); out.State != "spooled" {
		t.Fatalf("the answer is %+v", out)
	}
	c := w.Client()
	if _, err := c.SendBatch(t.Context(), []api.MessageSend{{Type: "status", Body: "third"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Send(t.Context(), api.MessageSend{Type: "status", Body: "fourth"}); err != nil {
		t.Fatal(err)
	}
	var bodies []string
	for _, m := range get[api.HistoryPage](t, run.Caller, "check", "--all").Messages {
		bodies = append(bodies, m.Body)
	}
	if got := strings.Join(bodies, " "); got != "first second third fourth" {
		t.Errorf("the order is %q", got)
	}
	h.Signal(syscall.SIGSTOP)
	late = w.Caller().CLI("progress", "fifth", "--timeout", "1s", "--json")
	h.Signal(syscall.SIGCONT)
	must(t, exitedZero(late))
	eventually(t, "the spool is drained unasked", 12*time.Second, func() bool {
		all := get[api.HistoryPage](t, run.Caller, "check", "--all").Messages
		return len(all) == 5 && all[4].Body == "fifth" && !exists(w.Cap.Spool)
	})
	w.gate.open(t, 1)
}

// again reads the capability of a worker whose hub was started again.
func (w Worker) again(t testing.TB) Worker {
	t.Helper()
	raw, err := os.ReadFile(w.File)
	must(t, err)
	w.Cap, err = capfile.Decode(raw)
	must(t, err)
	return w
}

// What a fenced worker spooled is answered as a direct message would be: a report
// is stale history, any other message is refused, and its Run is told once.
func TestSpool_RefusedLinesAreKeptAndTold(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	for _, c := range []struct {
		owner *Hub
		place []string
	}{{p.Home, nil}, {p.Worker, p.Place()}} {
		testRefusedLines(t, p.Home.NewRun("refused"), c.owner, c.place...)
	}
}

func testRefusedLines(t *testing.T, run Coordinator, owner *Hub, place ...string) {
	w := run.heldWorker(t, owner, place...)
	get[api.StopResult](t, run.Caller, "worker", "stop", w.DispatchId)
	owner.Kill()
	must(t, exitedZero(w.Caller().CLI("progress", "too late")))
	must(t, exitedZero(w.Caller().CLI(w.report("succeeded", "too late as well")...)))
	raw, err := os.ReadFile(w.Cap.Spool)
	must(t, err)
	if strings.Contains(string(raw), w.Cap.Token) {
		t.Error("the capability is in the spool")
	}
	must(t, os.WriteFile(w.Cap.Spool, []byte(string(raw)+"rubbish\n"), 0o600))
	owner.Start()
	var notices []api.Message
	eventually(t, "the Run is told of both", 20*time.Second, func() bool {
		notices = nil
		for _, m := range get[api.HistoryPage](t, run.Caller, "check", "--all", "--run", run.Run).Messages {
			if m.Type == "notice" {
				notices = append(notices, m)
			}
		}
		return len(notices) == 2
	})
	var codes []string
	for _, m := range notices {
		var n struct{ Kind, Code, File string }
		must(t, json.Unmarshal(m.Payload, &n))
		kept, err := os.Stat(filepath.Join(filepath.Dir(w.Cap.Spool), "rejected", n.File))
		if err != nil || n.Kind != "spool_rejected" || kept.Mode().Perm() != 0o600 {
			t.Errorf("the notice is %s %v", m.Payload, err)
		}
		codes = append(codes, n.Code)
	}
	if got := strings.Join(codes, " "); got != "dispatch_inactive invalid_json" {
		t.Errorf("the codes are %s", got)
	}
	if s := run.Show(w.DispatchId).Dispatch.State; s != "stopped" {
		t.Errorf("the Dispatch is %s", s)
	}
}

// A spool that cannot be written is no success: exit 6 when nothing was sent.
func TestSpool_AFolderThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("no spool")
	w := run.heldWorker(t, h)
	must(t, os.Mkdir(w.Cap.Spool+".lock", 0o700)) // nobody gets the lock, whoever runs this
	h.Kill()
	if p := refused(t, w.Caller(), "hub_unreachable", "progress", "lost"); !strings.Contains(p.Detail, "spooled") || p.RequestId == "" {
		t.Errorf("the problem is %+v", p)
	}
	if exists(w.Cap.Spool) {
		t.Error("something was spooled")
	}
	must(t, os.Remove(w.Cap.Spool+".lock"))
	h.Start()
	w.gate.open(t, 1)
	run.Done(w.DispatchId)
}
