package peer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/testkit"
)

func stageOf(err error) string {
	le, ok := errors.AsType[*LinkError](err)
	if !ok {
		return ""
	}
	return le.Stage()
}

// readdress points the home's record at another address.
func (s *side) readdress(url string) hub.PeerID {
	p := s.only()
	p.Addresses = []string{url}
	s.edit(p)
	return p.ID
}

func (s *side) edit(p hub.Peer) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.store.peers[p.ID] = p
}

func TestAcceptance_F09_OtherKeyBeforeAnyByte(t *testing.T) {
	home, _ := paired(t)
	thief := newSide(t, "thief")
	thief.invite(InviteInput{}) // so that it would take any key
	id := home.readdress(thief.url)
	_, err := home.links.Open(t.Context(), id)
	wantCode(t, "open", err, hub.CodePeerChanged)
	if stageOf(err) != StagePin {
		t.Errorf("stage of %v", err)
	}
	_, err = home.client.Start(t.Context(), id, hub.NewRequestID(), []byte(`{}`))
	wantCode(t, "start", err, hub.CodePeerChanged)
	if errors.Is(err, ErrAnswerLost) || thief.requests() != 0 {
		t.Errorf("%d requests reached the thief", thief.requests())
	}
}

func TestHelloIsJudgedBeforeARequest(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*hub.Hello)
		code   hub.Code
		stage  string
	}{
		"store":    {func(h *hub.Hello) { h.StoreID = "another" }, hub.CodePeerStoreChanged, StageHello},
		"lineage":  {func(h *hub.Hello) { h.HubID = "hub_other" }, hub.CodePeerChanged, StageHello},
		"contract": {func(h *hub.Hello) { h.Contracts = []string{"federation/9"} }, hub.CodeCapabilityUnsupported, StageContract},
	} {
		t.Run(name, func(t *testing.T) {
			home, worker := paired(t)
			started := 0
			worker.mux.HandleFunc("POST /peer/v1/dispatches", func(http.ResponseWriter, *http.Request) { started++ })
			worker.mu.Lock()
			worker.hello = c.change
			worker.mu.Unlock()
			id := home.only().ID
			_, err := home.links.Open(t.Context(), id)
			wantCode(t, "open", err, c.code)
			if stageOf(err) != c.stage {
				t.Errorf("stage of %v", err)
			}
			_, err = home.client.Start(t.Context(), id, hub.NewRequestID(), []byte(`{}`))
			wantCode(t, "start", err, c.code)
			if started != 0 || errors.Is(err, ErrAnswerLost) {
				t.Errorf("the start was sent: %v", err)
			}
		})
	}
}

func TestNewEpochIsNoted(t *testing.T) {
	home, worker := paired(t)
	worker.mu.Lock()
	worker.hello = func(h *hub.Hello) { h.StoreEpoch = 7 }
	worker.mu.Unlock()
	id := home.only().ID
	if h, err := home.client.Hello(t.Context(), id); err != nil || h.StoreEpoch != 7 {
		t.Fatal(h, err)
	}
	if p := home.only(); p.StoreEpoch != 7 {
		t.Errorf("%+v", p)
	}
}

func TestUnknownKeyReachesNothing(t *testing.T) {
	_, worker := paired(t)
	stranger := newSide(t, "stranger")
	stranger.edit(hub.Peer{ID: hub.NewPeerID(), Name: "w", Fingerprint: worker.id.Fingerprint, Lineage: worker.id.HubID,
		Addresses: []string{worker.url}, State: hub.PeerActive, StoreID: worker.store.id, Role: hub.RoleWorker})
	before := worker.requests()
	id := stranger.only().ID
	_, err := stranger.client.Hello(t.Context(), id)
	wantCode(t, "no invite", err, hub.CodePeerRevoked)
	if worker.requests() != before {
		t.Error("a request passed the handshake")
	}
	_, err = stranger.links.Open(t.Context(), id)
	if stageOf(err) != StageTLS {
		t.Errorf("stage of %v", err)
	}
	worker.invite(InviteInput{})
	_, err = stranger.client.Hello(t.Context(), id)
	wantCode(t, "while an invite is open", err, hub.CodePeerRevoked)
}

