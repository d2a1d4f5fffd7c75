package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/group"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/keystore"
	"github.com/wavehub/wavehub/internal/mail"
	pairs "github.com/wavehub/wavehub/internal/peer"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/signal"
	"github.com/wavehub/wavehub/internal/sqlite"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/wave"
	"github.com/wavehub/wavehub/internal/work"
	"github.com/wavehub/wavehub/server/servertest"
)

var testKey = []byte("0123456789abcdef0123456789abcdef")

type testTokens struct{}

func (testTokens) Consumer(r hub.RunID, g int64) string {
	return keystore.DeriveToken(testKey, "whc_", "consumer", string(r), g)
}
func (testTokens) Worker(id hub.WorkerID) string    { return tokenOf("whw_", string(id)) }
func (testTokens) Sum(s string) string              { return keystore.TokenSum(s) }
func (testTokens) CheckToken(prefix, s string) bool { return keystore.CheckToken(prefix, s) }
func tokenOf(prefix, name string) string {
	return keystore.DeriveToken(testKey, prefix, "test", name, 1)
}

// world is a whole hub but for processes and links, which it fakes.
type world struct {
	t        *testing.T
	store    *sqlite.Store
	server   *Server
	api      http.Handler // the server's, with every answer validated
	draining chan struct{}
	waits    chan struct{}
	commits  atomic.Int64
	log      *logBook
	peers    *fakePeers
	// forwarded is what was sent on to other hubs.
	forwarded *fakeLinks
	terminal  *fakeTerminals
	operator  string
	reader    string
	// capability is a Dispatch's that has no attachment: it passes the guards.
	capability string
	// attached is the token of an attached worker without Dispatches.
	attached string
}

type option func(*Config)

func newWorld(t *testing.T, opts ...option) *world {
	t.Helper()
	w := &world{t: t, draining: make(chan struct{}), waits: make(chan struct{}, 16), log: &logBook{}, peers: &fakePeers{}, forwarded: &fakeLinks{}, terminal: newFakeTerminals()}
	bus := &signal.Bus{}
	st, err := sqlite.Open(t.Context(), sqlite.Config{
		Path: filepath.Join(t.TempDir(), "hub.db"),
		Publish: func(ss []hub.Signal) {
			for _, s := range ss {
				bus.Publish(string(s.Topic), s.Key)
			}
		},
		Committed: func(int, time.Duration) { w.commits.Add(1) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Errorf("closing the store: %v", err)
		}
	})
	g := group.New(context.Background())
	t.Cleanup(func() { g.Stop(10 * time.Second) })
	w.store = st
	cfg := w.config(bus, g)
	for _, o := range opts {
		o(&cfg)
	}
	if w.server, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	w.server.delay = time.Millisecond
	w.api = servertest.Validate(t, w.server.API())
	w.operator, w.reader = tokenOf("whu_", "operator"), tokenOf("whr_", "reader")
	w.capability = tokenOf("whd_", "dispatch")
	w.credential(store.Credential{Sum: keystore.TokenSum(w.capability), Kind: store.CredDispatch, Subject: string(hub.NewDispatchID())})
	w.attached = w.identity("w-1")
	w.credential(store.Credential{Sum: keystore.TokenSum(w.operator), Kind: store.CredOperator})
	w.credential(store.Credential{Sum: keystore.TokenSum(w.reader), Kind: store.CredReader})
	return w
}

// waitBus tells the test of each wait that has begun: its waiter is claimed.
type waitBus struct {
	*signal.Bus
	waits chan struct{}
}

func (b waitBus) Subscribe(topic, key string) (<-chan struct{}, func()) {
	woken, cancel := b.Bus.Subscribe(topic, key)
	select {
	case b.waits <- struct{}{}:
	default:
	}
	return woken, cancel
}

