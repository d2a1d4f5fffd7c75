package peer

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/wavehub/wavehub/internal/hub"
)

func TestPairingRoles(t *testing.T) {
	repos := []string{t.TempDir()}
	for name, c := range map[string]struct {
		invite          InviteInput
		join            JoinInput
		joiner, inviter hub.Role // what each is in the other's record
	}{
		"worker invites": {invite: InviteInput{Grants: hub.Grants{Repos: repos}}, joiner: hub.RoleHome, inviter: hub.RoleWorker},
		"home invites":   {invite: InviteInput{As: hub.RoleHome}, join: JoinInput{Serve: true, Grants: hub.Grants{Repos: repos}}, joiner: hub.RoleWorker, inviter: hub.RoleHome},
		"mutual invite":  {invite: InviteInput{Mutual: true}, joiner: hub.RoleMutual, inviter: hub.RoleMutual},
		"mutual join":    {join: JoinInput{Mutual: true}, joiner: hub.RoleMutual, inviter: hub.RoleMutual},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newSide(t, "inviter"), newSide(t, "Joiner's Mac!")
			inv := a.invite(c.invite)
			c.join.Name, c.join.URL, c.join.Code = "box", a.url, strings.ToLower(*inv.Code)
			got, err := b.join(c.join)
			if err != nil || len(got.Warnings) > 0 {
				t.Fatal(got.Warnings, err)
			}
			atB, atA := b.only(), a.only()
			if atB.Role != c.inviter || atA.Role != c.joiner || atA.State != hub.PeerActive || atB.State != hub.PeerActive {
				t.Errorf("roles %s/%s, states %s/%s", atB.Role, atA.Role, atB.State, atA.State)
			}
			if atB.Name != "box" || atA.Name != "joiner-s-mac-" || atB.StoreID != a.store.id || atA.StoreID != b.store.id {
				t.Errorf("records: %+v and %+v", atB, atA)
			}
			if atB.Fingerprint != a.id.Fingerprint || atA.Fingerprint != b.id.Fingerprint || atB.ID == atA.ID {
				t.Errorf("keys: %+v and %+v", atB, atA)
			}
			for side, g := range map[*side]hub.Grants{a: atA.Grants, b: atB.Grants} {
				stated := side == a && (c.invite.As == "" || c.invite.Mutual) || side == b && (c.join.Serve || c.join.Mutual)
				if serves := len(g.Verbs) == 3; serves != stated {
					t.Errorf("grants %+v, offered to serve: %v", g, stated)
				}
			}
		})
	}
}

func TestPairingRolesMustFit(t *testing.T) {
	a, b := newSide(t, "a"), newSide(t, "b")
	inv := a.invite(InviteInput{})
	_, err := b.join(JoinInput{Name: "box", URL: a.url, Code: *inv.Code, Serve: true})
	wantCode(t, "two workers", err, hub.CodeInvalidArgument)
	if !strings.Contains(err.Error(), "both sides want to be the worker") {
		t.Errorf("it does not say what does not fit: %v", err)
	}
	if len(a.store.all())+len(b.store.all()) != 0 {
		t.Error("something was stored")
	}
	if _, err := b.join(JoinInput{Name: "box", URL: a.url, Code: *inv.Code}); err != nil {
		t.Errorf("the right role, same code: %v", err)
	}
}

// TestWhatIsWrongWithAPairingSaysWhatToDo: a hint has to hold where no peer is yet.
func TestWhatIsWrongWithAPairingSaysWhatToDo(t *testing.T) {
	home, worker := paired(t)
	inv := worker.invite(InviteInput{})
	for what, c := range map[string]struct {
		in   JoinInput
		code hub.Code
		want []string
	}{
		"the name again":    {JoinInput{Name: "box", URL: worker.url, Code: *inv.Code}, hub.CodeNameTaken, []string{"wavehub peer remove box"}},
		"under another one": {JoinInput{Name: "two", URL: worker.url, Code: *inv.Code}, hub.CodeNameTaken, []string{"wavehub peer remove box"}},
		"nobody listens":    {JoinInput{Name: "two", URL: "https://127.0.0.1:1", Code: *inv.Code}, hub.CodeRemoteRuntimeUnavailable, []string{"stage dial", "at this URL"}},
	} {
		_, err := home.join(c.in)
		wantCode(t, what, err, c.code)
		e, ok := errors.AsType[*hub.Error](err)
		for _, part := range c.want {
			if !ok || !strings.Contains(e.Message+" "+e.Hint, part) {
				t.Errorf("%s: %v, hint %q, want %q", what, err, e.Hint, part)
			}
		}
	}
}

