package wave

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/signal"
	"github.com/wavehub/wavehub/internal/sqlite"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/work"
)

// world is a hub with a Run, the repository demo, the agent sh, the identity w-1,
// and the peers windows, which works, and mac, which is paired as home only.
type world struct {
	testing.TB
	*Service
	store *spyStore
	run   hub.RunID
	peers *peers
}

var operator = hub.Principal{Kind: hub.Operator, Credential: "op"}

func newWorld(t testing.TB) *world {
	t.Helper()
	disk, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "hub.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := disk.Close(); err != nil {
			t.Error(err)
		}
	})
	w := &world{TB: t, store: &spyStore{Store: disk}, run: hub.NewRunID(), peers: &peers{}}
	w.update(func(tx store.Tx) error {
		peer := hub.Peer{ID: hub.NewPeerID(), Name: "windows", State: hub.PeerActive, Role: hub.RoleWorker, Fingerprint: "f1", Lineage: "hub_1"}
		home := hub.Peer{ID: hub.NewPeerID(), Name: "mac", State: hub.PeerActive, Role: hub.RoleHome, Fingerprint: "f2", Lineage: "hub_2"}
		return errors.Join(
			tx.PutCredential(store.Credential{Sum: "op", Kind: store.CredOperator}),
			tx.PutRun(hub.Run{ID: w.run, Objective: "o"}), tx.PutMailbox(store.Mailbox{Box: w.run.Box()}),
			tx.PutRepo(hub.Repo{ID: hub.NewRepoID(), Name: "demo", Path: "/demo", Kind: hub.RepoGit}),
			tx.PutRepo(hub.Repo{ID: hub.NewRepoID(), Name: "plain", Path: "/plain", Kind: hub.RepoFolder}),
			tx.PutWorker(hub.Worker{ID: hub.NewWorkerID(), Name: "w-1", State: hub.WorkerActive}),
			tx.PutWorker(hub.Worker{ID: hub.NewWorkerID(), Name: "w-2", State: hub.WorkerDraining}),
			tx.PutPeer(peer), tx.PutPeer(home))
	})
	w.Service = w.over(w.store)
	w.store.updates.take()
	return w
}

// over is the Service of a hub over a view of the store.
func (w *world) over(st store.Store) *Service {
	log := slog.New(slog.DiscardHandler)
	return New(Config{
		Store: st, Work: work.New(work.Config{Store: st, Agents: launchers{}, Remote: w.peers, LinkUp: func(hub.PeerID) bool { return false }, Log: log}), Bus: &signal.Bus{}, Log: log,
		LivenessSecs: hub.DefaultLiveness,
	})
}

func (w *world) update(fn func(store.Tx) error) {
	w.Helper()
	if err := w.store.Store.Update(w.Context(), store.New, fn); err != nil {
		w.Fatal(err)
	}
}

func (w *world) view(fn func(store.Rx) error) {
	w.Helper()
	if err := w.store.View(w.Context(), fn); err != nil {
		w.Fatal(err)
	}
}

// request is one that the operator makes for the first time.
func (w *world) request(op string, args any) receipt.Request {
	w.Helper()
	r, err := receipt.New(operator, "", op, args)
	if err != nil {
		w.Fatal(err)
	}
	return r
}

// input creates the named wave of tasks.
func (w *world) input(id hub.WaveID, tasks ...hub.WaveEntry) CreateInput {
	return CreateInput{Run: w.run, ID: id, Goal: "all of it", Plan: PlanInput{Tasks: tasks, Policy: hub.DefaultWavePolicy(hub.DefaultLiveness)}}
}

func (w *world) create(in CreateInput) Created {
	w.Helper()
	out, err := w.Create(w.Context(), w.request("wave_create", in), in)
	if err != nil {
		w.Fatal(err)
	}
	return out
}

// pending creates the wave w1 of a, b and c, which depends on both; a and b have one
// scope and are serialized.
func (w *world) pending() []hub.WaveTask {
	w.Helper()
	a, b := entry("a"), entry("b")
	a.WriteScope, b.WriteScope = []string{"src"}, []string{"src"}
	in := w.input("w1", a, b, entry("c", "a", "b"))
	in.Plan.Policy.Conflicts = hub.ConflictsSerialize
	w.create(in)
	return w.tasks("w1")
}

func (w *world) tasks(id hub.WaveID) (xs []hub.WaveTask) {
	w.Helper()
	w.view(func(rx store.Rx) (err error) {
		xs, err = rx.WaveTasks(id)
		return err
	})
	return xs
}

func (w *world) wave(id hub.WaveID) (v hub.Wave) {
	w.Helper()
	w.view(func(rx store.Rx) (err error) {
		v, err = rx.Wave(id)
		return err
	})
	return v
}

func (w *world) task(id hub.TaskID) (t hub.Task) {
	w.Helper()
	w.view(func(rx store.Rx) (err error) {
		t, err = rx.Task(id)
		return err
	})
	return t
}

// become gives a wave another status.
func (w *world) become(id hub.WaveID, st hub.WaveStatus) {
	w.Helper()
	w.update(func(tx store.Tx) error {
		v, err := tx.Wave(id)
		v.Status = st
		return errors.Join(err, tx.SaveWave(v))
	})
}