func (w *world) config(bus *signal.Bus, g *group.Group) Config {
	spawn := func(fn func(context.Context)) bool { return g.Go(fn) }
	mailboxes := &mail.Service{Store: w.store, Access: dispatch.Access{}, Bus: waitBus{bus, w.waits}, Draining: w.draining}
	services := work.New(work.Config{
		Store: w.store, Gate: receipt.NewGate(w.store, spawn), Terminals: w.terminal, Git: fakeGit{}, Agents: fakeAgents{}, Console: fakeAgents{},
		Remote: nil, Authority: fakeAuthority{w.t.TempDir()}, Bus: bus, Spawn: spawn, Name: "test", StoreID: "store", Epoch: 1,
		AnswerLost: func(error) bool { return false }, LinkUp: func(hub.PeerID) bool { return false }, Log: slog.New(slog.DiscardHandler),
		Listening: mailboxes.Listening, Unspool: func(context.Context, hub.DispatchID) error { return nil },
	})
	return Config{
		Runs: &run.Service{Store: w.store, Tokens: testTokens{}}, Dispatch: &dispatch.Service{Store: w.store, Tokens: testTokens{}},
		Mail:  mailboxes,
		Waves: wave.New(wave.Config{Store: w.store, Work: services, Bus: bus, Spawn: spawn, Log: slog.New(slog.DiscardHandler)}),
		Work:  services, Store: w.store, Peers: w.peers, Tokens: testTokens{}, CursorKey: testKey,
		Hub:    Info{HubID: "hub_test", Name: "test", StartedAt: 1},
		APITLS: serverTLS(w.t, "api"), PeerTLS: serverTLS(w.t, "peer"), Log: slog.New(w.log),
		PeerRelay: saying("relay"), PeerPair: saying("pair"), PeerPark: saying("park"),
		PeerOf:    func(r *http.Request) (hub.Peer, bool, error) { return w.peers.of(r) },
		PeerHello: func(*http.Request) (hub.Hello, error) { return hub.Hello{HubID: "hub_test"}, nil },
		Forward:   w.forwarded.take,
	}
}

func saying(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) })
}

// identity registers an attached worker and returns its token.
func (w *world) identity(name string) (token string) {
	w.t.Helper()
	one := hub.Worker{ID: hub.NewWorkerID(), Name: name, State: hub.WorkerActive, Generation: 1}
	token = testTokens{}.Worker(one.ID)
	w.update(func(tx store.Tx) error {
		return errors.Join(tx.PutWorker(one), tx.PutMailbox(store.Mailbox{Box: one.ID.Box()}),
			tx.PutCredential(store.Credential{Sum: keystore.TokenSum(token), Kind: store.CredWorker, Subject: string(one.ID)}))
	})
	return token
}

func (w *world) credential(c store.Credential) {
	w.t.Helper()
	w.update(func(tx store.Tx) error { return tx.PutCredential(c) })
}

func (w *world) update(fn func(store.Tx) error) {
	w.t.Helper()
	if err := w.store.Update(w.t.Context(), store.New, fn); err != nil {
		w.t.Fatal(err)
	}
}

// request is one call in a test; empty fields are left away.
type request struct {
	method, path, token, body, key string
	header                         map[string]string
	host                           string
}

type response struct {
	status int
	header http.Header
	body   map[string]any
	raw    string
}

func (r response) code() string { s, _ := r.body["code"].(string); return s }

func (r response) at(path ...string) any {
	var v any = r.body
	for _, p := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[p]
	}
	return v
}

func (r response) text(path ...string) string { s, _ := r.at(path...).(string); return s }

func (q request) http() *http.Request {
	r := httptest.NewRequest(q.method, q.path, strings.NewReader(q.body))
	r.Host = "127.0.0.1:7443"
	if q.host != "" {
		r.Host = q.host
	}
	if q.token != "" {
		r.Header.Set("Authorization", "Bearer "+q.token)
	}
	if q.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if q.key != "" {
		r.Header.Set("Idempotency-Key", q.key)
	}
	for k, v := range q.header {
		r.Header.Set(k, v)
	}
	return r
}

func (w *world) do(q request) response {
	w.t.Helper()
	return send(w.t, w.api, q)
}

func (w *world) doPeer(q request) response {
	w.t.Helper()
	return send(w.t, w.server.Peer(), q)
}

func send(t *testing.T, h http.Handler, q request) response {
	t.Helper()
	return serve(t, h, q.http())
}

func serve(t *testing.T, h http.Handler, r *http.Request) response {
	t.Helper()
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	out := response{status: rec.Code, header: rec.Header(), raw: rec.Body.String()}
	if strings.Contains(rec.Header().Get("Content-Type"), "json") {
		if err := json.Unmarshal(bytes.TrimSpace(rec.Body.Bytes()), &out.body); err != nil {
			t.Fatalf("%s %s: %v in %q", r.Method, r.URL.Path, err, out.raw)
		}
	}
	return out
}

func (w *world) must(status int, q request) response {
	w.t.Helper()
	out := w.do(q)
	if out.status != status {
		w.t.Fatalf("%s %s: status %d, want %d: %s", q.method, q.path, out.status, status, out.raw)
	}
	return out
}

func (w *world) post(status int, path, body string) response {
	w.t.Helper()
	return w.must(status, request{method: "POST", path: path, body: body, token: w.operator})
}

func (w *world) get(status int, path string) response {
	w.t.Helper()
	return w.must(status, request{method: "GET", path: path, token: w.operator})
}

