package work_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/work"
)

// verifySteps is how many commits looking into a report takes: changes, run
// begun, process, result, release.
const verifySteps = 5

// TestAcceptance_Q05_VerificationKilledAtEachStage: the hub dies before or after
// each commit while it looks into a held report, whose home is here or a peer.
// The next hub goes on, and lets the report go exactly once.
// Invariants 11 and 12.
func TestAcceptance_Q05_VerificationKilledAtEachStage(t *testing.T) {
	for _, remote := range []bool{false, true} {
		for _, after := range []bool{false, true} {
			for n := 1; n <= verifySteps; n++ {
				t.Run(fmt.Sprintf("remote=%v, commit %d, after=%v", remote, n, after), func(t *testing.T) {
					killedVerification(t, n, after, remote)
				})
			}
		}
	}
}

// The steps above are all that there are.
func TestAVerificationTakesItsSteps(t *testing.T) {
	c := newChecked(t, runPasses)
	s, stop := c.hubThatStops(c.store)
	o := c.own(t, s, false)
	stop()
	c.report(o.task, o.id, hub.OutcomeSucceeded, "did it")
	f := &frozen{Store: c.store, left: verifySteps + 1, died: make(chan struct{}), never: make(chan struct{})}
	t.Cleanup(func() { close(f.never) })
	c.hub(f)
	c.awaits(o.id, hub.Succeeded)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left != 1 {
		t.Errorf("it took %d commits, not %d", verifySteps+1-f.left, verifySteps)
	}
}

// owned is a Dispatch at its owner, "" being the home of its own.
type owned struct {
	home hub.PeerID
	task hub.TaskID
	id   hub.DispatchID
}

func killedVerification(t *testing.T, n int, after, remote bool) {
	c := newChecked(t, runPasses)
	s, stop := c.hubThatStops(c.store)
	o := c.own(t, s, remote)
	stop() // so that the one that dies looks into the report
	c.report(o.task, o.id, hub.OutcomeSucceeded, "did it")
	c.report(o.task, o.id, hub.OutcomeFailed, "or not")
	f := &frozen{Store: c.store, left: n, after: after, died: make(chan struct{}), never: make(chan struct{})}
	t.Cleanup(func() { close(f.never) })
	c.hub(f)
	select {
	case <-f.died:
	case <-time.After(20 * time.Second):
		t.Fatalf("there is no commit %d", n)
	}
	c.hub(c.store)
	if !remote {
		c.awaits(o.id, hub.Succeeded)
	}
	c.gone(t, o)
	c.judgeRelease(t, o)
	if runs := len(c.v.runs()); runs < 1 || runs > 2 {
		t.Errorf("%d runs", runs)
	}
}

// own begins a worker for this hub's own Task or for a peer's.
func (c checked) own(t *testing.T, s *work.Service, remote bool) owned {
	if !remote {
		task := c.taskOf(hub.Task{VerifyCmd: "make check", Verify: hub.VerifyRequired, WriteScope: []string{"src"}})
		return owned{"", task, c.begin(s, task, "")}
	}
	home := c.addPeer(hub.RoleHome)
	body := hub.PeerStart{
		Dispatch: hub.NewDispatchID(), Task: hub.NewTaskID(), Run: hub.NewRunID(), Contract: hub.ContractFederation, StoreID: "store_1",
		Spec:   hub.StartSpec{Worktree: hub.WorktreeNewTopLevel, Repo: "demo", Name: "one", Agent: "sh"},
		Checks: hub.Checks{VerifyCmd: "make check", Verify: hub.VerifyRequired, WriteScope: []string{"./src"}},
	}
	q, err := receipt.New(hub.Principal{Kind: hub.PeerKey, ID: home.Lineage, Credential: string(home.ID)}, "", "peer.start", body)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := s.StartFor(t.Context(), q, home, body); err != nil || r.State != hub.StartReady {
		t.Fatalf("%+v %v", r, err)
	}
	return owned{home.ID, body.Task, body.Dispatch}
}

// gone waits until nothing is held any more.
func (c checked) gone(t *testing.T, o owned) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; {
		if _, open := c.hold(o.home, o.id); !open {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the report is still held")
		}
	}
}

// judgeRelease: one report with its findings, and the other one behind it.
func (c checked) judgeRelease(t *testing.T, o owned) {
	t.Helper()
	var ms []hub.Message
	if o.home == "" {
		ms, _ = c.mail(o.task, hub.TypeWorkerDone)
	} else {
		for _, it := range c.queued(t, o) {
			var m hub.Message
			if err := json.Unmarshal(it.Payload, &m); err != nil {
				t.Fatal(err)
			}
			ms = append(ms, m)
		}
	}
	if len(ms) != 2 || ms[0].Body != "did it" || ms[1].Body != "or not" {
		t.Fatalf("%d reports were let go: %+v", len(ms), ms)
	}
	var r, second hub.Report
	if err := json.Unmarshal(ms[0].Payload, &r); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(ms[1].Payload, &second); err != nil {
		t.Fatal(err)
	}
	if r.VerifyResult != hub.VerifyPassed || r.VerifiedBy != hub.VerifiedByHub || r.ScopeCheck != hub.ScopeClean || r.Verification.Attempts > 2 {
		t.Errorf("the findings are %+v", r.Findings)
	}
	if second.VerifiedBy == hub.VerifiedByHub {
		t.Errorf("what came behind has findings: %+v", second.Findings)
	}
}