func TestJoinIsCheckedBeforeAnythingIsSent(t *testing.T) {
	a, b := newSide(t, "a"), newSide(t, "b")
	inv := a.invite(InviteInput{})
	good := JoinInput{Name: "box", URL: a.url, Code: *inv.Code}
	for what, change := range map[string]func(*JoinInput){
		"name":     func(in *JoinInput) { in.Name = "../x" },
		"url":      func(in *JoinInput) { in.URL = "http://127.0.0.1:1" },
		"path":     func(in *JoinInput) { in.URL += "/x" },
		"typo":     func(in *JoinInput) { in.Code = typo(in.Code) },
		"shape":    func(in *JoinInput) { in.Code = "AAAA" },
		"relative": func(in *JoinInput) { in.Serve, in.Grants.Repos = true, []string{"src"} },
		"grants":   func(in *JoinInput) { in.Grants.MaxWorkers = 3 },
	} {
		in := good
		change(&in)
		_, err := b.join(in)
		wantCode(t, what, err, hub.CodeInvalidArgument)
	}
	if a.requests() != 0 || a.store.invites[0].Wrong != 0 {
		t.Error("a typo reached the inviter")
	}
	if _, err := b.join(good); err != nil {
		t.Fatal(err)
	}
	_, err := b.join(JoinInput{Name: "box", URL: a.url, Code: *inv.Code})
	wantCode(t, "taken", err, hub.CodeNameTaken)
	self := b.invite(InviteInput{})
	_, err = b.join(JoinInput{Name: "me", URL: b.url, Code: *self.Code})
	wantCode(t, "itself", err, hub.CodeInvalidArgument)
}

func typo(c string) string {
	last := c[len(c)-1]
	return c[:len(c)-1] + string(rune("23"[map[bool]int{true: 1, false: 0}[last == '2']]))
}

func wrong(c string) string {
	p, err := parseCode(c)
	if err != nil {
		panic(err)
	}
	p.secret = "000000000000"
	return p.String()
}

func TestAcceptance_F11_FiveWrongProofsBurn(t *testing.T) {
	a, b := newSide(t, "a"), newSide(t, "b")
	inv := a.invite(InviteInput{})
	a.invite(InviteInput{}) // keeps the door open
	for n := range hub.MaxWrongProofs {
		_, err := b.join(JoinInput{Name: "box", URL: a.url, Code: wrong(*inv.Code)})
		wantCode(t, fmt.Sprint("wrong ", n), err, hub.CodePairingProofMismatch)
		if got := a.store.invites[0].Wrong; got != n+1 {
			t.Fatalf("%d counted after %d", got, n+1)
		}
	}
	_, err := b.join(JoinInput{Name: "box", URL: a.url, Code: *inv.Code})
	wantCode(t, "right but burned", err, hub.CodeInviteExpired)
	unknown := code{slot: "ZZZ", secret: "000000000000"}
	_, err = b.join(JoinInput{Name: "box", URL: a.url, Code: unknown.String()})
	wantCode(t, "unknown slot", err, hub.CodePairingProofMismatch)
	if a.store.invites[1].Wrong != 0 || len(a.store.all())+len(b.store.all()) != 0 {
		t.Error("an unknown slot counted, or something was stored")
	}
}

