package peer

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// pairAgain joins with a fresh invite of the worker.
func pairAgain(t *testing.T, home, worker *side, name string) error {
	t.Helper()
	inv := worker.invite(InviteInput{})
	_, err := home.Join(t.Context(), request(t, "peer.add", inv.ID), JoinInput{Name: name, URL: worker.url, Code: *inv.Code})
	return err
}

func (s *side) remove(name string) hub.Peer {
	s.t.Helper()
	out, err := s.Remove(s.t.Context(), request(s.t, "peer.remove", s.store.now()), name)
	if err != nil {
		s.t.Fatal(err)
	}
	return out.Peer
}

// newStore is the hub after its data directory, but not its key, was replaced.
func (s *side) newStore(id string) {
	s.store.mu.Lock()
	s.store.id, s.store.peers, s.store.invites = id, map[hub.PeerID]hub.Peer{}, nil
	s.store.mu.Unlock()
	s.restart()
}

func TestRemovedPeerIsServedNothing(t *testing.T) {
	home, worker := paired(t)
	id := home.only().ID
	if _, err := home.client.Hello(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	ended := 0
	home.cfg.Ended = func(store.Tx, hub.Peer) error { ended++; return nil }
	home.restart()
	if p := home.remove("box"); p.State != hub.PeerRemoved || ended != 1 {
		t.Errorf("removed: %+v, %d ends", p, ended)
	}
	_, err := home.Remove(t.Context(), request(t, "peer.remove", 2), string(id))
	if err != nil || ended != 1 {
		t.Errorf("removed twice: %v, %d ends", err, ended)
	}
	_, err = home.Find(t.Context(), "box")
	wantCode(t, "by name", err, hub.CodePeerNotFound)
	_, err = home.Grant(t.Context(), request(t, "peer.grant", 1), string(id), GrantInput{})
	wantCode(t, "grant", err, hub.CodePeerRevoked)
	home.links.Drop(id)
	_, err = home.client.Hello(t.Context(), id)
	wantCode(t, "ours", err, hub.CodePeerRevoked)
	_, err = home.Admit(t.Context(), worker.id.Fingerprint)
	wantCode(t, "theirs", err, hub.CodePeerRevoked)
}

// TestARefusedEndKeepsThePairing: what else ends is in the same transaction.
func TestARefusedEndKeepsThePairing(t *testing.T) {
	home, _ := paired(t)
	home.cfg.Ended = func(store.Tx, hub.Peer) error { return errors.New("no room") }
	home.restart()
	if _, err := home.Remove(t.Context(), request(t, "peer.remove", 1), "box"); err == nil || home.only().State != hub.PeerActive {
		t.Errorf("%v %+v", err, home.only())
	}
}

// TestDropEndsCallsUnderWay: a call to a peer that is removed meanwhile ends.
func TestDropEndsCallsUnderWay(t *testing.T) {
	home, worker := paired(t)
	there, gone := make(chan struct{}), make(chan struct{})
	worker.mux.HandleFunc("POST /peer/v1/dispatches", func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil { // from then on its server sees the end
			t.Error(err)
		}
		close(there)
		<-r.Context().Done()
		close(gone)
	})
	id := home.only().ID
	answer := make(chan error, 1)
	go func() {
		_, err := home.client.Start(t.Context(), id, hub.NewRequestID(), []byte(`{}`))
		answer <- err
	}()
	<-there
	home.links.Drop(id)
	limit := time.After(time.Second)
	for range 2 {
		select {
		case err := <-answer:
			if !errors.Is(err, ErrAnswerLost) {
				t.Errorf("the call: %v", err)
			}
		case <-gone:
			gone = nil
		case <-limit:
			t.Fatal("a second after the end it goes on")
		}
	}
}

func TestAcceptance_F09_TheSameKeyWithAnotherStoreIsAnotherPeer(t *testing.T) {
	home, worker := paired(t)
	old := home.only()
	atWorker := worker.only()

	worker.newStore("store-2")
	_, err := home.client.Hello(t.Context(), old.ID)
	wantCode(t, "not known there", err, hub.CodePeerRevoked)
	wantCode(t, "its name is taken", pairAgain(t, home, worker, "box"), hub.CodeNameTaken)
	wantCode(t, "it has a name", pairAgain(t, home, worker, "crate"), hub.CodeNameTaken)
	home.remove("box")
	if err := pairAgain(t, home, worker, "box"); err != nil {
		t.Fatal(err)
	}
	now, err := home.Find(t.Context(), "box")
	if err != nil || now.ID == old.ID || now.StoreID != "store-2" || now.Lineage != old.Lineage {
		t.Errorf("paired anew: %+v %v", now, err)
	}
	if p, err := home.Get(t.Context(), old.ID); err != nil || p.State != hub.PeerRemoved || p.StoreID != old.StoreID {
		t.Errorf("what was: %+v %v", p, err)
	}

	home.newStore("store-3") // the inviter's side finds out by message 1
	if err := pairAgain(t, home, worker, "box"); err != nil {
		t.Fatal(err)
	}
	ps := worker.store.all()
	trusted := slices.DeleteFunc(slices.Clone(ps), func(p hub.Peer) bool { return !p.State.Trusted() })
	if len(ps) != 2 || len(trusted) != 1 || trusted[0].StoreID != "store-3" || trusted[0].Name != atWorker.Name {
		t.Errorf("at the worker: %+v", ps)
	}
}

