package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/keystore"
)

func (s *side) rotate(in RotateInput) RotateResult {
	s.t.Helper()
	out, err := s.Rotate(s.t.Context(), request(s.t, "rotateKey", in), in)
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

func (s *side) present() string { return s.ring.Now().Fingerprint }

// reaches has s say hello to its only peer on a fresh connection.
func (s *side) reaches() error {
	s.t.Helper()
	id := s.only().ID
	s.links.Drop(id)
	_, err := s.client.Hello(s.t.Context(), id)
	return err
}

// agreed checks that each side has pinned the other's present key and no former
// key is held any more.
func agreed(t *testing.T, a, b *side) {
	t.Helper()
	for _, x := range []struct{ of, at *side }{{a, b}, {b, a}} {
		p := x.at.only()
		if p.Fingerprint != x.of.present() || p.Lineage != x.of.id.Fingerprint || !proved(p.Lineage, p.Proofs, p.Fingerprint) {
			t.Errorf("%s has pinned %s of %s, want %s", x.at.cfg.Name, p.Fingerprint, p.Lineage, x.of.present())
		}
		if err := x.of.Settle(t.Context()); err != nil || len(x.of.ring.Now().Former) != 0 {
			t.Errorf("%s holds %d former keys, %v", x.of.cfg.Name, len(x.of.ring.Now().Former), err)
		}
	}
}

func TestBothSidesFollowARotation(t *testing.T) {
	for name, rotate := range map[string]func(home, worker *side){
		"the dialled":        func(_, worker *side) { worker.rotate(RotateInput{}) },
		"the dialler":        func(home, _ *side) { home.rotate(RotateInput{}) },
		"both":               func(home, worker *side) { home.rotate(RotateInput{}); worker.rotate(RotateInput{}) },
		"the dialled, twice": func(_, worker *side) { worker.rotate(RotateInput{}); worker.rotate(RotateInput{}) },
		"the dialler, twice": func(home, _ *side) { home.rotate(RotateInput{}); home.rotate(RotateInput{}) },
	} {
		t.Run(name, func(t *testing.T) {
			home, worker := paired(t)
			before := [2]hub.Peer{home.only(), worker.only()}
			rotate(home, worker)
			if err := errors.Join(home.Settle(t.Context()), worker.Settle(t.Context())); err != nil {
				t.Fatal(err)
			}
			for range 2 { // a former key was held until now; the second time nothing changes
				if err := home.reaches(); err != nil {
					t.Fatal(err)
				}
				agreed(t, home, worker)
			}
			if home.only().ID != before[0].ID || worker.only().ID != before[1].ID || home.only().Name != before[0].Name {
				t.Error("a record is another one")
			}
			rotate(home, worker) // and once more from there
			if err := home.reaches(); err != nil {
				t.Fatal(err)
			}
			agreed(t, home, worker)
		})
	}
}

func TestTheFormerKeyIsRefused(t *testing.T) {
	home, worker := paired(t)
	former := home.ring.Now().Present()
	home.rotate(RotateInput{})
	if err := home.reaches(); err != nil {
		t.Fatal(err)
	}
	p := home.only()
	refused := func(when string) {
		t.Helper()
		conn, err := home.links.dial.dialTLS(t.Context(), worker.addr, former, p.Fingerprint)
		if err == nil {
			defer conn.Close()
			_, err = askHello(t.Context(), conn, hub.OwnOffer(), 5*time.Second)
		}
		if err == nil {
			t.Errorf("%s the former key is taken", when)
		}
		r, ok := worker.LastRefusal(worker.only().ID)
		if !ok || r.Code != hub.CodePeerChanged || r.Stage != StagePin {
			t.Errorf("%s the refusal is %+v", when, r)
		}
	}
	refused("afterwards")
	worker.invite(InviteInput{})
	refused("while an invite is open")

	worker.rotate(RotateInput{})
	if err := home.reaches(); err != nil {
		t.Fatal(err)
	}
	if err := worker.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := home.links.dial.dialTLS(t.Context(), worker.addr, home.ring.Now().Present(), worker.id.Fingerprint)
	wantCode(t, "a worker's former key", err, hub.CodePeerChanged)
	if stageOf(err) != StagePin {
		t.Errorf("stage of %v", err)
	}
}

// TestALostAnswerToARotation: the peer has taken the key and its answer is cut.
func TestALostAnswerToARotation(t *testing.T) {
	home, worker := paired(t)
	home.rotate(RotateInput{})
	before := worker.only()
	key := home.ring.Now()
	before.Fingerprint, before.Proofs = key.Fingerprint, key.Lineage.Bytes()
	worker.edit(before)
	if home.only().Knows == key.Fingerprint {
		t.Fatal("the answer was not lost")
	}
	if err := home.reaches(); err != nil {
		t.Fatal(err)
	}
	agreed(t, home, worker)
}

// TestAcceptance_F09_AForgottenPeerSeesAnotherKey: who never saw the proofs sends
// nothing to the new key, and pairing anew goes on with the same record.
func TestAcceptance_F09_AForgottenPeerSeesAnotherKey(t *testing.T) {
	for name, in := range map[string]RotateInput{"force": {Force: true}, "forget": {Forget: []string{"home"}}} {
		t.Run(name, func(t *testing.T) {
			home, worker := paired(t)
			id := home.only().ID
			if len(in.Forget) > 0 {
				if out := worker.rotate(RotateInput{}); len(out.Unaware) != 1 || out.Unaware[0].Name != "home" {
					t.Errorf("%+v", out)
				}
			}
			out := worker.rotate(in)
			if out.Rotated != in.Force || len(out.Unaware) != 0 || len(out.Forgotten) != 1 || len(worker.ring.Now().Former) != 0 {
				t.Errorf("%+v, %d former keys", out, len(worker.ring.Now().Former))
			}
			seen := worker.requests()
			home.links.Drop(id)
			_, err := home.client.Start(t.Context(), id, hub.NewRequestID(), []byte(`{}`))
			wantCode(t, "start", err, hub.CodePeerChanged)
			if stageOf(home.reaches()) != "" || worker.requests() != seen {
				t.Errorf("%d requests reached the new key: %v", worker.requests()-seen, err)
			}
			gone := home.only()
			gone.State = hub.PeerRemoved
			home.edit(gone)
			inv := worker.invite(InviteInput{})
			joined, err := home.join(JoinInput{Name: "box", URL: worker.url, Code: *inv.Code})
			if err != nil || joined.Peer.ID != id {
				t.Fatalf("pairing anew: %+v %v", joined.Peer, err)
			}
			if err := home.reaches(); err != nil {
				t.Fatal(err)
			}
			agreed(t, home, worker)
		})
	}
}

func TestForceEndsAWait(t *testing.T) {
	home, worker := paired(t)
	rotated := worker.rotate(RotateInput{})
	out := worker.rotate(RotateInput{Force: true})
	if out.Rotated || out.Fingerprint != rotated.Fingerprint || worker.present() != rotated.Fingerprint || len(out.Forgotten) != 1 {
		t.Errorf("%+v", out)
	}
	wantCode(t, "the home", home.reaches(), hub.CodePeerChanged)
	_, err := worker.Rotate(t.Context(), request(t, "rotateKey", 1), RotateInput{Forget: []string{"home"}})
	wantCode(t, "who is not waited for", err, hub.CodeInvalidArgument)
	_, err = worker.Rotate(t.Context(), request(t, "rotateKey", 2), RotateInput{Forget: []string{"nobody"}})
	wantCode(t, "nobody", err, hub.CodePeerNotFound)
}

func TestARotationIsMadeOncePerRequest(t *testing.T) {
	_, worker := paired(t)
	r := request(t, "rotateKey", 1)
	worker.rotated = func(context.Context) error { return errors.New("the disk is full") }
	_, err := worker.Rotate(t.Context(), r, RotateInput{})
	wantCode(t, "cut behind the key", err, hub.CodeOutcomeUnknown)
	made := worker.present()
	if made == worker.id.Fingerprint {
		t.Fatal("no key was made")
	}
	worker.rotated = nil
	for range 2 {
		out, err := worker.Rotate(t.Context(), r, RotateInput{})
		if err != nil || out.Fingerprint != made || out.Old != worker.id.Fingerprint || worker.present() != made {
			t.Fatalf("%+v %v", out, err)
		}
	}
	worker.rotate(RotateInput{})
	if out, err := worker.Rotate(t.Context(), r, RotateInput{}); err != nil || out.Fingerprint != made || !out.Mutation.Replayed {
		t.Errorf("%+v %v", out, err)
	}
}

func TestARotatedHubPairs(t *testing.T) {
	a, b := newSide(t, "a"), newSide(t, "b")
	stale := a.invite(InviteInput{})
	a.rotate(RotateInput{})
	b.rotate(RotateInput{})
	_, err := b.join(JoinInput{Name: "box", URL: a.url, Code: *stale.Code})
	wantCode(t, "a code from before the rotation", err, hub.CodeInviteExpired)
	inv := a.invite(InviteInput{})
	if inv.Fingerprint != a.present() {
		t.Errorf("the invite shows %s", inv.Fingerprint)
	}
	_, err = b.join(JoinInput{Name: "box", URL: a.url, Code: *stale.Code})
	wantCode(t, "while another is open", err, hub.CodePairingProofMismatch)
	if _, err := b.join(JoinInput{Name: "box", URL: a.url, Code: *inv.Code}); err != nil {
		t.Fatal(err)
	}
	if err := b.reaches(); err != nil {
		t.Fatal(err)
	}
	agreed(t, a, b)
	a.rotate(RotateInput{})
	if err := b.reaches(); err != nil {
		t.Fatal(err)
	}
	agreed(t, a, b)
}

func TestACardProvesItsLineage(t *testing.T) {
	s, thief := newSide(t, "s"), newSide(t, "thief")
	s.rotate(RotateInput{})
	thief.rotate(RotateInput{})
	own := s.ring.Now()
	good := card{
		HubID: own.HubID, Proofs: own.Lineage.Bytes(), StoreID: "s", Role: hub.RoleHome, Nonce: random(32), Contracts: []string{hub.ContractFederation},
	}
	if err := good.check(own.Fingerprint); err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(*card) string{
		"no proofs":               func(c *card) string { c.Proofs = nil; return own.Fingerprint },
		"another's proofs":        func(c *card) string { c.Proofs = thief.ring.Now().Lineage.Bytes(); return own.Fingerprint },
		"another's key":           func(*card) string { return thief.present() },
		"the former key":          func(*card) string { return s.id.Fingerprint },
		"another hub's id":        func(c *card) string { c.HubID = thief.id.HubID; return own.Fingerprint },
		"its own key as hub's id": func(c *card) string { c.HubID = own.Fingerprint; return own.Fingerprint },
		"proofs that are none":    func(c *card) string { c.Proofs = []byte("x"); return own.Fingerprint },
	} {
		c := good
		if err := c.check(edit(&c)); !errors.Is(err, errMismatch) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAStolenFormerKeyProvesNothing: who has the first key of a hub that has
// rotated it makes another lineage of it. Nobody who has followed believes it.
func TestAStolenFormerKeyProvesNothing(t *testing.T) {
	home, worker := paired(t)
	stolen := worker.ring.Now()
	worker.rotate(RotateInput{})
	if err := home.reaches(); err != nil {
		t.Fatal(err)
	}
	pinned := home.only()

	thief := newSide(t, "thief")
	thief.ring = keystore.NewRing(t.TempDir(), stolen)
	thief.cfg.Identity, thief.cfg.Rotator = thief.ring, thief.ring
	var err error
	if thief.Service, err = New(thief.cfg); err != nil {
		t.Fatal(err)
	}
	thief.mux = http.NewServeMux()
	thief.listen()
	if _, err := thief.ring.Rotate(stolen.Fingerprint); err != nil {
		t.Fatal(err)
	}
	inv := thief.invite(InviteInput{})
	home.readdress(thief.url)
	wantCode(t, "at the worker's address", home.reaches(), hub.CodePeerChanged)
	_, err = home.join(JoinInput{Name: "other", URL: thief.url, Code: *inv.Code})
	wantCode(t, "pairing under the same lineage", err, hub.CodePeerChanged)
	if p := home.only(); p.Fingerprint != pinned.Fingerprint || p.ID != pinned.ID {
		t.Errorf("the pin is %s", p.Fingerprint)
	}
}

// TestARotationIsBoundToItsConnection tries proofs that are right and signatures
// that are of another connection, of the other side or of another key.
func TestARotationIsBoundToItsConnection(t *testing.T) {
	home, worker := paired(t)
	former := home.ring.Now().Present()
	home.rotate(RotateInput{})
	own := home.ring.Now()
	dial := func() *tls.Conn {
		conn, err := home.links.dial.dialTLS(t.Context(), worker.addr, former, worker.present())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	sign := func(c *tls.Conn, by string, id keystore.Identity, shown keystore.Key) []byte {
		cs := c.ConnectionState()
		sig, err := signRotation(&cs, by, id, shown)
		if err != nil {
			t.Fatal(err)
		}
		return sig
	}
	foreign := newSide(t, "foreign")
	foreign.rotate(RotateInput{})
	other := dial()
	for name, make := range map[string]func(c *tls.Conn) hub.Rotation{
		"of another connection": func(*tls.Conn) hub.Rotation {
			return hub.Rotation{Proofs: own.Lineage.Bytes(), Signature: sign(other, byDialler, own, former)}
		},
		"of the other side": func(c *tls.Conn) hub.Rotation {
			return hub.Rotation{Proofs: own.Lineage.Bytes(), Signature: sign(c, byListener, own, former)}
		},
		"by the former key": func(c *tls.Conn) hub.Rotation {
			return hub.Rotation{Proofs: own.Lineage.Bytes(), Signature: sign(c, byDialler, home.id, own.Present())}
		},
		"of another lineage": func(c *tls.Conn) hub.Rotation {
			id := foreign.ring.Now()
			return hub.Rotation{Proofs: id.Lineage.Bytes(), Signature: sign(c, byDialler, id, former)}
		},
		"without proofs": func(c *tls.Conn) hub.Rotation {
			return hub.Rotation{Signature: sign(c, byDialler, own, former)}
		},
		"without a signature": func(*tls.Conn) hub.Rotation { return hub.Rotation{Proofs: own.Lineage.Bytes()} },
	} {
		c := dial()
		_, err := askRotate(t.Context(), c, make(c), 5*time.Second)
		wantCode(t, name, err, hub.CodePeerChanged)
		if p := worker.only(); p.Fingerprint != former.Fingerprint {
			t.Fatalf("%s: the pin has moved", name)
		}
	}
	if err := home.reaches(); err != nil {
		t.Fatal(err)
	}
	agreed(t, home, worker)
}

// TestAPeerWithoutTheFeatureKeepsTheFormerKey: nothing is sent to it that it does
// not understand, and the key that it knows goes on.
func TestAPeerWithoutTheFeatureKeepsTheFormerKey(t *testing.T) {
	home, worker := paired(t)
	worker.mu.Lock()
	worker.hello = func(h *hub.Hello) { h.Features = nil }
	worker.mu.Unlock()
	home.rotate(RotateInput{})
	for range 2 {
		if err := home.reaches(); err != nil {
			t.Fatal(err)
		}
	}
	if err := home.Settle(t.Context()); err != nil || len(home.ring.Now().Former) != 1 || worker.only().Fingerprint != home.id.Fingerprint {
		t.Errorf("%d former keys, %v", len(home.ring.Now().Former), err)
	}
}

func TestBothSidesKnowWhatTheOtherOffers(t *testing.T) {
	home, worker := paired(t)
	if err := home.reaches(); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*side{home, worker} {
		if p := s.only(); !slices.Equal(p.Features, hub.Features()) || !slices.Equal(p.Contracts, []string{hub.ContractFederation}) {
			t.Errorf("%s knows of %v %v", s.cfg.Name, p.Contracts, p.Features)
		}
	}
	worker.mu.Lock()
	worker.hello = func(h *hub.Hello) { h.Contracts, h.Features = []string{"federation/2"}, []string{"x/1"} }
	worker.mu.Unlock()
	wantCode(t, "a future peer", home.reaches(), hub.CodeCapabilityUnsupported)
	if p := home.only(); !slices.Equal(p.Contracts, []string{"federation/2"}) || !slices.Equal(p.Features, []string{"x/1"}) {
		t.Errorf("the record says %v %v", p.Contracts, p.Features)
	}
	worker.mu.Lock()
	worker.hello = func(h *hub.Hello) { h.Features = make([]string, maxOffered+1) }
	worker.mu.Unlock()
	wantCode(t, "a giant offer", home.reaches(), hub.CodeInvalidArgument)
}

func TestPingNamesTheStage(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, home, worker *side)
		stage string
		code  hub.Code
	}{
		"all is well": {spoil: func(*testing.T, *side, *side) {}},
		"no such name": {func(_ *testing.T, home, _ *side) { home.readdress("https://nobody.invalid:1") },
			StageResolve, hub.CodeRemoteRuntimeUnavailable},
		"nobody listens": {func(t *testing.T, home, _ *side) { home.readdress("https://" + unused(t)) },
			StageDial, hub.CodeRemoteRuntimeUnavailable},
		"our key is unknown": {func(_ *testing.T, _, worker *side) {
			p := worker.only()
			p.Fingerprint = keystore.Fingerprint([]byte("x"))
			worker.edit(p)
		}, StageTLS, hub.CodePeerRevoked},
		"another key": {func(t *testing.T, home, _ *side) { home.readdress(newSide(t, "thief").url) },
			StagePin, hub.CodePeerChanged},
		"another store": {func(_ *testing.T, _, worker *side) { worker.hello = func(h *hub.Hello) { h.StoreID = "x" } },
			StageHello, hub.CodePeerStoreChanged},
		"another contract": {func(_ *testing.T, _, worker *side) {
			worker.hello = func(h *hub.Hello) { h.Contracts = []string{"federation/2"} }
		},
			StageContract, hub.CodeCapabilityUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			home, worker := paired(t)
			c.spoil(t, home, worker)
			got, err := home.links.Ping(t.Context(), home.only().ID)
			if err != nil {
				t.Fatal(err)
			}
			want := StagePassed
			for i, s := range got.Stages {
				state := want
				if s.Stage == c.stage {
					state, want = StageFailed, StageSkipped
				}
				if s.Stage != Stages()[i] || s.State != state || (s.Err != nil) != (state == StageFailed) || s.Took < 0 {
					t.Errorf("stage %d is %+v, want %s", i, s, state)
				}
			}
			if e := got.Err(); c.code != "" && (e == nil || e.Code != c.code) || c.code == "" && e != nil {
				t.Errorf("%v, want %s", e, c.code)
			}
		})
	}
	home, _ := paired(t)
	_, err := home.links.Ping(t.Context(), hub.NewPeerID())
	wantCode(t, "nobody", err, hub.CodePeerNotFound)
}

// unused is an address at which nobody listens.
func unused(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}
