package server

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// fakeLinks stands for all other hubs.
type fakeLinks struct {
	mu     sync.Mutex
	to     string    // guarded by mu; the hub of the last request
	asked  Forwarded // guarded by mu
	count  int       // guarded by mu
	answer Returned
	err    error
}

func (f *fakeLinks) take(_ context.Context, to string, q Forwarded) (Returned, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.to, f.asked, f.count = to, q, f.count+1
	return f.answer, f.err
}

func through(name string) map[string]string { return map[string]string{hubHeader: name} }

func TestForwardedRequestsKeepWhatTheyAre(t *testing.T) {
	w := newWorld(t)
	w.forwarded.answer = Returned{Status: 201, Body: []byte(`{"b": 1.0, "a":"<é>"}`)}
	key := string(hub.NewRequestID())
	body := `{ "text":"ls",  "enter":true}`
	got := send(t, w.server.API(), request{
		method: "POST", path: "/v1/terminals/a%2Fb/input", body: body, key: key, token: w.operator, header: through("windows"),
	})
	if got.status != 201 || got.raw != `{"b":1.0,"a":"<é>"}`+"\n" || got.header.Get("Content-Type") != "application/json" {
		t.Errorf("%d %q %v", got.status, got.raw, got.header)
	}
	q := w.forwarded.asked
	if w.forwarded.to != "windows" || q.Method != "POST" || q.Path != "/v1/terminals/a%2Fb/input" || q.Query != "" || q.Key != key || string(q.Body) != body {
		t.Errorf("%s got %+v %s", w.forwarded.to, q, q.Body)
	}
	w.forwarded.answer = Returned{Status: 200, Body: []byte(`{}`)}
	send(t, w.server.API(), request{method: "GET", path: "/v1/terminals?live=true&limit=3", token: w.operator, header: through("windows")})
	if q := w.forwarded.asked; q.Method != "GET" || q.Path != "/v1/terminals" || q.Query != "live=true&limit=3" || q.Key != "" || q.Body != nil {
		t.Errorf("%+v", q)
	}
	if w.forwarded.count != 2 {
		t.Errorf("%d requests were sent on", w.forwarded.count)
	}
}

// A mutation without a request id gets one, under which its outcome can be asked
// for; the errors of another hub come with it.
func TestForwardedMutationsHaveARequestID(t *testing.T) {
	w := newWorld(t)
	w.forwarded.err = hub.Errorf(hub.CodeOutcomeUnknown, "lost")
	q := request{method: "POST", path: "/v1/terminals", body: `{"dir":"/x"}`, token: w.operator, header: through("windows")}
	got := send(t, w.server.API(), q)
	if id := got.text("request_id"); got.status != 202 || got.code() != "outcome_unknown" || id != w.forwarded.asked.Key || !hub.ValidID(hub.PrefixRequest, id) {
		t.Errorf("%d %s, sent under %q", got.status, got.raw, w.forwarded.asked.Key)
	}
	w.forwarded.err = hub.Errorf(hub.CodePeerNotFound, "there is no peer windows")
	if got := send(t, w.server.API(), q); got.status != 404 || got.code() != "peer_not_found" {
		t.Errorf("%d %s", got.status, got.raw)
	}
}

// Only the operator reaches other hubs, and there only what a peer may use.
func TestOnlyTheOperatorReachesOtherHubs(t *testing.T) {
	w := newWorld(t)
	w.forwarded.answer = Returned{Status: 200, Body: []byte(`{}`)}
	others := map[string]string{"reader": w.reader, "worker": w.worker(), "coordinator": w.coordinator().token, "attached": w.attached}
	for _, o := range w.server.apiOps {
		for name, token := range others {
			q := example(o)
			q.token, q.header = token, through("windows")
			if got := w.do(q); got.code() != "out_of_scope" {
				t.Errorf("%s with the credential of a %s: %d %s", o.id, name, got.status, got.raw)
			}
		}
		q := example(o)
		q.token, q.header = w.operator, through("windows")
		got := send(t, w.server.API(), q)
		if o.allowed&peer == 0 && got.code() != "out_of_scope" {
			t.Errorf("%s: %d %s", o.id, got.status, got.raw)
		}
	}
	if n := w.forwarded.count; n < 8 || n > 15 {
		t.Errorf("%d requests were sent on", n)
	}
	before := w.forwarded.count
	for name, c := range map[string]struct {
		q    request
		code string
	}{
		"no credential": {request{method: "GET", path: "/v1/repos", header: through("windows")}, "invalid_token"},
		"no name":       {request{method: "GET", path: "/v1/repos", token: w.operator, header: through("")}, "invalid_argument"},
		"bad query":     {request{method: "GET", path: "/v1/repos?limits=3", token: w.operator, header: through("windows")}, "invalid_argument"},
		"bad body":      {request{method: "POST", path: "/v1/terminals", body: `{"x":1}`, token: w.operator, header: through("windows")}, "invalid_argument"},
		"broken body":   {request{method: "POST", path: "/v1/terminals", body: `{"dir":`, token: w.operator, header: through("windows")}, "invalid_json"},
		"large body":    {request{method: "POST", path: "/v1/terminals", body: `{"dir":"` + strings.Repeat("x", otherBody) + `"}`, token: w.operator, header: through("windows")}, "too_large"},
		"health":        {request{method: "GET", path: "/healthz", header: through("windows")}, "out_of_scope"},
	} {
		if got := w.do(c.q); got.code() != c.code {
			t.Errorf("%s: want %s, got %d %s", name, c.code, got.status, got.raw)
		}
	}
	twice := request{method: "GET", path: "/v1/repos", token: w.operator}.http()
	twice.Header[hubHeader] = []string{"a", "b"}
	if got := serve(t, w.server.API(), twice); got.code() != "invalid_argument" {
		t.Errorf("two names: %s", got.raw)
	}
	if w.forwarded.count != before {
		t.Error("a refused request was sent on")
	}
}