// logBook keeps what is logged, as text.
type logBook struct {
	mu    sync.Mutex
	lines []string // guarded by mu
}

func (*logBook) Enabled(context.Context, slog.Level) bool { return true }
func (l *logBook) Handle(_ context.Context, r slog.Record) error {
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool { line += " " + a.String(); return true })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	return nil
}
func (l *logBook) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l *logBook) WithGroup(string) slog.Handler      { return l }

func (l *logBook) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

type fakePeers struct {
	mu    sync.Mutex
	peer  *hub.Peer // guarded by mu; whose key every connection has
	state hub.PeerState
	last  receipt.Request
	moved func() // is called by a rotation; set before there are requests
}

func (f *fakePeers) of(*http.Request) (hub.Peer, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.peer == nil {
		return hub.Peer{}, false, nil
	}
	return *f.peer, true, nil
}

// takes gives the peer a role.
func (f *fakePeers) takes(r hub.Role) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.peer.Role = r
}

func (f *fakePeers) Invite(_ context.Context, r receipt.Request, in InviteInput) (Invited, error) {
	return Invited{
		Invite: hub.Invite{ID: hub.NewInviteID(), Grants: in.Grants, ExpiresAt: 1}, Code: "abc-def", Fingerprint: "fp",
		Mutation: hub.Mutation{RequestID: r.Key},
	}, nil
}

func (f *fakePeers) Join(_ context.Context, r receipt.Request, in JoinInput) (Joined, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = r
	return Joined{Peer: hub.Peer{Name: in.Name, Role: hub.RoleWorker, State: f.state}, Mutation: hub.Mutation{RequestID: r.Key}}, nil
}

func (f *fakePeers) SetReverse(_ context.Context, r receipt.Request, name string, on bool) (Joined, error) {
	if name != "a" {
		return Joined{}, hub.Errorf(hub.CodePeerNotFound, "there is no peer %s", name)
	}
	return Joined{Peer: hub.Peer{Name: name, Role: hub.RoleHome, State: hub.PeerActive, Reverse: on}, Mutation: hub.Mutation{RequestID: r.Key}}, nil
}

func (f *fakePeers) List(context.Context) ([]hub.Peer, error) {
	return []hub.Peer{{Name: "a", Role: hub.RoleHome, State: hub.PeerActive}}, nil
}

func (f *fakePeers) Get(_ context.Context, name string) (hub.Peer, Link, error) {
	if name != "a" {
		return hub.Peer{}, Link{}, hub.Errorf(hub.CodePeerNotFound, "there is no peer %s", name)
	}
	return hub.Peer{Name: "a", Role: hub.RoleHome, State: hub.PeerActive}, Link{State: "down", Transport: "direct"}, nil
}

func (f *fakePeers) Update(ctx context.Context, r receipt.Request, peer, name string, addresses []string) (Joined, error) {
	if _, _, err := f.Get(ctx, peer); err != nil {
		return Joined{}, err
	}
	return Joined{Peer: hub.Peer{ID: hub.PeerID(peer), Name: name, Addresses: addresses, Role: hub.RoleHome, State: hub.PeerActive}, Mutation: hub.Mutation{RequestID: r.Key}}, nil
}

func (f *fakePeers) Grant(ctx context.Context, r receipt.Request, peer string, in GrantInput) (Joined, error) {
	if _, _, err := f.Get(ctx, peer); err != nil {
		return Joined{}, err
	}
	p := hub.Peer{ID: hub.PeerID(peer), Role: hub.RoleHome, State: hub.PeerActive, Grants: hub.Grants{Verbs: []string{"start"}, Repos: []string{"/old"}, MaxWorkers: 7}}
	if in.Verbs != nil {
		p.Grants.Verbs = *in.Verbs
	}
	if in.Repos != nil {
		p.Grants.Repos = *in.Repos
	}
	if in.MaxWorkers != nil {
		p.Grants.MaxWorkers = *in.MaxWorkers
	}
	return Joined{Peer: p, Mutation: hub.Mutation{RequestID: r.Key}}, nil
}

func (f *fakePeers) Remove(ctx context.Context, r receipt.Request, peer string) (Joined, error) {
	if _, _, err := f.Get(ctx, peer); err != nil {
		return Joined{}, err
	}
	return Joined{Peer: hub.Peer{ID: hub.PeerID(peer), Role: hub.RoleHome, State: hub.PeerRemoved}, Warnings: []string{"w"}, Mutation: hub.Mutation{RequestID: r.Key}}, nil
}