func TestTheSameStoresPairedAgainKeepTheirIDs(t *testing.T) {
	home, worker := paired(t)
	a, b := home.only(), worker.only()
	home.remove("box")
	if err := pairAgain(t, home, worker, "crate"); err != nil {
		t.Fatal(err)
	}
	if p := home.only(); p.ID != a.ID || p.Name != "crate" || p.State != hub.PeerActive {
		t.Errorf("home: %+v", p)
	}
	if p := worker.only(); p.ID != b.ID || p.Name != b.Name || p.State != hub.PeerActive {
		t.Errorf("worker: %+v", p)
	}
}

// TestARemovedPeerDoesNotComeBackByALostMessage: the joiner's replay after its
// message 4 was lost finds no peer to complete once that was removed.
func TestARemovedPeerDoesNotComeBackByALostMessage(t *testing.T) {
	a, b := newSide(t, "a"), newSide(t, "b")
	inv := a.invite(InviteInput{})
	direct := b.reach
	b.through(func(m messenger, cut func()) messenger { return &cutter{messenger: m, end: cut, at: 4, lost: true} })
	in, r := JoinInput{Name: "box", URL: a.url, Code: *inv.Code}, request(t, "peer.add", 1)
	if _, err := b.Join(t.Context(), r, in); err == nil {
		t.Fatal("message 4 was lost, and it paired")
	}
	a.idle(t)
	a.remove(a.only().Name)
	a.invite(InviteInput{}) // keeps the door open
	b.reach = direct
	_, err := b.Join(t.Context(), r, in)
	wantCode(t, "again", err, hub.CodeInviteExpired)
	if a.only().State != hub.PeerRemoved || len(b.store.all()) != 0 {
		t.Errorf("%+v", a.only())
	}
}

func TestUpdateAndGrant(t *testing.T) {
	home, worker := paired(t)
	n := 0
	update := func(name string, in UpdateInput) (hub.Peer, error) {
		n++
		out, err := home.Update(t.Context(), request(t, "peer.update", n), name, in)
		return out.Peer, err
	}
	p, err := update("box", UpdateInput{Name: "crate"})
	if err != nil || p.Name != "crate" || len(p.Addresses) != 1 {
		t.Errorf("renamed: %+v %v", p, err)
	}
	p, err = update("crate", UpdateInput{Addresses: []string{"https://192.0.2.1", "https://192.0.2.1:7443/", "https://[2001:db8::1]:1"}})
	if want := []string{"https://192.0.2.1:7443", "https://[2001:db8::1]:1"}; err != nil || !slices.Equal(p.Addresses, want) {
		t.Errorf("moved: %v %v", p.Addresses, err)
	}
	for what, in := range map[string]UpdateInput{
		"nothing": {}, "name": {Name: "A B"}, "an id as name": {Name: string(hub.NewPeerID())}, "a reserved name": {Name: "current"},
		"scheme": {Addresses: []string{"http://192.0.2.1"}}, "many": {Addresses: slices.Repeat([]string{"https://192.0.2.1"}, 9)},
	} {
		_, err := update("crate", in)
		wantCode(t, what, err, hub.CodeInvalidArgument)
	}
	other := home.only()
	other.ID, other.Name, other.Fingerprint, other.Lineage = hub.NewPeerID(), "other", "f", "l"
	home.edit(other)
	_, err = update("crate", UpdateInput{Name: "other"})
	wantCode(t, "taken", err, hub.CodeNameTaken)
	if p, err = update("crate", UpdateInput{Name: "crate"}); err != nil || p.Name != "crate" {
		t.Errorf("its own name: %v", err)
	}

	ptr := func(s ...string) *[]string { return &s }
	grant := func(on *side, name string, in GrantInput) (hub.Grants, error) {
		n++
		out, err := on.Grant(context.Background(), request(t, "peer.grant", n), name, in)
		return out.Peer.Grants, err
	}
	at, two, less := worker.only().Name, 2, -1
	root := t.TempDir()
	g, err := grant(worker, at, GrantInput{Repos: ptr(root, root), MaxWorkers: &two})
	if err != nil || len(g.Verbs) != 3 || !slices.Equal(g.Repos, []string{root}) || g.MaxWorkers != 2 {
		t.Errorf("%+v %v", g, err)
	}
	if g, err = grant(worker, at, GrantInput{Verbs: ptr()}); err != nil || g.Verbs == nil || len(g.Verbs) != 0 || g.MaxWorkers != 2 || len(g.Repos) != 1 {
		t.Errorf("no verbs: %+v %v", g, err)
	}
	for what, in := range map[string]GrantInput{"verb": {Verbs: ptr("write")}, "root": {Repos: ptr("src")}, "limit": {MaxWorkers: &less}} {
		_, err := grant(worker, at, in)
		wantCode(t, what, err, hub.CodeInvalidArgument)
	}
	_, err = grant(home, "crate", GrantInput{MaxWorkers: &two})
	wantCode(t, "on the home's side", err, hub.CodeInvalidArgument)
}