func TestAcceptance_F10_RevokedOnEitherSide(t *testing.T) {
	home, worker := paired(t)
	p := home.only()
	p.State = hub.PeerRevoked
	home.edit(p)
	_, err := home.links.Open(t.Context(), p.ID)
	wantCode(t, "ours", err, hub.CodePeerRevoked)
	p.State = hub.PeerActive
	home.edit(p)
	w := worker.only()
	w.State = hub.PeerRemoved
	worker.edit(w)
	_, err = home.client.Hello(t.Context(), p.ID)
	wantCode(t, "theirs", err, hub.CodePeerRevoked)
}

func TestAcceptance_F02_SentOrNot(t *testing.T) {
	home, worker := paired(t)
	body := []byte(`{"prompt": "exact  bytes"}`)
	key := hub.NewRequestID()
	answer := func(http.ResponseWriter, *http.Request) {}
	worker.mux.HandleFunc("POST /peer/v1/dispatches", worker.known(func(w http.ResponseWriter, r *http.Request) { answer(w, r) }))
	id := home.only().ID

	answer = func(w http.ResponseWriter, r *http.Request) {
		got, err := io.ReadAll(r.Body)
		if err != nil || !bytes.Equal(got, body) || r.Header.Get("Idempotency-Key") != string(key) {
			t.Errorf("body %q, key %s, %v", got, r.Header.Get("Idempotency-Key"), err)
		}
		writeJSON(w, 201, hub.Receipt{State: hub.StartReady})
	}
	if got, err := home.client.Start(t.Context(), id, key, body); err != nil || got.State != hub.StartReady {
		t.Fatal(got, err)
	}

	answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(403)
		_, _ = io.WriteString(w, `{"code":"repo_not_granted","title":"T","detail":"no","hint":"do","status":403,"retry":"never","next_commands":[["wavehub","peer"]]}`)
	}
	_, err := home.client.Start(t.Context(), id, key, body)
	wantCode(t, "a refusal", err, hub.CodeRepoNotGranted)
	if e, ok := errors.AsType[*hub.Error](err); !ok || e.Hint != "do" || e.Message != "no" || len(e.Next) != 0 {
		t.Errorf("%+v", e)
	}

	for what, f := range map[string]http.HandlerFunc{
		"cut":  func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"html": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(502); _, _ = io.WriteString(w, "<html>") },
		"cut in": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "{")
			panic(http.ErrAbortHandler)
		},
		"giant": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `"`+strings.Repeat("x", maxAnswer)+`"`)
		},
	} {
		answer = f
		_, err := home.client.Start(t.Context(), id, key, body)
		if !errors.Is(err, ErrAnswerLost) || !strings.HasPrefix(err.Error(), "the answer of "+home.only().Name+" was lost: ") {
			t.Errorf("%s: %v", what, err)
		}
		plain(t, err)
		_, err = home.client.Show(t.Context(), id, hub.NewDispatchID())
		if errors.Is(err, ErrAnswerLost) {
			t.Errorf("a read: %v", err)
		}
		plain(t, err)
	}

	home.links.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	home.readdress("https://" + ln.Addr().String())
	ln.Close()
	_, err = home.client.Start(t.Context(), id, key, body)
	wantCode(t, "nobody listens", err, hub.CodeRemoteRuntimeUnavailable)
	if errors.Is(err, ErrAnswerLost) || stageOf(err) != StageDial {
		t.Errorf("stage of %v", err)
	}
	plain(t, err)
	if !strings.HasPrefix(err.Error(), home.only().Name+" cannot be reached: dial: ") {
		t.Errorf("%v", err)
	}
	_, err = home.links.Open(t.Context(), id)
	plain(t, err)
}

// plain refuses the name by which peers call each other inside a link: it is no
// address, and says nothing to anybody.
func plain(t *testing.T, err error) {
	t.Helper()
	if err == nil || strings.Contains(err.Error(), ServerName) {
		t.Errorf("shown: %v", err)
	}
}