func TestAcceptance_F11_ExpiredReusedRaced(t *testing.T) {
	a, b, c := newSide(t, "a"), newSide(t, "b"), newSide(t, "c")
	old := a.invite(InviteInput{TTL: time.Minute})
	a.store.advance(2 * time.Minute)
	_, err := b.join(JoinInput{Name: "box", URL: a.url, Code: *old.Code})
	wantCode(t, "expired, nothing open", err, hub.CodeInviteExpired)
	inv := a.invite(InviteInput{})
	_, err = b.join(JoinInput{Name: "box", URL: a.url, Code: *old.Code})
	wantCode(t, "expired, another open", err, hub.CodeInviteExpired)

	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i, s := range []*side{b, c} {
		wg.Go(func() { _, errs[i] = s.join(JoinInput{Name: "box", URL: a.url, Code: *inv.Code}) })
	}
	wg.Wait()
	won := slices.IndexFunc(errs, func(err error) bool { return err == nil })
	if won < 0 || !hub.IsCode(errs[1-won], hub.CodeInviteExpired) || len(a.store.all()) != 1 {
		t.Fatalf("the race: %v", errs)
	}
	a.invite(InviteInput{})
	loser := []*side{c, b}[won]
	_, err = loser.join(JoinInput{Name: "box", URL: a.url, Code: *inv.Code})
	wantCode(t, "reused", err, hub.CodeInviteExpired)
}