func (f *fakePeers) Holds(context.Context, hub.PeerID) (hub.PeerHolds, error) {
	return hub.PeerHolds{Dispatches: 1, Workers: 2, Stranded: []hub.Stranded{{Dispatch: "dispatch_a", Task: "task_a", Dir: "/d"}}}, nil
}

func (f *fakePeers) RevokeInvite(_ context.Context, r receipt.Request, id hub.InviteID) (InviteRevoked, error) {
	if !hub.ValidID(hub.PrefixInvite, string(id)) {
		return InviteRevoked{}, hub.Errorf(hub.CodeInviteNotFound, "there is no invite %s", id)
	}
	return InviteRevoked{Invite: hub.Invite{ID: id, Role: hub.RoleWorker, Used: true}, Mutation: hub.Mutation{RequestID: r.Key}}, nil
}

func (f *fakePeers) Ping(_ context.Context, name string) (pairs.Ping, error) {
	p, _, err := f.Get(context.Background(), name)
	return pairs.Ping{Peer: p, Stages: []pairs.PingStage{{Stage: pairs.StageDial, State: pairs.StageFailed, Err: hub.Errorf(hub.CodePeerChanged, "no")}}}, err
}

func (f *fakePeers) Rotate(_ context.Context, r receipt.Request, _ pairs.RotateInput) (pairs.RotateResult, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = r
	return pairs.RotateResult{HubID: "hub_test", Rotated: true, Fingerprint: "new", Old: "old", Mutation: hub.Mutation{RequestID: r.Key}}, nil
}

func (f *fakePeers) FollowRotation(*http.Request, hub.Peer, hub.Rotation) (hub.RotationTaken, error) {
	if f.moved != nil {
		f.moved()
	}
	return hub.RotationTaken{Fingerprint: "new"}, nil
}

type fakeGit struct{}

func (fakeGit) Inspect(_ context.Context, path string) (work.Folder, error) {
	if strings.Contains(path, "missing") {
		return work.Folder{}, hub.Invalid("path", "there is no folder")
	}
	return work.Folder{Path: path, Kind: hub.RepoFolder}, nil
}
func (fakeGit) Canonical(path string) (string, error)        { return path, nil }
func (fakeGit) Free(context.Context, work.NewWorktree) error { return nil }
func (fakeGit) Where(work.NewWorktree) (string, string)      { return "/nowhere", "wavehub/x" }
func (fakeGit) Check(name, base string) error                { return nil }
func (fakeGit) Create(context.Context, work.NewWorktree) (hub.Worktree, error) {
	return hub.Worktree{}, errors.New("no worktrees here")
}
func (fakeGit) Snapshot(context.Context, string) (hub.Baseline, error) { return hub.Baseline{}, nil }
func (fakeGit) Changes(context.Context, string, hub.Baseline) ([]string, bool, error) {
	return nil, false, nil
}
func (fakeGit) Handoff(string, string) (hub.Handoff, error) { return hub.Handoff{}, nil }
func (fakeGit) SetupHook(context.Context, hub.Repo, string) (hub.SetupHook, string, error) {
	return hub.SetupHook{}, "", nil
}
func (fakeGit) Salvage(context.Context, work.NewWorktree) (hub.Worktree, bool, error) {
	return hub.Worktree{}, false, nil
}
func (fakeGit) Examine(context.Context, hub.Repo, hub.Worktree) (hub.TreeState, error) {
	return hub.TreeState{}, nil
}
func (fakeGit) Save(context.Context, hub.Repo, hub.Worktree) ([]hub.SavedRef, []hub.Loss, error) {
	return nil, nil, nil
}
func (fakeGit) Remove(context.Context, hub.Repo, hub.Worktree, string) (bool, error) {
	return false, nil
}

type fakeAgents struct{ work.Agents } // only what is used here

func (fakeAgents) Completion(agent, _ string) (string, error) {
	if agent != "fake" {
		return "", hub.Errorf(hub.CodeAgentUnconfigured, "%s is not configured", agent)
	}
	return "report", nil
}
func (fakeAgents) Grace(string) time.Duration { return time.Millisecond }
func (fakeAgents) AttachedPreamble(hub.TaskID, hub.DispatchID, hub.Checks) string {
	return "how to report"
}
func (fakeAgents) Setup(work.SetupLaunch) (hub.LaunchSpec, error) { return hub.LaunchSpec{}, nil }
func (fakeAgents) Script(s work.Script) (hub.LaunchSpec, error) {
	return hub.LaunchSpec{Terminal: s.Terminal, Argv: []string{"/bin/sh"}}, nil
}
func (fakeAgents) Plan(l work.Launch) (work.Planned, error) {
	return work.Planned{Spec: hub.LaunchSpec{Terminal: l.Terminal}}, nil
}

