package wave

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

func codes(fs []hub.Finding) (out []string) {
	for _, f := range fs {
		out = append(out, f.Code+" "+strings.Join(f.Tasks, ","))
	}
	return out
}

func (w *world) plan(in PlanInput) hub.Plan {
	w.Helper()
	if in.Policy.Order == "" {
		in.Policy = hub.DefaultWavePolicy(90)
	}
	p, _, err := w.Plan(w.Context(), in)
	if err != nil {
		w.Fatal(err)
	}
	return p
}

// What this hub knows and what its peers say becomes findings, each for all tasks
// that it is the same for; what cannot be known yet is none.
func TestFacts(t *testing.T) {
	w := newWorld(t)
	w.peers.answering(func(_ context.Context, in hub.PeerStart) error {
		switch {
		case in.Spec.Worker == "gone":
			return hub.Errorf(hub.CodeWorkerNotFound, "no identity")
		case in.Spec.Agent == "down":
			return hub.Errorf(hub.CodeRemoteRuntimeUnavailable, "no link")
		case in.Spec.Agent == "full":
			return hub.Errorf(hub.CodeWorkerLimit, "enough")
		case in.Spec.Agent == "odd":
			return errors.New("what")
		case in.Spec.Repo == "theirs":
			return hub.Errorf(hub.CodeRepoNotGranted, "outside")
		case in.Spec.Worktree == "id:wt_1":
			return hub.Errorf(hub.CodeWorktreeNotFoundOnServer, "no worktree")
		}
		return nil
	})
	worker := func(token, name string) hub.WaveEntry {
		return hub.WaveEntry{Token: token, Goal: "x", Worker: name, WriteScope: []string{}}
	}
	old := func(agent string) hub.WaveStart { return hub.WaveStart{Agent: agent, Worktree: "path:/demo"} }
	fresh := func(repo string) hub.WaveStart {
		return hub.WaveStart{Agent: "sh", Worktree: "new-top-level", Name: "n", Repo: repo}
	}
	unnamed := func(repo string) hub.WaveStart {
		return hub.WaveStart{Agent: "sh", Worktree: "new-top-level", Repo: repo}
	}
	there := func(agent string) hub.WaveStart {
		return hub.WaveStart{On: "windows", Agent: agent, Worktree: "id:wt_2"}
	}
	theirs := fresh("theirs")
	theirs.On = "windows"
	got := w.plan(PlanInput{Tasks: []hub.WaveEntry{
		worker("t1", "w-1"), worker("t2", "nobody"), worker("t3", "w-2"), worker("t4", "nobody"),
		startOf("t5", old("sh")), startOf("t6", old("none")), startOf("t7", old("ghost")),
		startOf("t8", fresh("demo")), startOf("t9", fresh("absent")), startOf("t10", fresh("plain")), startOf("t11", fresh("")),
		worker("t12", "w-1@windows"), worker("t13", "gone@windows"), worker("t14", "w-1@mars"), worker("t15", "w-1@mac"),
		startOf("t16", there("down")), startOf("t17", there("full")), startOf("t18", there("odd")), startOf("t19", theirs),
		startOf("t20", hub.WaveStart{On: "windows", Agent: "sh", Worktree: "id:wt_1"}), startOf("t21", there("down")),
		startOf("t22", unnamed("absent")), startOf("t23", unnamed("")), startOf("t24", unnamed("demo")),
	}})
	equal(t, []string{
		"worker_not_found t2,t4", "worker_not_found t3", "agent_unconfigured t6", "agent_unconfigured t7", "repo_not_found t9,t22",
		"placement_invalid t10", "placement_invalid t11,t23", "worker_not_found t13", "peer_not_found t14", "peer_not_found t15", "repo_not_found t19",
	}, codes(got.Findings))
	equal(t, []string{"unchecked t16,t21", "unchecked t17", "unchecked t18"}, codes(got.Warnings))
	if got.Valid {
		t.Error("the plan is valid")
	}
	if n := len(w.peers.specs()); n != 7 {
		t.Errorf("the peer was asked %d questions, want 7", n)
	}
	for _, f := range append(got.Findings, got.Warnings...) {
		if f.Detail == "" {
			t.Errorf("%s of %v says nothing", f.Code, f.Tasks)
		}
	}
	w.store.updates.take()
	w.nothingStaged(w.store.uids()...)
}

