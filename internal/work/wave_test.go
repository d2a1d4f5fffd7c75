package work_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/work"
)

var (
	engine   = hub.Principal{Kind: hub.Engine}
	waveTask = &hub.WaveRef{Wave: "w1", Token: "T001"}
)

// listening are launchers that keep what they were asked to plan.
type listening struct {
	launchers
	plans *[]work.Launch
}

func (l listening) Plan(in work.Launch) (work.Planned, error) {
	*l.plans = append(*l.plans, in)
	return l.launchers.Plan(in)
}

// listeningHub is a hub and what it asks its launchers for.
func (m *machine) listeningHub(r work.Remote) (*work.Service, *[]work.Launch) {
	s := m.homeOf(r, m.terms, 0)
	plans := &[]work.Launch{}
	s.Agents, s.Console = listening{plans: plans}, launchers{}
	s.Listening = func(hub.Box) bool { return false }
	return s, plans
}

// taskOf makes a Task with a text.
func (m *machine) taskOf(r hub.RunID, t hub.Task) hub.TaskID {
	m.t.Helper()
	t.ID = hub.NewTaskID()
	err := m.store.Update(m.t.Context(), store.New, func(tx store.Tx) error {
		_, err := run.CreateTasks(tx, r, []hub.Task{t})
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return t.ID
}

// sessionStart is the one session_start in the worker's mailbox.
func (m *machine) sessionStart(w hub.Worker) (s hub.SessionStart) {
	m.t.Helper()
	err := m.store.View(m.t.Context(), func(rx store.Rx) error {
		ms, _, err := rx.History(w.ID.Box(), store.HistoryFilter{Limit: 100, Types: []hub.MessageType{hub.TypeSessionStart}})
		if err == nil && len(ms) != 1 {
			err = errors.New("there is not one session_start")
		}
		if err != nil {
			return err
		}
		return json.Unmarshal(ms[0].Payload, &s)
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return s
}

func engineRequest(t *testing.T, op string, args any) receipt.Request {
	t.Helper()
	r, err := receipt.New(engine, receipt.DerivedKey("wave/1", t.Name(), op), op, args)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A worker that the engine starts is told of its wave, on this hub and on a peer, by
// its environment, its preamble and its session; one of no wave is told nothing.
func TestManagedWorkersAreToldOfTheirWave(t *testing.T) {
	m := newMachine(t)
	m.addPeer(hub.RoleWorker)
	rem := &tracedRemote{answer: ready}
	s, plans := m.listeningHub(rem)
	in := startInput(m.newTask())
	in.Spec.Wave = waveTask
	r, err := s.Start(t.Context(), engineRequest(t, "start", in), in)
	if err != nil || r.State != hub.StartReady {
		t.Fatalf("%+v, %v", r, err)
	}
	l := (*plans)[0]
	if l.Wave == nil || *l.Wave != *waveTask || l.Env["WAVEHUB_WAVE_ID"] != "w1" || l.Env["WAVEHUB_WAVE_TASK_ID"] != "T001" || l.Task != in.Task || l.Background != nil {
		t.Errorf("planned as %+v", l)
	}
	err = m.store.View(t.Context(), func(rx store.Rx) error {
		got, ok, err := rx.Session("", "w1--T001")
		if !ok || got.Dispatch != r.Dispatch || got.Worker != "" {
			t.Errorf("its session is %+v", got)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	far := startInput(m.newTask())
	far.On, far.Spec.Wave = "windows", waveTask
	if _, err := s.Start(t.Context(), engineRequest(t, "start far", far), far); err != nil {
		t.Fatal(err)
	}
	var body hub.PeerStart
	if err := json.Unmarshal(rem.bodies[0], &body); err != nil || body.Spec.Wave == nil || *body.Spec.Wave != *waveTask || strings.Join(body.Features, ",") != hub.FeatureWaves {
		t.Errorf("sent as %s, %v", rem.bodies[0], err)
	}
	plain := startInput(m.newTask())
	plain.Spec.Name = "two"
	if _, err := s.Start(t.Context(), startRequest(t, "", plain), plain); err != nil {
		t.Fatal(err)
	}
	for key := range maps.Keys((*plans)[1].Env) {
		if strings.Contains(key, "WAVE_") {
			t.Errorf("of no wave it is told %s", key)
		}
	}
}

// An owner carries out a wave's start as its home asked for it.
func TestTheOwnerTellsOfTheWave(t *testing.T) {
	m := newMachine(t)
	s, plans := m.listeningHub(nil)
	home := m.home("home", hub.Grants{Repos: []string{"/demo"}, Verbs: []string{hub.GrantStart}})
	in := startInput("")
	in.Spec.Wave = waveTask
	body, err := m.startFor(s, home, 0, in)
	if err != nil || (*plans)[0].Env["WAVEHUB_WAVE_TASK_ID"] != "T001" {
		t.Fatalf("%+v, %v", *plans, err)
	}
	err = m.store.View(t.Context(), func(rx store.Rx) error {
		got, ok, err := rx.Session(home.ID, "w1--T001")
		if !ok || got.Dispatch != body.Dispatch {
			t.Errorf("its session is %+v", got)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	in.Spec.Name, in.Spec.Wave = "two", &hub.WaveRef{Wave: "w1.x", Token: "a"}
	if _, err := m.startFor(s, home, 0, in); !hub.IsCode(err, hub.CodeInvalidArgument) {
		t.Errorf("a wave of no name: %v", err)
	}
}

func TestAttachedWorkersAreToldOfTheirWave(t *testing.T) {
	m := newMachine(t)
	s, w := m.hubOf(m.store), m.identity("w-1")
	in := work.DispatchInput{Task: m.newTask(), To: "worker:w-1", NoWait: true, Wave: waveTask, Quiet: true}
	r, err := s.Dispatch(t.Context(), engineRequest(t, "dispatch", "x"), in)
	if err != nil {
		t.Fatal(err)
	}
	got := m.sessionStart(w)
	if got.WaveRef == nil || *got.WaveRef != *waveTask || got.Channel != "wave.w1.task.T001" || got.Session != "w1--T001" || got.Dispatch != r.Dispatch || got.Task != in.Task {
		t.Errorf("told %+v", got)
	}
	again, err := s.Dispatch(t.Context(), engineRequest(t, "dispatch", "x"), in)
	if err != nil || !again.Mutation.Replayed || again.Dispatch != r.Dispatch || m.starts(w) != 1 {
		t.Errorf("given twice: %+v, %v", again, err)
	}
}

// The prompt of a Task without dependencies arrives byte by byte as it is.
func TestAcceptance_PromptsArriveAsTheyAre(t *testing.T) {
	for name, text := range map[string]string{"1 B": "x", "8 KiB": strings.Repeat("8\t \n", 2048), "1 MiB": strings.Repeat("ü\r\n\n ", 1<<20/7)} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.addPeer(hub.RoleWorker)
			rem := &tracedRemote{answer: ready}
			s, plans := m.listeningHub(rem)
			w, r := m.identity("w-1"), m.newRun()
			here, far := startInput(m.taskOf(r, hub.Task{Spec: text})), startInput(m.taskOf(r, hub.Task{Spec: text}))
			far.On = "windows"
			for _, in := range []work.StartInput{here, far} {
				if _, err := s.Start(t.Context(), startRequest(t, "", in), in); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := m.dispatch(s, work.DispatchInput{Task: m.taskOf(r, hub.Task{Spec: text}), To: "worker:w-1", NoWait: true}); err != nil {
				t.Fatal(err)
			}
			var body hub.PeerStart
			if err := json.Unmarshal(rem.bodies[0], &body); err != nil {
				t.Fatal(err)
			}
			start := m.sessionStart(w)
			for way, got := range map[string]string{"managed": (*plans)[0].Prompt, "a peer's": body.Prompt, "attached": start.Prompt, "attached, alone": start.Spec()} {
				if got != text {
					t.Errorf("%s: %d bytes arrive of %d", way, len(got), len(text))
				}
			}
			if (*plans)[0].Background != nil || body.Background != nil || start.Background != nil || start.SpecBytes != 0 {
				t.Error("there is a background of nothing")
			}
		})
	}
}

// completed is a Task that a local worker has completed and left notes of.
func (m *machine) completed(s *work.Service, r hub.RunID) hub.TaskID {
	m.t.Helper()
	task := m.taskOf(r, hub.Task{Title: "the schema", Spec: "x", HandoffPath: "notes.md"})
	in := startInput(task)
	got, err := s.Start(m.t.Context(), startRequest(m.t, "", in), in)
	if err != nil {
		m.t.Fatal(err)
	}
	_, err = (&dispatch.Service{Store: m.store}).Send(m.t.Context(), requestBy(m.t, workerOf(got.Dispatch)), dispatch.SendInput{
		Type: hub.TypeWorkerDone, Body: "Two tables.", Report: hub.Report{Task: task, Dispatch: got.Dispatch, Outcome: hub.OutcomeSucceeded},
	})
	if err == nil {
		err = m.store.Update(m.t.Context(), store.Settle, func(tx store.Tx) error {
			return dispatch.Release(tx, "", got.Dispatch, hub.Findings{Handoff: &hub.Handoff{Present: true, Bytes: 9, SHA256: "ab"}})
		})
	}
	if err != nil {
		m.t.Fatal(err)
	}
	return task
}

// TestDependentsAreToldOfTheirDependencies: what they said, and where their notes
// lie; to each way of starting a worker, and behind the Task's text.
func TestDependentsAreToldOfTheirDependencies(t *testing.T) {
	m := newMachine(t)
	peer := m.addPeer(hub.RoleWorker)
	rem := &tracedRemote{answer: ready}
	s, plans := m.listeningHub(rem)
	w, r := m.identity("w-1"), m.newRun()
	dep := m.completed(s, r)
	dependent := func() hub.TaskID { return m.taskOf(r, hub.Task{Spec: "go on", Dependencies: []hub.TaskID{dep}}) }
	here, far := startInput(dependent()), startInput(dependent())
	here.Spec.Name, far.On = "two", "windows"
	for _, in := range []work.StartInput{here, far} {
		if got, err := s.Start(t.Context(), startRequest(t, "", in), in); err != nil || len(got.Warnings) != 0 {
			t.Fatalf("%q, %v", got.Warnings, err)
		}
	}
	if _, err := m.dispatch(s, work.DispatchInput{Task: dependent(), To: "worker:w-1", NoWait: true}); err != nil {
		t.Fatal(err)
	}
	var body hub.PeerStart
	if err := json.Unmarshal(rem.bodies[0], &body); err != nil {
		t.Fatal(err)
	}
	start, local := m.sessionStart(w), (*plans)[1]
	want := "go on\n\nWhat this task depends on is completed. Of each:\n\n- " + string(dep) + ": the schema\n" +
		"  Ran:    on the hub mac, in the worktree " + string(m.worktreeOf(dep)) + ", at /wt/one\n" +
		"  Notes:  notes.md (9 bytes, sha256 ab)\n  Result:\n      Two tables.\n"
	for way, got := range map[string]string{"managed": local.Background.Behind(local.Prompt), "a peer's": body.Background.Behind(body.Prompt), "attached": start.Prompt} {
		if got != want {
			t.Errorf("%s:\n%s\nwant\n%s", way, got, want)
		}
	}
	if local.Prompt != "go on" || body.Prompt != "go on" || start.Spec() != "go on" {
		t.Errorf("the Task's text alone is %q, %q, %q", local.Prompt, body.Prompt, start.Spec())
	}
	// An owner from before that tells its worker nothing: its home says so.
	m.offers(peer, hub.ContractFederation, hub.FeatureVerify)
	old := startInput(dependent())
	old.On = "windows"
	got, err := s.Start(t.Context(), startRequest(t, "", old), old)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Warnings) != 1 || !strings.HasPrefix(got.Warnings[0], "background_untold: windows") {
		t.Errorf("warned of %q", got.Warnings)
	}
}

func (m *machine) worktreeOf(task hub.TaskID) (id hub.WorktreeID) {
	m.t.Helper()
	_, d := m.task(task)
	err := m.store.View(m.t.Context(), func(rx store.Rx) error {
		a, _, err := rx.Attachment("", d.ID)
		id = a.Worktree
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return id
}

// TestAStopBegunElsewhereIsCarriedOutOnce: the fence commits with its cause. Whoever
// lives on carries it out under the same request.
func TestAStopBegunElsewhereIsCarriedOutOnce(t *testing.T) {
	m := newMachine(t)
	s := m.hubOf(m.store)
	task, r := m.started(t, s)
	in := work.StopInput{Dispatch: r.Dispatch}
	q := engineRequest(t, "stop", in)
	begin := func(st store.Store, then error) error {
		return st.Update(context.Background(), store.Settle, func(tx store.Tx) error {
			got, err := s.BeginStop(tx, q, in)
			if err == nil && (got.State != hub.Stopping || got.Mutation.RequestID != q.Key) {
				err = errors.New("begun as " + string(got.State))
			}
			return errors.Join(err, then)
		})
	}
	refused := errors.New("refused")
	if err := begin(m.store, refused); !errors.Is(err, refused) || m.state(task) != hub.Ready {
		t.Fatalf("given up with its cause it is %s, %v", m.state(task), err)
	}
	for range 2 {
		if err := begin(m.store, nil); err != nil || m.state(task) != hub.Stopping {
			t.Fatalf("begun it is %s, %v", m.state(task), err)
		}
	}
	if p, ok := m.terms.find(m.terminalOf(r.Dispatch)); !ok || isClosed(p.exited) {
		t.Fatal("the process was ended by the fence alone")
	}
	next := m.hubOf(m.store) // the former one was killed here
	if err := next.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, by := range []*work.Service{next, next, m.hubOf(m.store)} {
		out, err := by.Stop(t.Context(), q, in)
		if err != nil || out.State != hub.Stopped || out.AlreadySettled || out.Action != hub.ActionEnded || !out.Mutation.Replayed {
			t.Errorf("call %d: %+v, %v", i+1, out, err)
		}
	}
	rec, found := m.recordOf(t, engine.Space(), q.Key)
	if !found || rec.State != store.ReceiptDone || rec.Principal != "engine" {
		t.Errorf("it is on record as %+v", rec)
	}
}

func isClosed(ch chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

func (m *machine) terminalOf(id hub.DispatchID) (out hub.TerminalID) {
	m.t.Helper()
	err := m.store.View(m.t.Context(), func(rx store.Rx) error {
		a, _, err := rx.Attachment("", id)
		out = a.Terminal
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return out
}

// What a worker says of its usage outlives the hub, and is kept when it is given up;
// that of a peer as its owner said it last.
func TestUsageOfHeartbeatsIsKept(t *testing.T) {
	m := newMachine(t)
	s := m.hubOf(m.store)
	task, r := m.started(t, s)
	beat := work.Heartbeat{Usage: json.RawMessage(`{"cost_usd":1.5}`)}
	if _, err := s.Heartbeat(t.Context(), workerOf(r.Dispatch), r.Dispatch, beat); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Heartbeat(t.Context(), workerOf(r.Dispatch), r.Dispatch, work.Heartbeat{Usage: json.RawMessage(`1`)}); !hub.IsCode(err, hub.CodeInvalidArgument) {
		t.Errorf("usage that is no object: %v", err)
	}
	next := m.hubOf(m.store)
	if shown, err := next.Show(t.Context(), r.Dispatch); err != nil || string(shown.Observation.Usage) != string(beat.Usage) {
		t.Errorf("after a restart it is observed as %s, %v", shown.Observation.Usage, err)
	}
	abandonOf(t, next, r.Dispatch)
	if _, d := m.task(task); d.State != hub.Abandoned || string(d.Usage) != string(beat.Usage) {
		t.Errorf("given up it is %s with %s", d.State, d.Usage)
	}
	peer := m.addPeer(hub.RoleWorker)
	home := m.homeOf(&tracedRemote{answer: ready}, m.terms, 0)
	in := startInput(m.newTask())
	in.On = "windows"
	far, err := home.Start(t.Context(), startRequest(t, "", in), in)
	if err != nil {
		t.Fatal(err)
	}
	home.Hear(peer.ID, []hub.Presence{{Dispatch: far.Dispatch, Usage: beat.Usage}}, true)
	abandonOf(t, home, far.Dispatch)
	if _, d := m.task(in.Task); d.State != hub.Abandoned || string(d.Usage) != string(beat.Usage) {
		t.Errorf("a peer's, given up, is %s with %s", d.State, d.Usage)
	}
}
