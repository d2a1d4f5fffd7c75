package wave_test

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// scenario is a wave that comes to one end, whatever happens to the hub.
type scenario struct {
	name   string
	policy func(*hub.WavePolicy)
	tasks  []planned
	orders []hub.WaveOrder
	script script
	cancel func(map[string]hub.WaveRow) bool // when it is cancelled, nil for never
	want   map[string]string                 // statuses, by task
	ends   hub.WaveStatus
}

// TestSnapshotAfterEveryCommit runs waves and copies the store after every commit
// of the run. A hub that comes up on a copy, with the workers as they were then,
// brings the wave to the same end: the same statuses, each attempt's effect once,
// each event once, and none of those that were there lost.
func TestSnapshotAfterEveryCommit(t *testing.T) {
	stride := map[string]int{"full": 1, "medium": 4}[os.Getenv("WAVEHUB_TEST_SCALE")]
	if stride == 0 {
		stride = 16
	}
	for k, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runAndCopy(t, s, stride, k%stride) })
		})
	}
}

// shot is the disk, and what workers had done, at one commit.
type shot struct {
	commit  int
	path    string
	witness map[hub.DispatchID]effect
}

func runAndCopy(t *testing.T, s scenario, stride, offset int) {
	h := newHost(t, s.script)
	p := h.open()
	p.install(workersOf(s.tasks)...)
	p.down()
	commits, shots, dir := 0, []shot{}, t.TempDir()
	h.hook = func(point string) {
		if point != "after_commit" {
			return
		}
		if commits++; commits%stride == offset {
			shots = append(shots, h.copied(dir, commits))
		}
	}
	p = h.up()
	first := p.drive(s)
	p.down()
	checkOutcome(t, s, first)
	for _, x := range shots {
		again := goOn(t, s, x)
		if again.text != first.text {
			t.Errorf("after commit %d of %d it came to\n%s\nand not to\n%s", x.commit, commits, again.text, first.text)
		}
	}
	t.Logf("%d commits, %d copies of the store, each brought to its end", commits, len(shots))
	if len(shots) == 0 {
		t.Error("nothing was copied")
	}
}

// copied is a copy of the committed store, made while its writer waits: the log
// first, whose pages go before those of the file.
func (h *host) copied(dir string, commit int) shot {
	x := shot{commit: commit, path: filepath.Join(dir, fmt.Sprint(commit), "hub.db")}
	if err := os.Mkdir(filepath.Dir(x.path), 0o700); err != nil {
		h.t.Error(err)
	}
	for _, suffix := range []string{"-wal", ""} {
		if err := copyFile(x.path+suffix, h.path+suffix); err != nil {
			h.t.Error(err)
		}
	}
	h.witness.mu.Lock()
	defer h.witness.mu.Unlock()
	x.witness = maps.Clone(h.witness.effects)
	return x
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer out.Close()
	_, err = io.Copy(out, in)
	return err
}

// goOn brings the wave of a copy to its end.
func goOn(t *testing.T, s scenario, x shot) outcome {
	t.Helper()
	h := &host{t: t, path: x.path, witness: newWitness(), script: s.script, absent: map[string]bool{}}
	h.witness.effects = x.witness
	p := h.open()
	before := p.events()
	p.down()
	p = h.up()
	out := p.drive(s)
	after := p.events()
	p.down()
	for i, e := range before {
		if i >= len(after) || after[i].Seq != e.Seq || after[i].Type != e.Type || after[i].Token != e.Token || string(after[i].Data) != string(e.Data) {
			t.Errorf("after commit %d the event %+v is lost", x.commit, e)
		}
	}
	if err := os.RemoveAll(filepath.Dir(x.path)); err != nil {
		t.Error(err)
	}
	return out
}

// The requests of whoever drives the wave, who repeats what has no answer.
const (
	spawnKey  = hub.RequestID("req_00000000000000000000000001")
	cancelKey = hub.RequestID("req_00000000000000000000000002")
)