func TestInviteReplay(t *testing.T) {
	a, b := newSide(t, "a"), newSide(t, "b")
	r := request(t, "peer.invite", nil)
	first, err := a.Invite(t.Context(), r, InviteInput{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := a.Invite(t.Context(), r, InviteInput{})
	if err != nil || *again.Invite.Code != *first.Invite.Code || !again.Mutation.Replayed || len(a.store.invites) != 1 {
		t.Fatalf("replay: %+v %v", again, err)
	}
	secret := strings.ReplaceAll((*first.Invite.Code)[5:], "-", "")
	for _, rec := range a.store.receipts {
		if strings.Contains(string(rec.Body), (*first.Invite.Code)[5:]) || strings.Contains(string(rec.Body), secret) {
			t.Error("the receipt holds the code")
		}
	}
	if _, err := b.join(JoinInput{Name: "box", URL: a.url, Code: *first.Invite.Code}); err != nil {
		t.Fatal(err)
	}
	used, err := a.Invite(t.Context(), r, InviteInput{})
	if err != nil || used.Invite.Code != nil || used.Invite.SecretState != "used" {
		t.Fatalf("after use: %+v %v", used, err)
	}
	for range hub.MaxOpenInvites {
		a.invite(InviteInput{})
	}
	_, err = a.Invite(t.Context(), request(t, "peer.invite", 1), InviteInput{})
	wantCode(t, "a fifth open invite", err, hub.CodeRateLimited)
}

// cutter ends a pairing at its n-th message as the joiner sees it: lost, or
// right behind it.
type cutter struct {
	messenger
	end  func()
	at   int
	lost bool
	n    int
}

var errCut = errors.New("cut")

func (c *cutter) step(do func() error) error {
	if c.n++; c.n > c.at || c.n == c.at && c.lost {
		c.end()
		return errCut
	}
	err := do()
	if c.n == c.at {
		c.end()
	}
	return err
}

func (c *cutter) Send(ctx context.Context, msg []byte) error {
	return c.step(func() error { return c.messenger.Send(ctx, msg) })
}

func (c *cutter) Receive(ctx context.Context) (msg []byte, err error) {
	err = c.step(func() error { msg, err = c.messenger.Receive(ctx); return err })
	return msg, err
}

func (s *side) idle(t *testing.T) {
	t.Helper()
	tick, end := time.NewTicker(time.Millisecond), time.NewTimer(20*time.Second)
	defer tick.Stop()
	defer end.Stop()
	for {
		s.Service.mu.Lock()
		n := s.pairings
		s.Service.mu.Unlock()
		if n == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-end.C:
			t.Fatal("a pairing hangs")
		}
	}
}

func TestAcceptance_F11_CutAtEveryMessage(t *testing.T) {
	for at := 1; at <= 6; at++ {
		for _, lost := range []bool{true, false} {
			t.Run(fmt.Sprintf("message %d lost=%v", at, lost), func(t *testing.T) {
				a, b := newSide(t, "a"), newSide(t, "b")
				inv := a.invite(InviteInput{})
				direct := b.reach
				b.reach = func(ctx context.Context, host string) (messenger, channel, func(), error) {
					m, ch, end, err := direct(ctx, host)
					now := func() { m.(socket).ws.CloseNow() }
					return &cutter{messenger: m, end: now, at: at, lost: lost}, ch, end, err
				}
				in := JoinInput{Name: "box", URL: a.url, Code: *inv.Code}
				r := request(t, "peer.add", in.Name)
				_, err := b.Join(t.Context(), r, in)
				a.idle(t)
				committed := at > 4 || at == 4 && !lost
				if (err == nil) != committed {
					t.Fatalf("first attempt: %v", err)
				}
				b.reach = direct
				got, err := b.Join(t.Context(), r, in)
				if err != nil {
					t.Fatalf("again: %v", err)
				}
				if p := b.only(); p.State != hub.PeerActive || p.ID != got.Peer.ID {
					t.Errorf("joiner: %+v", p)
				}
				if _, err := b.client.Hello(t.Context(), b.only().ID); err != nil {
					t.Errorf("first pinned connection: %v", err)
				}
				if p := a.only(); p.State != hub.PeerActive || p.Fingerprint != b.id.Fingerprint {
					t.Errorf("inviter: %+v", p)
				}
			})
		}
	}
}

func TestPendingLapses(t *testing.T) {
	a, b := newSide(t, "a"), newSide(t, "b")
	inv := a.invite(InviteInput{})
	direct := b.reach
	b.reach = func(ctx context.Context, host string) (messenger, channel, func(), error) {
		m, ch, end, err := direct(ctx, host)
		return &cutter{messenger: m, end: func() { m.(socket).ws.CloseNow() }, at: 5, lost: true}, ch, end, err
	}
	got, err := b.join(JoinInput{Name: "box", URL: a.url, Code: *inv.Code})
	if err != nil || len(got.Warnings) != 1 {
		t.Fatalf("%+v %v", got, err)
	}
	a.idle(t)
	if p := a.only(); p.State != hub.PeerPending {
		t.Fatalf("inviter: %+v", p)
	}
	a.store.advance(25 * time.Hour)
	_, err = b.client.Hello(t.Context(), b.only().ID)
	wantCode(t, "after the window", err, hub.CodePeerRevoked)
}

// middle terminates TLS on both sides and passes messages on, changed by edit.
func middle(t *testing.T, m, inviter *side, edit func([]byte) []byte) (url string, refusals func() []hub.Code) {
	t.Helper()
	var mu sync.Mutex
	var seen []hub.Code
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{pairProtocol}})
		if err != nil {
			return
		}
		defer ws.CloseNow()
		left := newSocket(ws)
		right, _, end, err := m.reach(r.Context(), inviter.addr)
		if err != nil {
			return
		}
		defer end()
		for {
			msg, err := left.Receive(r.Context())
			if err != nil || right.Send(r.Context(), edit(msg)) != nil {
				return
			}
			if msg, err = right.Receive(r.Context()); err != nil {
				return
			}
			var s step
			if json.Unmarshal(msg, &s) == nil && s.Type == typeRefused {
				mu.Lock()
				seen = append(seen, s.Code)
				mu.Unlock()
			}
			if left.Send(r.Context(), edit(msg)) != nil {
				return
			}
		}
	}))
	srv.TLS = baseConfig()
	srv.TLS.Certificates = []tls.Certificate{m.id.Cert}
	srv.TLS.ClientAuth = tls.RequireAnyClientCert
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv.URL, func() []hub.Code { mu.Lock(); defer mu.Unlock(); return seen }
}

func TestAcceptance_F11_ManInTheMiddle(t *testing.T) {
	for _, clever := range []bool{false, true} {
		t.Run(fmt.Sprintf("clever=%v", clever), func(t *testing.T) {
			a, b, m := newSide(t, "a"), newSide(t, "b"), newSide(t, "m")
			inv := a.invite(InviteInput{})
			edit := func(msg []byte) []byte { return msg }
			if clever {
				edit = func(msg []byte) []byte {
					return []byte(strings.NewReplacer(a.id.HubID, m.id.HubID, b.id.HubID, m.id.HubID).Replace(string(msg)))
				}
			}
			url, refusals := middle(t, m, a, edit)
			_, err := b.join(JoinInput{Name: "box", URL: url, Code: *inv.Code})
			wantCode(t, "joiner", err, hub.CodePairingProofMismatch)
			if got := refusals(); !slices.Equal(got, []hub.Code{hub.CodePairingProofMismatch}) {
				t.Errorf("the inviter said %v", got)
			}
			if len(a.store.all())+len(b.store.all()) != 0 {
				t.Error("something was stored")
			}
		})
	}
}