// At most four questions at once, 64 in all, and no longer than the limit.
func TestPeersAreAskedWithinBounds(t *testing.T) {
	var asked []*answer
	for i := range factsMost + 10 {
		asked = append(asked, &answer{question: question{on: "p", worker: strconv.Itoa(i)}, tasks: []string{"t"}})
	}
	asked = append(asked, &answer{question: question{worker: "here"}, err: errTooSlow})
	var mu sync.Mutex
	now, most, all := 0, 0, 0
	full := make(chan struct{})
	askPeers(t.Context(), func(ctx context.Context, _ string, _ hub.StartSpec) error {
		mu.Lock()
		now, all = now+1, all+1
		most = max(most, now)
		if now == factsAtOnce && most == now && all == factsAtOnce {
			close(full)
		}
		mu.Unlock()
		select {
		case <-full:
		case <-ctx.Done():
		}
		mu.Lock()
		now--
		mu.Unlock()
		return nil
	}, asked, time.Minute)
	if most != factsAtOnce || all != factsMost {
		t.Errorf("%d at once and %d in all", most, all)
	}
	for i, a := range asked[:factsMost+10] {
		if want := i >= factsMost; errors.Is(a.err, errNotAsked) != want {
			t.Errorf("question %d: %v", i, a.err)
		}
	}
	if !errors.Is(asked[factsMost+10].err, errTooSlow) {
		t.Error("a question of this hub was asked of a peer")
	}
}

func TestSlowPeersAreUnchecked(t *testing.T) {
	var asked []*answer
	for i := range 10 {
		asked = append(asked, &answer{question: question{on: "p", worker: strconv.Itoa(i)}})
	}
	askPeers(t.Context(), func(ctx context.Context, _ string, _ hub.StartSpec) error {
		<-ctx.Done()
		return ctx.Err()
	}, asked, time.Millisecond)
	for i, a := range asked {
		if !errors.Is(a.err, errTooSlow) || a.code() != hub.WarnUnchecked {
			t.Errorf("question %d: %v", i, a.err)
		}
	}
}

// Who goes away is not told of findings.
func TestPlanEndsWithItsCaller(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	w.peers.answering(func(ctx context.Context, _ hub.PeerStart) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	e := entry("a")
	e.Worker = "w-1@windows"
	if _, _, err := w.Plan(ctx, w.input("", e).Plan); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestTooManyTasksAreRefusedFirst(t *testing.T) {
	w := newWorld(t)
	es := make([]hub.WaveEntry, hub.MaxWaveTasks+1)
	for i := range es {
		es[i] = hub.WaveEntry{Token: "t" + strconv.Itoa(i), Goal: "x", Worker: "w-1@windows"}
	}
	_, _, err := w.Plan(t.Context(), PlanInput{Tasks: es, Policy: hub.DefaultWavePolicy(90)})
	refused(t, hub.CodeTooLarge, err)
	if err != nil && !strings.Contains(err.Error(), "20000") {
		t.Errorf("it does not name the limit: %v", err)
	}
	if len(w.peers.specs()) > 0 {
		t.Error("a peer was asked")
	}
}

func TestDefaultsPlaceOnlyWhatIsNotPlaced(t *testing.T) {
	w := newWorld(t)
	d := Defaults{Worker: "w-1"}
	in := PlanInput{Policy: hub.DefaultWavePolicy(90), Defaults: d, Tasks: []hub.WaveEntry{
		{Token: "a", Goal: "x"}, {Token: "b", Goal: "x", Worker: "w-1@windows"}, startOf("c", hub.WaveStart{Agent: "sh", Worktree: "path:/x"}),
	}}
	_, es, err := w.Plan(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, []string{"w-1", "w-1@windows", ""}, []string{es[0].Worker, es[1].Worker, es[2].Worker})
	if in.Tasks[0].Worker != "" {
		t.Error("the caller's tasks were changed")
	}
	in.Defaults = Defaults{Start: &hub.WaveStart{Agent: "sh", Worktree: "path:/x"}}
	if _, es, err = w.Plan(t.Context(), in); err != nil || es[0].Start == nil || es[1].Start != nil || es[0].Start == in.Defaults.Start {
		t.Errorf("%+v: %v", es, err)
	}
	in.Source = &Source{Format: "tasks-json", Text: "[]"}
	_, _, err = w.Plan(t.Context(), in)
	refused(t, hub.CodeInvalidArgument, err)
}

func TestFindingsAreInTheOrderOfTheirTasks(t *testing.T) {
	at := positionsOf([]hub.WaveEntry{{Token: "a"}, {Token: "b"}, {Token: "a"}, {Token: "c"}})
	f := func(code string, line int, tasks ...string) hub.Finding {
		return hub.Finding{Code: code, Line: line, Tasks: tasks}
	}
	got := at.sorted(
		[]hub.Finding{f("1", 1), f("2", 3, "b"), f("3", 4), f("4", 9, "#4")},
		[]hub.Finding{f("5", 0, "a"), f("6", 0, "b", "c"), f("7", 0, "c"), f("8", 0)})
	var order []string
	for _, g := range got {
		order = append(order, g.Code)
	}
	equal(t, "1 5 2 3 6 4 7 8", strings.Join(order, " "))
}
