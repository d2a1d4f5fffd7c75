package work_test

import (
	"context"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/work"
)

func asPeer(p hub.Peer) hub.Principal {
	return hub.Principal{Kind: hub.PeerKey, ID: p.Lineage, Credential: string(p.ID)}
}

// proxyHome is a home that may send commands, below /demo.
func (m *machine) proxyHome(name string) hub.Peer {
	return m.home(name, hub.Grants{Verbs: []string{hub.GrantProxy}, Repos: []string{"/demo"}})
}

func requestOf(t *testing.T, p hub.Principal, key hub.RequestID, in any) receipt.Request {
	t.Helper()
	r, err := receipt.New(p, key, "createWorktree", in)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A creation that a peer asked for is journalled and, when its hub was killed,
// closed in the peer's own key space: a request of this hub's under the same id,
// which may be under way, is another one. Invariants 19 and 26.
func TestAPeersCreationIsItsOwn(t *testing.T) {
	everyCommit(t, 3, func(t *testing.T, n int, after bool) bool {
		m := newMachine(t)
		home := m.proxyHome("home")
		key, in := hub.NewRequestID(), work.WorktreeInput{Repo: "demo", Name: "one"}
		ours, err := requestOf(t, operator, key, "of this hub").Record(1, store.ReceiptRunning, &hub.WorktreeReceipt{Stage: "ours"})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.store.Update(t.Context(), store.New, func(tx store.Tx) error { return tx.PutReceipt(ours) }); err != nil {
			t.Fatal(err)
		}
		completed := m.dies(t, n, after, func(s *work.Service) {
			if _, err := s.CreateWorktree(context.Background(), requestOf(t, asPeer(home), key, in), in); err != nil {
				t.Logf("the dying hub: %v", err)
			}
		})
		again := m.hubOf(m.store)
		if err := again.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		theirs, found := m.recordOf(t, asPeer(home).Space(), key)
		if w, made := m.worktrees(t)["one"]; made != (m.trees.made == 1) || made && w.CreatedBy != asPeer(home).Name() {
			t.Errorf("%d made, on record %+v", m.trees.made, w)
		}
		if found && theirs.State == store.ReceiptRunning {
			t.Error("what became of the peer's request is not on its record")
		}
		if r, err := again.CreateWorktree(t.Context(), requestOf(t, asPeer(home), key, in), in); err != nil || m.trees.made > 1 || r.Mutation.Replayed != found {
			t.Errorf("repeated: %+v %v, %d made", r, err, m.trees.made)
		}
		if now, _ := m.recordOf(t, "local", key); now.State != store.ReceiptRunning || string(now.Body) != string(ours.Body) {
			t.Errorf("the request of this hub is %s: %s", now.State, now.Body)
		}
		return completed
	})
}

func (m *machine) recordOf(t *testing.T, space string, key hub.RequestID) (rec store.Receipt, found bool) {
	t.Helper()
	err := m.store.View(t.Context(), func(rx store.Rx) (err error) {
		rec, found, err = rx.Receipt(space, key)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return rec, found
}

// What a grant no longer covers is refused in the transaction of the effect,
// although it was covered when the place was looked at.
func TestAGrantIsJudgedWithTheEffect(t *testing.T) {
	m := newMachine(t)
	home := m.proxyHome("home")
	narrowed := home
	narrowed.Grants.Repos = []string{"/other"}
	meddler := &meddling{Store: m.store, before: func() {
		if err := m.store.Update(context.Background(), store.New, func(tx store.Tx) error { return tx.SavePeer(narrowed) }); err != nil {
			t.Error(err)
		}
	}}
	s := m.hubOf(meddler)
	in := work.WorktreeInput{Repo: "demo", Name: "one"}
	if _, err := s.CreateWorktree(t.Context(), requestOf(t, asPeer(home), "", in), in); !hub.IsCode(err, hub.CodeRepoNotGranted) {
		t.Errorf("the worktree: %v", err)
	}
	m.savePeer(home, false)
	seat := work.TerminalCreate{Dir: "/demo", Agent: "other"}
	if _, err := s.CreateTerminal(t.Context(), requestOf(t, asPeer(home), "", seat), seat); !hub.IsCode(err, hub.CodeRepoNotGranted) {
		t.Errorf("the terminal: %v", err)
	}
	m.savePeer(home, false)
	made, err := m.hubOf(m.store).CreateTerminal(t.Context(), requestOf(t, asPeer(home), "", seat), seat)
	if err != nil {
		t.Fatal(err)
	}
	send := work.SendInput{Terminal: made.Terminal.ID, Text: "x"}
	if _, err := s.SendTerminal(t.Context(), requestOf(t, asPeer(home), "", send), send); !hub.IsCode(err, hub.CodeTerminalNotFound) {
		t.Errorf("the input: %v", err)
	}
	if m.trees.made != 0 || m.terms.launches != 1 {
		t.Errorf("%d worktrees, %d launches", m.trees.made, m.terms.launches)
	}
}

// meddling is a store on which something happens right before each transaction.
type meddling struct {
	store.Store
	before func()
}

func (m *meddling) Update(ctx context.Context, c store.Class, fn func(store.Tx) error) error {
	m.before()
	return m.Store.Update(ctx, c, fn)
}

// A terminal that a peer made has no mark by which the program in it would use
// this hub's own token; this hub's own has it.
func TestAPeersTerminalIsNotItsUsers(t *testing.T) {
	m := newMachine(t)
	home := m.proxyHome("home")
	s := m.hubOf(m.store)
	seat := work.TerminalCreate{Dir: "/demo", Agent: "other"}
	made, err := s.CreateTerminal(t.Context(), requestOf(t, asPeer(home), "", seat), seat)
	if err != nil || made.Terminal.CreatedBy != "peer:hub_home" || !made.Terminal.OfPeer() {
		t.Fatalf("%+v %v", made, err)
	}
	if file := m.capabilityFile(t, made.Terminal.ID); file != "/private/none.json" {
		t.Errorf("a peer's: %s", file)
	}
	own := createOf(t, s, seat)
	if file := m.capabilityFile(t, own.ID); own.OfPeer() || file != "/private/dispatch.json" {
		t.Errorf("its own: %s", file)
	}
}

// capabilityFile is where the processes of a terminal look for their credential.
func (m *machine) capabilityFile(t *testing.T, id hub.TerminalID) string {
	t.Helper()
	p, ok := m.terms.find(id)
	if !ok {
		t.Fatalf("%s has no process", id)
	}
	return p.env[0]
}

// A home's sight ends where another one's begins.
func TestPeersDoNotSeeEachOther(t *testing.T) {
	m := newMachine(t)
	one, two := m.proxyHome("one"), m.proxyHome("two")
	s := m.hubOf(m.store)
	seat := work.TerminalCreate{Dir: "/demo", Agent: "other"}
	made, err := s.CreateTerminal(t.Context(), requestOf(t, asPeer(one), "", seat), seat)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.MayHold(t.Context(), asPeer(one), made.Terminal.ID); err != nil {
		t.Errorf("its own: %v", err)
	}
	if err := s.MayHold(t.Context(), asPeer(two), made.Terminal.ID); !hub.IsCode(err, hub.CodeOutOfScope) {
		t.Errorf("another's: %v", err)
	}
	if err := s.MayHold(t.Context(), operator, made.Terminal.ID); err != nil {
		t.Errorf("the operator's: %v", err)
	}
}