// TestLyingInviter shows that the joiner stores nothing before message 4 holds.
func TestLyingInviter(t *testing.T) {
	b, m := newSide(t, "b"), newSide(t, "m")
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{pairProtocol}})
		if err != nil {
			return
		}
		defer ws.CloseNow()
		s, ctx := newSocket(ws), r.Context()
		if _, err := s.Receive(ctx); err != nil {
			return
		}
		c, err := m.card(ctx, typeOffer, hub.RoleWorker, hub.Grants{})
		if err != nil {
			return
		}
		if _, err := sendJSON(ctx, s, c); err != nil {
			return
		}
		if _, err := s.Receive(ctx); err == nil {
			_ = sendProof(ctx, s, typeAccept, make([]byte, 32))
		}
		_, _ = s.Receive(ctx)
	}))
	srv.TLS = baseConfig()
	srv.TLS.Certificates = []tls.Certificate{m.id.Cert}
	srv.TLS.ClientAuth = tls.RequireAnyClientCert
	srv.StartTLS()
	t.Cleanup(srv.Close)
	_, err := b.join(JoinInput{Name: "box", URL: srv.URL, Code: code{slot: "ABC", secret: "0123456789AB"}.String()})
	wantCode(t, "joiner", err, hub.CodePairingProofMismatch)
	if len(b.store.all()) != 0 {
		t.Error("a peer was stored")
	}
}

func TestAttemptsAreSpaced(t *testing.T) {
	a := newSide(t, "a")
	a.cfg.AttemptEvery = time.Hour
	s, err := New(a.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.turn(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := s.turn(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a second attempt: %v", err)
	}
}

func TestCodeText(t *testing.T) {
	c := code{slot: "A1B", secret: "0123456789VW"}
	text := c.String()
	for _, s := range []string{text, strings.ToLower(text), strings.ReplaceAll(text, "-", ""), strings.NewReplacer("1", "l", "0", "o").Replace(text), " " + text + "\n"} {
		got, err := parseCode(s)
		if err != nil || got != c {
			t.Errorf("%q: %+v %v", s, got, err)
		}
	}
	for i := range len(text) {
		for _, r := range "ABCDEFGHJKMNPQRSTVWXYZ23456789" {
			if text[i] == '-' || byte(r) == text[i] {
				continue
			}
			if _, err := parseCode(text[:i] + string(r) + text[i+1:]); err == nil {
				t.Fatalf("a typo at %d passes", i)
			}
		}
	}
}

func TestRealCostPairs(t *testing.T) {
	k := pairKey(Cost{}.orDefault(), code{slot: "ABC", secret: "0123456789AB"}, []byte("spki"))
	if len(k) != 32 || string(k) == string(pairKey(Cost{}.orDefault(), code{slot: "ABD", secret: "0123456789AB"}, []byte("spki"))) {
		t.Error("the slot does not matter")
	}
}

func TestAPairedHubIsNotPairedUnderAnotherName(t *testing.T) {
	a, b := newSide(t, "a"), newSide(t, "b")
	inv := a.invite(InviteInput{})
	if _, err := b.join(JoinInput{Name: "box", URL: a.url, Code: *inv.Code}); err != nil {
		t.Fatal(err)
	}
	fresh := a.invite(InviteInput{})
	_, err := b.join(JoinInput{Name: "crate", URL: a.url, Code: *fresh.Code})
	wantCode(t, "another name", err, hub.CodeNameTaken)
	_, err = b.join(JoinInput{Name: "box", URL: a.url, Code: *fresh.Code})
	wantCode(t, "its own name again", err, hub.CodeNameTaken)
	if ps := b.store.all(); len(ps) != 1 || ps[0].Name != "box" {
		t.Errorf("%+v", ps)
	}
}