// content is all that is stored of a wave and of the Tasks of the Run.
func (w *world) content(id hub.WaveID) string {
	w.Helper()
	var all []any
	w.view(func(rx store.Rx) error {
		v, err := rx.Wave(id)
		if err != nil && !hub.IsCode(err, hub.CodeWaveNotFound) {
			return err
		}
		xs, err := rx.WaveTasks(id)
		if err != nil {
			return err
		}
		orders, err := rx.WaveOrders(id)
		if err != nil {
			return err
		}
		ts, _, err := rx.TaskList(w.run, "", store.Page{Limit: 100})
		all = []any{v, xs, orders, ts}
		return err
	})
	raw, err := json.Marshal(all)
	if err != nil {
		w.Fatal(err)
	}
	return string(raw)
}

// nothingStaged: what was staged under a uid that is no wave's is gone.
func (w *world) nothingStaged(uids ...hub.WaveUID) {
	w.Helper()
	for i, uid := range uids {
		probe := hub.Wave{ID: hub.WaveID("probe" + string(rune('a'+i))), UID: uid, Run: w.run, Status: hub.WavePending}
		w.update(func(tx store.Tx) error { return tx.PutWave(probe) })
		if xs := w.tasks(probe.ID); len(xs) > 0 {
			w.Errorf("%d tasks of %s were left behind", len(xs), uid)
		}
		var orders []hub.WaveOrder
		w.view(func(rx store.Rx) (err error) {
			orders, err = rx.WaveOrders(probe.ID)
			return err
		})
		if len(orders) > 0 {
			w.Errorf("%d orders of %s were left behind", len(orders), uid)
		}
	}
}

func entry(token string, deps ...string) hub.WaveEntry {
	return hub.WaveEntry{Token: token, Goal: "do " + token, Worker: "w-1", Dependencies: deps, WriteScope: []string{}}
}

func startOf(token string, st hub.WaveStart) hub.WaveEntry {
	return hub.WaveEntry{Token: token, Goal: "do it", Start: &st, WriteScope: []string{}}
}

func equal(t testing.TB, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("not as wanted (-want +got):\n%s", d)
	}
}

func refused(t testing.TB, code hub.Code, err error) {
	t.Helper()
	if !hub.IsCode(err, code) {
		t.Errorf("got %v, want %s", err, code)
	}
}

// spyStore is a store that counts transactions, and fails some.
type spyStore struct {
	store.Store
	updates tally
	mu      sync.Mutex
	fail    func(nth int) error // guarded by mu: instead of the nth Update from now
	nth     int                 // guarded by mu
	staged  []hub.WaveUID       // guarded by mu: in transactions of their own
}

func (c *spyStore) Update(ctx context.Context, class store.Class, fn func(store.Tx) error) error {
	c.updates.add()
	c.mu.Lock()
	c.nth++
	fail, nth := c.fail, c.nth
	c.mu.Unlock()
	if fail != nil {
		if err := fail(nth); err != nil {
			return err
		}
	}
	return c.Store.Update(ctx, class, func(tx store.Tx) error { return fn(spied{tx, c}) })
}

func (c *spyStore) failing(fn func(nth int) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail, c.nth = fn, 0
}

// spied notes under which uids tasks and orders are staged.
type spied struct {
	store.Tx
	c *spyStore
}

func (s spied) StageWaveTasks(uid hub.WaveUID, xs []hub.WaveTask, ts []hub.Task) error {
	s.c.note(uid)
	return s.Tx.StageWaveTasks(uid, xs, ts)
}

func (s spied) StageWaveOrders(uid hub.WaveUID, os []hub.WaveOrder) error {
	s.c.note(uid)
	return s.Tx.StageWaveOrders(uid, os)
}

func (c *spyStore) note(uid hub.WaveUID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.staged = append(c.staged, uid)
}

// uids are those that were staged under.
func (c *spyStore) uids() []hub.WaveUID {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen, out := map[hub.WaveUID]bool{}, []hub.WaveUID(nil)
	for _, u := range c.staged {
		if !seen[u] {
			seen[u] = true
			out = append(out, u)
		}
	}
	return out
}

type tally struct {
	mu sync.Mutex
	n  int // guarded by mu
}

func (t *tally) add() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n++
}

// take is the count since it was last called.
func (t *tally) take() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.n
	t.n = 0
	return n
}

// launchers know sh, and ghost, whose program is missing.
type launchers struct{ work.Agents }

func (launchers) Completion(name, _ string) (string, error) {
	if name != "sh" && name != "ghost" {
		return "", hub.Errorf(hub.CodeAgentUnconfigured, "no agent %q", name)
	}
	return "exit", nil
}

func (launchers) List() []hub.AgentFacts {
	return []hub.AgentFacts{{Name: "sh", Program: "/bin/sh"}, {Name: "ghost", Missing: "not installed"}}
}

// peers answer probes.
type peers struct {
	work.Remote
	mu     sync.Mutex
	asked  []hub.StartSpec                                   // guarded by mu
	answer func(ctx context.Context, in hub.PeerStart) error // guarded by mu
}

func (p *peers) Probe(ctx context.Context, _ hub.PeerID, body []byte) (hub.Probe, error) {
	var in hub.PeerStart
	if err := json.Unmarshal(body, &in); err != nil {
		return hub.Probe{}, err
	}
	p.mu.Lock()
	p.asked = append(p.asked, in.Spec)
	answer := p.answer
	p.mu.Unlock()
	if answer == nil {
		return hub.Probe{}, nil
	}
	return hub.Probe{}, answer(ctx, in)
}

func (p *peers) answering(fn func(context.Context, hub.PeerStart) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer, p.asked = fn, nil
}

func (p *peers) specs() []hub.StartSpec {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

func long(n int) string { return strings.Repeat("x", n) }