// drive does what the wave's owner does, from the beginning: what was done is not
// done again.
func (p *process) drive(s scenario) outcome {
	p.t.Helper()
	policy := hub.DefaultWavePolicy(90)
	s.policy(&policy)
	p.create(policy, s.tasks, s.orders...)
	if w, _ := p.now(); !w.Status.Final() {
		if _, err := p.spawn(spawnKey); err != nil {
			p.t.Fatal(err)
		}
	}
	if s.cancel != nil {
		p.until("it is time to cancel", func(w hub.Wave, rows map[string]hub.WaveRow) bool { return w.Ending != nil || s.cancel(rows) })
		if w, _ := p.now(); !w.Status.Final() {
			if err := p.cancel(cancelKey); err != nil {
				p.t.Fatal(err)
			}
		}
	}
	p.final()
	synctest.Wait() // what goes on behind the end
	return p.outcome()
}

// outcome is what a run came to, as text that is compared.
type outcome struct {
	text   string
	status hub.WaveStatus
	tasks  map[string]string
}

func (p *process) outcome() outcome {
	p.t.Helper()
	w, rows := p.now()
	out := outcome{status: w.Status, tasks: map[string]string{}}
	lines := []string{fmt.Sprintf("wave %s (%s) iteration %d", w.Status, reasonOf(w), w.Iteration)}
	byTask := map[string][]string{}
	for _, e := range p.events() {
		byTask[e.Token] = append(byTask[e.Token], e.Type)
	}
	for token, kinds := range byTask {
		lines = append(lines, fmt.Sprintf("events of %q: %s", token, strings.Join(kinds, " ")))
	}
	effects := p.effects()
	for token, r := range rows {
		out.tasks[token] = string(r.EndedAs)
		state := hub.DispatchState("")
		if r.Dispatch != nil {
			state = r.Dispatch.State
		}
		lines = append(lines, fmt.Sprintf("task %s %s %q %s %s attempts %d effects %v result %q", token, r.EndedAs, r.EndedReason, r.State, state, r.Attempts, effects[token], r.Result))
	}
	lines = append(lines, fmt.Sprintf("mail %s", p.mailKinds()))
	slices.Sort(lines)
	out.text = strings.Join(lines, "\n")
	return out
}

// effects are the attempts of each task that had their effect, checked: each is of
// a Dispatch that there is, and each Dispatch had one session_start.
func (p *process) effects() map[string][]int {
	p.t.Helper()
	p.witness.mu.Lock()
	done := maps.Clone(p.witness.effects)
	p.witness.mu.Unlock()
	out := map[string][]int{}
	p.view(func(rx store.Rx) error {
		for id, e := range done {
			if _, err := rx.Dispatch(id); err != nil {
				return err
			}
			if slices.Contains(out[e.token], e.attempt) {
				p.t.Errorf("attempt %d of %s had two effects", e.attempt, e.token)
			}
			out[e.token] = append(out[e.token], e.attempt)
		}
		return nil
	})
	for token := range out {
		slices.Sort(out[token])
	}
	return out
}

// mailKinds are the kinds of what the coordinator is woken by, in order.
func (p *process) mailKinds() (kinds []string) {
	for _, m := range p.inbox() {
		kinds = append(kinds, string(m.Type)+" "+kindOf(p.t, m))
	}
	for _, w := range p.identities() {
		p.view(func(rx store.Rx) error {
			ms, _, err := rx.History(w.ID.Box(), store.HistoryFilter{Limit: 1000, Types: []hub.MessageType{hub.TypeSessionStart}})
			kinds = append(kinds, fmt.Sprintf("%s: %d session_starts", w.Name, len(ms)))
			return err
		})
	}
	return kinds
}