type fakeAuthority struct{ dir string }

func (fakeAuthority) Capability(home hub.PeerID, d hub.DispatchID) (token, sum string) {
	token = tokenOf("whd_", string(home)+"/"+string(d))
	return token, keystore.TokenSum(token)
}
func (a fakeAuthority) WriteFile(hub.Attachment, string) (string, error) { return a.dir, nil }
func (a fakeAuthority) Private(hub.TerminalID) (string, error)           { return a.dir, nil }

// fakeTerminals has processes that live until they are stopped. While held is
// set, launches wait for release.
type fakeTerminals struct {
	work.Terminals // only what is used here
	mu             sync.Mutex
	ended          map[hub.TerminalID]chan struct{} // guarded by mu
	hold           chan struct{}                    // launches wait until it is closed
	entered        chan struct{}                    // gets one value per launch
	lose           bool
	text           string
	typed          []string // guarded by mu
	typing         error    // what input ends with
}

func newFakeTerminals() *fakeTerminals {
	open := make(chan struct{})
	close(open)
	return &fakeTerminals{ended: map[hub.TerminalID]chan struct{}{}, hold: open, entered: make(chan struct{}, 16), text: "hello"}
}

func (f *fakeTerminals) end(id hub.TerminalID) chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended[id] == nil {
		f.ended[id] = make(chan struct{})
	}
	return f.ended[id]
}

func (f *fakeTerminals) Remove(hub.TerminalID) error { return nil }

func (f *fakeTerminals) Launch(ctx context.Context, s hub.LaunchSpec) (hub.Incarnation, error) {
	f.entered <- struct{}{}
	select {
	case <-f.hold:
	case <-ctx.Done():
		return hub.Incarnation{}, ctx.Err()
	}
	if f.lose {
		return hub.Incarnation{}, hub.Errorf(hub.CodeOutcomeUnknown, "the supervisor did not answer")
	}
	return hub.Incarnation{Terminal: s.Terminal, Nonce: "n", PID: 1}, nil
}

func (f *fakeTerminals) Recover(context.Context, hub.TerminalID) (hub.Incarnation, bool, error) {
	return hub.Incarnation{}, false, errors.New("the supervisor does not answer")
}

func (f *fakeTerminals) Observe(_ context.Context, in hub.Incarnation) (hub.ProcessState, error) {
	select {
	case <-f.end(in.Terminal):
		return hub.ProcessState{Liveness: hub.Exited}, nil
	default:
		return hub.ProcessState{Liveness: hub.Live}, nil
	}
}

func (f *fakeTerminals) Wait(ctx context.Context, in hub.Incarnation) (hub.ProcessState, error) {
	select {
	case <-f.end(in.Terminal):
		return hub.ProcessState{Liveness: hub.Exited}, nil
	case <-ctx.Done():
		return hub.ProcessState{}, ctx.Err()
	}
}

func (f *fakeTerminals) Attend(ctx context.Context, in hub.Incarnation, sign func(hub.Micros, func())) (hub.ProcessState, error) {
	sign(0, func() {})
	return f.Wait(ctx, in)
}

func (f *fakeTerminals) Stop(_ context.Context, in hub.Incarnation, _ time.Duration) (hub.StopProof, error) {
	ch := f.end(in.Terminal)
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-ch:
	default:
		close(ch)
	}
	return hub.StopProof{Action: hub.ActionEnded, State: hub.ProcessState{Liveness: hub.Exited}}, nil
}

func (f *fakeTerminals) Tail(context.Context, hub.TerminalID, int) (hub.OutputTail, error) {
	return hub.OutputTail{Data: []byte(f.text), Total: int64(len(f.text))}, nil
}

func (fakeAgents) HasTranscript(string) bool { return false }

func (fakeAgents) Event(_, _ string, raw []byte) (hub.AgentEvent, string, error) {
	if len(raw) > 0 && !json.Valid(raw) {
		return hub.AgentEvent{}, "", hub.Invalid("data", "is no JSON")
	}
	return hub.AgentEvent{Kind: hub.AgentTurnStarted}, "fake", nil
}

func (fakeAgents) List() []hub.AgentFacts {
	return []hub.AgentFacts{{Name: "fake", Modes: []string{"headless"}, DefaultMode: "headless", Program: "/bin/fake", Completion: "report"}}
}

func (fakeAgents) Version(context.Context, string) (string, error)      { return "1.0", nil }
func (fakeAgents) KnownVersion(context.Context, string) (string, error) { return "1.0", nil }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