// A request that was sent over a connection that had just ended is sent again by
// the transport. When nobody is found then, it may have arrived the first time.
func TestASecondTryThatFindsNobody(t *testing.T) {
	home, worker := paired(t)
	id := home.only().ID
	key := hub.NewRequestID()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	worker.mux.HandleFunc("POST /peer/v1/dispatches", worker.known(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Idempotency-Key") == string(key) {
			home.readdress("https://" + ln.Addr().String()) // where nobody is
			panic(http.ErrAbortHandler)
		}
		writeJSON(w, 201, hub.Receipt{State: hub.StartReady})
	}))
	if _, err := home.client.Start(t.Context(), id, hub.NewRequestID(), []byte("{}")); err != nil {
		t.Fatal(err)
	}
	_, err = home.client.Start(t.Context(), id, key, []byte("{}"))
	if !errors.Is(err, ErrAnswerLost) || !strings.HasPrefix(err.Error(), home.only().Name+" may have got the request and cannot be reached any more: dial: ") {
		t.Errorf("%v", err)
	}
	plain(t, err)
}

func TestOutputQueryLeavesOutDefaults(t *testing.T) {
	home, worker := paired(t)
	var got string
	worker.mux.HandleFunc("GET /peer/v1/dispatches/{d}/output", func(w http.ResponseWriter, r *http.Request) {
		got = r.URL.RawQuery
		writeJSON(w, 200, hub.OutputPage{})
	})
	id := home.only().ID
	for want, q := range map[string]OutputQuery{"": {}, "cursor=c&limit=5&source=terminal&wait_ms=7": {"terminal", 5, "c", 7}} {
		if _, err := home.client.Output(t.Context(), id, hub.NewDispatchID(), q); err != nil || got != want {
			t.Errorf("%q %v, want %q", got, err, want)
		}
	}
}

func TestRelaySocket(t *testing.T) {
	home, worker := paired(t)
	served := make(chan error, 1)
	worker.mux.HandleFunc("GET /peer/v1/relay", worker.known(func(w http.ResponseWriter, r *http.Request) {
		c, err := AcceptRelay(w, r)
		if err != nil {
			served <- err
			return
		}
		defer c.Close()
		for {
			f, err := c.ReadFrame(r.Context())
			if err != nil {
				served <- err
				return
			}
			if err := c.WriteFrame(r.Context(), f); err != nil {
				served <- err
				return
			}
		}
	}))
	proxy, err := testkit.NewProxy(worker.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	id := home.readdress("https://" + proxy.Addr())
	c, err := home.links.Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	big := bytes.Repeat([]byte{7}, maxFrame)
	for _, f := range [][]byte{{1}, big} {
		if err := c.WriteFrame(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		if got, err := c.ReadFrame(t.Context()); err != nil || !bytes.Equal(got, f) {
			t.Fatalf("%d bytes %v", len(got), err)
		}
	}
	if err := c.WriteFrame(t.Context(), append(big, 0)); err == nil {
		if _, err = c.ReadFrame(t.Context()); err == nil {
			t.Error("a giant frame came back")
		}
	}
	if err := <-served; err == nil {
		t.Error("the server took a giant frame")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if c, err = home.links.Open(ctx, id); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	proxy.CutAll()
	if _, err := c.ReadFrame(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("after a cut: %v", err)
	}
	<-served
}

func TestRefusedUpgradeNamesItsStage(t *testing.T) {
	home, worker := paired(t)
	worker.mux.HandleFunc("GET /peer/v1/relay", func(w http.ResponseWriter, _ *http.Request) {
		writeProblem(w, hub.Errorf(hub.CodeHubDraining, "stopping"))
	})
	_, err := home.links.Open(t.Context(), home.only().ID)
	wantCode(t, "open", err, hub.CodeHubDraining)
	if stageOf(err) != StageHello {
		t.Errorf("stage of %v", err)
	}
}

func TestConfigsAreValidated(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("New takes nothing")
	}
	if _, err := NewLinks(LinksConfig{}); err == nil {
		t.Error("NewLinks takes nothing")
	}
}