func checkOutcome(t *testing.T, s scenario, o outcome) {
	t.Helper()
	if o.status != s.ends || !maps.Equal(o.tasks, s.want) {
		t.Errorf("the wave is %s with %v, not %s with %v\n%s", o.status, o.tasks, s.ends, s.want, o.text)
	}
}

// graph is the wave of the scenarios: a diamond, two tasks in order, one that is
// tried twice, and one behind which another waits.
func graph() []planned {
	return []planned{
		{token: "root", level: 1, sub: 1},
		{token: "one", level: 1, sub: 1},
		{token: "two", level: 1, sub: 2}, // behind one, by an order
		{token: "solo", level: 1, sub: 1},
		{token: "hang", level: 1, sub: 1},
		{token: "left", deps: []string{"root"}, level: 2}, // tried twice
		{token: "right", deps: []string{"root"}, level: 2},
		{token: "join", deps: []string{"left", "right"}, level: 3},
		{token: "leaf", deps: []string{"one"}, level: 2},
		{token: "last", deps: []string{"join", "two", "leaf", "solo"}, level: 4},
		{token: "later", deps: []string{"last"}, level: 5},
		{token: "latest", deps: []string{"later"}, level: 6},
	}
}

// played is the script of the graph: what is named does something else.
func played(other map[string]deed) script {
	return func(token string, attempt int) deed {
		if d, ok := other[token]; ok {
			return d
		}
		if token == "left" && attempt == 1 {
			return deed{outcome: hub.OutcomeFailed}
		}
		return deed{outcome: hub.OutcomeSucceeded}
	}
}

func scenarios() []scenario {
	order := []hub.WaveOrder{{First: 1, Second: 2, Path: "src"}}
	// all is that every task has completed, but for those that are named.
	all := func(but map[string]string) map[string]string {
		out := map[string]string{}
		for _, x := range graph() {
			out[x.token] = "completed"
		}
		maps.Copy(out, but)
		return out
	}
	hangs, fails := deed{}, deed{outcome: hub.OutcomeFailed}
	return []scenario{
		{
			name: "fail_fast", tasks: graph(), orders: order, ends: hub.WaveFailed,
			policy: func(p *hub.WavePolicy) { p.Retry = 1 },
			script: played(map[string]deed{"hang": hangs, "last": {outcome: hub.OutcomeFailed, after: "hang"}}),
			want:   all(map[string]string{"hang": "cancelled", "last": "failed", "later": "cancelled", "latest": "cancelled"}),
		},
		{
			name: "continue", tasks: graph(), orders: order, ends: hub.WaveFailed,
			policy: func(p *hub.WavePolicy) { p.Retry, p.OnFailure, p.Concurrency = 1, hub.FailContinue, 3 },
			script: played(map[string]deed{"leaf": fails}),
			want:   all(map[string]string{"leaf": "failed", "last": "cancelled", "later": "cancelled", "latest": "cancelled"}),
		},
		{
			name: "barrier", tasks: graph(), orders: order, ends: hub.WaveFailed,
			policy: func(p *hub.WavePolicy) { p.Retry, p.OnFailure, p.Order = 1, hub.FailContinue, hub.OrderBarrier },
			script: played(map[string]deed{"leaf": fails}),
			want: all(map[string]string{
				"leaf": "failed", "join": "cancelled", "last": "cancelled", "later": "cancelled", "latest": "cancelled",
			}),
		},
		{
			name: "cancelled", tasks: graph(), orders: order, ends: hub.WaveCancelled,
			policy: func(p *hub.WavePolicy) { p.Retry = 1 },
			script: played(map[string]deed{"hang": hangs, "last": hangs}),
			cancel: func(rows map[string]hub.WaveRow) bool { return atWork(rows["hang"]) && atWork(rows["last"]) },
			want:   all(map[string]string{"hang": "cancelled", "last": "cancelled", "later": "cancelled", "latest": "cancelled"}),
		},
	}
}

func atWork(r hub.WaveRow) bool { return r.Dispatch != nil && r.Dispatch.State == hub.Ready }