// proxied asks as the paired peer.
func (w *world) proxied(q request) response {
	w.t.Helper()
	q.path = proxyPrefix + q.path
	return w.doPeer(q)
}

// regrant changes what the peer may do from now on.
func (w *world) regrant(p hub.Peer, change func(*hub.Peer)) {
	w.t.Helper()
	change(&p)
	w.update(func(tx store.Tx) error { return tx.SavePeer(p) })
	w.peers.mu.Lock()
	defer w.peers.mu.Unlock()
	w.peers.peer = &p
}

func TestPeersNeedTheGrantForCommands(t *testing.T) {
	w := newWorld(t)
	if got := w.proxied(request{method: "GET", path: "/v1/repos"}); got.code() != "invalid_token" {
		t.Errorf("a stranger: %s", got.raw)
	}
	if got := w.proxied(request{method: "GET", path: "/healthz"}); got.code() != "invalid_token" {
		t.Errorf("a stranger's look: %s", got.raw)
	}
	p := w.paired(hub.PeerActive)
	list := request{method: "GET", path: "/v1/repos"}
	create := request{method: "POST", path: "/v1/terminals", body: `{"dir":"/x","agent":"fake"}`}
	if got := w.proxied(list); got.status != http.StatusOK {
		t.Fatalf("with the grant: %s", got.raw)
	}
	for name, c := range map[string]struct {
		change func(*hub.Peer)
		code   string
	}{
		"no grant": {func(p *hub.Peer) { p.Grants.Verbs = []string{hub.GrantStart, hub.GrantRead} }, "out_of_scope"},
		"no home":  {func(p *hub.Peer) { p.Role = hub.RoleWorker }, "out_of_scope"},
		"revoked":  {func(p *hub.Peer) { p.State = hub.PeerRevoked }, "peer_revoked"},
		"removed":  {func(p *hub.Peer) { p.State = hub.PeerRemoved }, "peer_revoked"},
	} {
		w.regrant(p, c.change)
		for _, q := range []request{list, create} {
			if got := w.proxied(q); got.code() != c.code {
				t.Errorf("%s: %d %s", name, got.status, got.raw)
			}
		}
		// What the guards saw is a moment old: the transaction sees it itself.
		w.regrant(p, func(*hub.Peer) {})
		changed := p
		c.change(&changed)
		w.update(func(tx store.Tx) error { return tx.SavePeer(changed) })
		for _, q := range []request{list, create} {
			if got := w.proxied(q); got.code() != c.code {
				t.Errorf("%s, by the time of the look: %d %s", name, got.status, got.raw)
			}
		}
	}
	w.regrant(p, func(*hub.Peer) {})
	if got := w.proxied(request{method: "GET", path: "/v1/repos", header: through("third")}); got.code() != "out_of_scope" {
		t.Errorf("sent on: %s", got.raw)
	}
	if len(w.terminal.entered) != 0 || w.forwarded.count != 0 {
		t.Error("something was started or sent on")
	}
}

func TestPeersAreGuardedAsOthersAre(t *testing.T) {
	w := newWorld(t)
	w.paired(hub.PeerActive)
	for name, c := range map[string]struct {
		q    request
		code string
	}{
		"query":   {request{method: "GET", path: "/v1/repos?limits=1"}, "invalid_argument"},
		"type":    {request{method: "POST", path: "/v1/terminals", body: `{"dir":7}`}, "invalid_argument"},
		"twice":   {request{method: "POST", path: "/v1/terminals", body: `{"dir":"/x","dir":"/y"}`}, "invalid_json"},
		"large":   {request{method: "POST", path: "/v1/terminals", body: `{"dir":"` + strings.Repeat("x", otherBody) + `"}`}, "too_large"},
		"larger":  {request{method: "POST", path: "/v1/messages", body: `{"body":"` + strings.Repeat("x", otherBody) + `"}`}, "too_large"},
		"media":   {request{method: "POST", path: "/v1/terminals", body: "{}", header: map[string]string{"Content-Type": "text/plain"}}, "unsupported_media_type"},
		"method":  {request{method: "PUT", path: "/v1/repos"}, "method_not_allowed"},
		"address": {request{method: "GET", path: "/v1/nothing"}, "not_found"},
		"key":     {request{method: "POST", path: "/v1/terminals", body: `{"dir":"/x"}`, key: "mine"}, "invalid_argument"},
		"token":   {request{method: "POST", path: "/v1/runs", body: `{"objective":"x"}`, token: w.operator}, "out_of_scope"},
		"health":  {request{method: "GET", path: "/healthz"}, "out_of_scope"},
		"stream":  {request{method: "GET", path: "/v1/mailboxes/b/stream"}, "out_of_scope"},
	} {
		if got := w.proxied(c.q); got.code() != c.code {
			t.Errorf("%s: want %s, got %d %s", name, c.code, got.status, got.raw)
		}
	}
}
