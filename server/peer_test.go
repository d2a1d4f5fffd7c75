package server

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// paired makes a home that every connection belongs to.
func (w *world) paired(state hub.PeerState) hub.Peer {
	w.t.Helper()
	p := hub.Peer{
		ID: hub.NewPeerID(), Name: "home", Lineage: "hub_home", Fingerprint: "f", Role: hub.RoleHome, State: state,
		Grants: hub.Grants{Verbs: []string{hub.GrantStart, hub.GrantRead, hub.GrantProxy}, Repos: []string{"/x"}},
	}
	w.update(func(tx store.Tx) error { return tx.PutPeer(p) })
	w.peers.mu.Lock()
	defer w.peers.mu.Unlock()
	w.peers.peer = &p
	return p
}

func startBody(t *testing.T, id hub.DispatchID, more string) string {
	t.Helper()
	raw, err := json.Marshal(hub.PeerStart{
		Dispatch: id, Task: hub.NewTaskID(), Run: hub.NewRunID(), Prompt: "look", StoreID: "store", Epoch: 1, Contract: hub.ContractFederation,
		Spec: hub.StartSpec{Worktree: "path:/x", Agent: "fake"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(raw), "}") + more + "}"
}

func TestKeysThatAreNotPairedReachPairingOnly(t *testing.T) {
	w := newWorld(t)
	ask := func(code string) {
		t.Helper()
		if got := w.doPeer(request{method: "GET", path: "/peer/v1/pair", host: "anything"}); got.raw != "pair" {
			t.Errorf("pair: %s", got.raw)
		}
		for _, q := range []request{
			{method: "GET", path: "/peer/v1/hello"}, {method: "GET", path: "/peer/v1/relay"}, {method: "GET", path: "/peer/v1/park"}, {method: "GET", path: "/peer/v1/dispatches/d"},
			{method: "POST", path: "/peer/v1/probe", body: "{}"}, {method: "POST", path: "/peer/v1/dispatches", body: "{}"},
			{method: "POST", path: "/peer/v1/dispatches/d/stop", body: "{}"}, {method: "GET", path: "/peer/v1/dispatches/d/output"},
		} {
			if got := w.doPeer(q); got.code() != code {
				t.Errorf("%s: want %s, got %d %s", q.path, code, got.status, got.raw)
			}
		}
	}
	ask("invalid_token")
	w.paired(hub.PeerRevoked)
	ask("peer_revoked")
}

func TestPeerStartsShowsAndStops(t *testing.T) {
	w := newWorld(t)
	w.paired(hub.PeerActive)
	if got := w.doPeer(request{method: "GET", path: "/peer/v1/hello", host: "peer"}); got.text("hub_id") != "hub_test" {
		t.Errorf("hello: %s", got.raw)
	}
	if got := w.doPeer(request{method: "GET", path: "/peer/v1/relay"}); got.raw != "relay" {
		t.Errorf("relay: %s", got.raw)
	}
	w.peers.takes(hub.RoleWorker)
	if got := w.doPeer(request{method: "GET", path: "/peer/v1/relay"}); got.code() != "out_of_scope" {
		t.Errorf("relay, for a hub that is no home: %s", got.raw)
	}
	w.peers.takes(hub.RoleHome)
	if got := w.doPeer(request{method: "GET", path: "/peer/v1/park"}); got.raw != "park" {
		t.Errorf("park: %s", got.raw)
	}
	id := hub.NewDispatchID()
	body := startBody(t, id, `,"a_field_of_next_year":{"x":1}`)
	if got := w.doPeer(request{method: "POST", path: "/peer/v1/probe", body: body}); got.status != 200 {
		t.Errorf("probe: %s", got.raw)
	}
	start := request{method: "POST", path: "/peer/v1/dispatches", body: body, key: string(hub.NewRequestID())}
	if got := w.doPeer(start); got.status != 201 || got.text("state") != "ready" {
		t.Fatalf("start: %d %s", got.status, got.raw)
	}
	if got := w.doPeer(start); got.status != 201 || got.at("mutation", "replayed") != true {
		t.Errorf("the start again: %d %s", got.status, got.raw)
	}
	show := w.doPeer(request{method: "GET", path: "/peer/v1/dispatches/" + string(id)})
	if show.at("attached") != true || show.at("observation", "process") != "live" {
		t.Errorf("show: %s", show.raw)
	}
	stop := request{method: "POST", path: "/peer/v1/dispatches/" + string(id) + "/stop", body: `{"store_id":"store"}`, key: string(hub.NewRequestID())}
	if got := w.doPeer(stop); got.status != 200 || got.at("proved") != true {
		t.Errorf("stop: %d %s", got.status, got.raw)
	}
}

func TestPeerUnknownStartIs202(t *testing.T) {
	w := newWorld(t)
	w.paired(hub.PeerActive)
	w.terminal.lose = true
	q := request{method: "POST", path: "/peer/v1/dispatches", body: startBody(t, hub.NewDispatchID(), ""), key: string(hub.NewRequestID())}
	if got := w.doPeer(q); got.status != 202 || got.text("state") != "outcome_unknown" {
		t.Errorf("%d %s", got.status, got.raw)
	}
}

func TestPeerRefusals(t *testing.T) {
	w := newWorld(t)
	w.paired(hub.PeerActive)
	id := hub.NewDispatchID()
	start := "/peer/v1/dispatches"
	for name, c := range map[string]struct {
		q    request
		code string
	}{
		"no key":        {request{method: "POST", path: start, body: startBody(t, id, "")}, "invalid_argument"},
		"bad key":       {request{method: "POST", path: start, body: startBody(t, id, ""), key: "x"}, "invalid_argument"},
		"no body":       {request{method: "POST", path: start, key: string(hub.NewRequestID()), header: map[string]string{"Content-Type": "application/json"}}, "invalid_argument"},
		"duplicate":     {request{method: "POST", path: start, body: `{"a":1,"a":2}`}, "invalid_json"},
		"no object":     {request{method: "POST", path: start, body: `[]`, key: string(hub.NewRequestID())}, "invalid_argument"},
		"wrong type":    {request{method: "POST", path: start, body: `{"dispatch_id":7}`, key: string(hub.NewRequestID())}, "invalid_argument"},
		"large stop":    {request{method: "POST", path: start + "/d/stop", body: `{"x":"` + strings.Repeat("y", otherBody) + `"}`}, "too_large"},
		"large start":   {request{method: "POST", path: start, body: `{"x":"` + strings.Repeat("y", taskBody) + `"}`}, "too_large"},
		"stop of no id": {request{method: "POST", path: start + "/d/stop", body: `{}`, key: string(hub.NewRequestID())}, "invalid_argument"},
		"outside":       {request{method: "POST", path: start, body: strings.Replace(startBody(t, id, ""), "path:/x", "path:/y", 1), key: string(hub.NewRequestID())}, "repo_not_granted"},
		"media":         {request{method: "POST", path: start, body: "{}", header: map[string]string{"Content-Type": "text/plain"}}, "unsupported_media_type"},
		"unknown path":  {request{method: "GET", path: "/v1/runs"}, "not_found"},
		"method":        {request{method: "PUT", path: start}, "method_not_allowed"},
	} {
		if got := w.doPeer(c.q); got.code() != c.code {
			t.Errorf("%s: want %s, got %d %s", name, c.code, got.status, got.raw)
		}
	}
}

// TestADispatchIsAttachedOnce: what a home started under one request it cannot
// start under another.
func TestADispatchIsAttachedOnce(t *testing.T) {
	w := newWorld(t)
	w.paired(hub.PeerActive)
	start := request{method: "POST", path: "/peer/v1/dispatches", body: startBody(t, hub.NewDispatchID(), ""), key: string(hub.NewRequestID())}
	if got := w.doPeer(start); got.status != http.StatusCreated {
		t.Fatal(got.raw)
	}
	start.key = string(hub.NewRequestID())
	if got := w.doPeer(start); got.status != http.StatusConflict || got.code() != string(hub.CodeResourceServerMismatch) {
		t.Errorf("%d %s", got.status, got.raw)
	}
}

func TestPeerOutputFitsInOneAnswer(t *testing.T) {
	w := newWorld(t)
	w.paired(hub.PeerActive)
	w.terminal.text = strings.Repeat("\u2028", 200<<10) + "\n" // twice as long in JSON
	id := hub.NewDispatchID()
	q := request{method: "POST", path: "/peer/v1/dispatches", body: startBody(t, id, ""), key: string(hub.NewRequestID())}
	if got := w.doPeer(q); got.status != http.StatusCreated {
		t.Fatal(got.raw)
	}
	got := w.doPeer(request{method: "GET", path: "/peer/v1/dispatches/" + string(id) + "/output?limit=1000"})
	text := got.text("terminal", "text")
	if got.status != 200 || len(got.raw) > maxPeerAnswer || len(text) < 100<<10 || !strings.HasSuffix(text, "\u2028\n") || got.at("terminal", "truncated") != true {
		t.Errorf("%d, %d bytes, %d of text", got.status, len(got.raw), len(text))
	}
}