func (c checked) queued(t *testing.T, o owned) (items []hub.Item) {
	t.Helper()
	c.look(func(rx store.Rx) (err error) {
		items, err = rx.QueueItems(store.QueueKey{Peer: o.home, Dispatch: o.id, Direction: hub.ToHome}, 1, 1<<20)
		return err
	})
	return items
}

// The exit record of a verification outlives the hub: what ended meanwhile is
// not run again.
func TestAVerificationThatEndsWhileTheHubIsDown(t *testing.T) {
	c := newChecked(t, runHangs)
	s, stop := c.hubThatStops(c.store)
	o := c.own(t, s, false)
	c.report(o.task, o.id, hub.OutcomeSucceeded, "did it")
	c.awaitRun()
	for h, _ := c.hold("", o.id); h.Process == nil; h, _ = c.hold("", o.id) {
	}
	stop()
	c.endRun(t, 7)
	c.hub(c.store)
	d := c.awaits(o.id, hub.Failed)
	if v := d.Findings.Verification; d.Reason != hub.ReasonVerificationFailed || *v.ExitCode != 7 || v.Attempts != 1 || len(c.v.runs()) != 1 {
		t.Errorf("%s, %+v, %d runs", d.Reason, v, len(c.v.runs()))
	}
}

// A peer's worker that ends while its report is held: the exit is queued behind
// the report. A fence of the peer lets both go at once.
func TestAPeersHeldReport(t *testing.T) {
	for _, fenced := range []bool{false, true} {
		c := newChecked(t, runHangs)
		s := c.hub(c.store)
		o := c.own(t, s, true)
		c.report(o.task, o.id, hub.OutcomeSucceeded, "did it")
		c.awaitRun()
		c.endWorker(t, o.home, o.id, 1)
		if items := c.queued(t, o); len(items) != 0 {
			t.Fatalf("before it is let go: %+v", items)
		}
		if fenced {
			peerStops(t, s, c, o)
		} else {
			c.endRun(t, 0)
		}
		c.gone(t, o)
		items := c.queued(t, o)
		if len(items) < 2 || items[0].Kind != hub.ItemMessage || items[1].Kind != hub.ItemExit || fenced != (len(items) == 3) {
			t.Errorf("fenced %v: queued are %+v", fenced, items)
		}
	}
}

func peerStops(t *testing.T, s *work.Service, c checked, o owned) {
	t.Helper()
	var home hub.Peer
	c.look(func(rx store.Rx) (err error) { home, err = rx.Peer(o.home); return err })
	in := hub.PeerStop{StoreID: "store_1", Epoch: 1}
	q, err := receipt.New(hub.Principal{Kind: hub.PeerKey, ID: home.Lineage, Credential: string(home.ID)}, "", "peer.stop", in)
	if err != nil {
		t.Fatal(err)
	}
	if ev, err := s.StopFor(context.Background(), q, home, o.id, in); err != nil || !ev.Proved {
		t.Errorf("the stop: %+v %v", ev, err)
	}
	p, _ := c.terms.find(c.v.runs()[0].Terminal)
	select {
	case <-p.exited:
	default:
		t.Error("a proven stop left the verification running")
	}
}

// A start of a peer whose checks no hub of ours would send is refused without
// an effect.
func TestAPeersChecksAreChecked(t *testing.T) {
	c := newChecked(t, runPasses)
	s := c.hub(c.store)
	home := c.addPeer(hub.RoleHome)
	for name, bad := range map[string]hub.Checks{
		"path": {WriteScope: []string{"../up"}}, "policy": {VerifyCmd: "x", Verify: "sometimes"}, "notes": {HandoffPath: "/etc/passwd"},
		"time": {VerifyCmd: "x", VerifyTimeoutSecs: -1}, "no command": {Verify: hub.VerifyRequired},
	} {
		body := hub.PeerStart{
			Dispatch: hub.NewDispatchID(), Task: hub.NewTaskID(), Run: hub.NewRunID(), Contract: hub.ContractFederation, StoreID: "store_1",
			Spec: hub.StartSpec{Worktree: hub.WorktreeNewTopLevel, Repo: "demo", Name: "one", Agent: "sh"}, Checks: bad,
		}
		if _, err := s.ProbeFor(t.Context(), home, body); !hub.IsCode(err, hub.CodeInvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if c.terms.launches != 0 {
		t.Errorf("%d launches", c.terms.launches)
	}
}

// With reports kept as history, so is the notice.
func TestAQuietScopeNotice(t *testing.T) {
	c := newChecked(t)
	c.trees.changed = []string{"Makefile"}
	s := c.hub(c.store)
	task := c.taskOf(hub.Task{WriteScope: []string{"src"}})
	in := startInput(task)
	in.Quiet = true
	r, err := s.Start(t.Context(), startRequest(t, "", in), in)
	if err != nil {
		t.Fatal(err)
	}
	c.report(task, r.Dispatch, hub.OutcomeSucceeded, "did it")
	c.awaits(r.Dispatch, hub.Succeeded)
	if ns, _ := c.mail(task, hub.TypeNotice); len(ns) != 1 || !ns[0].History {
		t.Errorf("the notices are %+v", ns)
	}
}
