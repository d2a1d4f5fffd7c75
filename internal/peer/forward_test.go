package peer

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

// forwarding is a pair of which the worker offers proxy/1 and answers with answer.
type forwarding struct {
	t      *testing.T
	home   *side
	worker *side
	id     hub.PeerID
	answer http.HandlerFunc
	asked  atomic.Int64
}

func newForwarding(t *testing.T) *forwarding {
	home, worker := paired(t)
	worker.offer(hub.Features()...)
	f := &forwarding{t: t, home: home, worker: worker, id: home.only().ID}
	worker.mux.HandleFunc(proxyPath+"/", worker.known(func(w http.ResponseWriter, r *http.Request) {
		f.asked.Add(1)
		f.answer(w, r)
	}))
	return f
}

// offer changes the features of the hello.
func (s *side) offer(features ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hello = func(h *hub.Hello) { h.Features = features }
}

func (f *forwarding) read() (Returned, error) {
	return f.home.client.Forward(f.t.Context(), f.id, Forwarded{Method: "GET", Path: "/v1/repos", Query: "limit=2"})
}

func (f *forwarding) change(key string) (Returned, error) {
	return f.home.client.Forward(f.t.Context(), f.id, Forwarded{Method: "POST", Path: "/v1/terminals/a%2Fb/input", Key: key, Body: []byte(`{"text":  "x"}`)})
}

func TestForwardSendsTheRequestAndNothingElse(t *testing.T) {
	f := newForwarding(t)
	key := string(hub.NewRequestID())
	f.answer = func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		head := r.Header.Clone()
		for _, name := range []string{"Content-Type", "Idempotency-Key", "Content-Length", "User-Agent"} {
			head.Del(name)
		}
		if err != nil || string(body) != `{"text":  "x"}` || r.Header.Get("Idempotency-Key") != key || r.Header.Get("Content-Type") != "application/json" ||
			r.URL.EscapedPath() != "/peer/v1/proxy/v1/terminals/a%2Fb/input" || len(head) != 0 {
			t.Errorf("%s %s %q %v %v", r.Method, r.URL.EscapedPath(), body, r.Header, err)
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, `  {"state": "sent", "next_commands":[["wavehub","x"]]}`)
	}
	got, err := f.change(key)
	if err != nil || got.Status != 202 || string(got.Body) != `  {"state": "sent", "next_commands":[]}` {
		t.Errorf("%d %q %v", got.Status, got.Body, err)
	}
	f.answer = func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "GET" || r.URL.RequestURI() != "/peer/v1/proxy/v1/repos?limit=2" || r.Header.Get("Idempotency-Key") != "" || r.Header.Get("Content-Type") != "" {
			t.Errorf("%s %s %v", r.Method, r.URL.RequestURI(), r.Header)
		}
		writeJSON(w, 200, map[string]int{"n": 1})
	}
	if got, err := f.read(); err != nil || got.Status != 200 || string(got.Body) != "{\"n\":1}\n" {
		t.Errorf("%d %q %v", got.Status, got.Body, err)
	}
}

func TestForwardAsksForTheFeatureFirst(t *testing.T) {
	f := newForwarding(t)
	f.worker.offer("something/1")
	_, err := f.change(string(hub.NewRequestID()))
	wantCode(t, "without the feature", err, hub.CodeCapabilityUnsupported)
	f.worker.offer()
	_, err = f.read()
	wantCode(t, "without any", err, hub.CodeCapabilityUnsupported)
	if f.asked.Load() != 0 {
		t.Error("the request was sent")
	}
}

// A problem is an error of its code, without its commands, under whatever status.
func TestForwardReturnsRefusals(t *testing.T) {
	f := newForwarding(t)
	for status, code := range map[int]hub.Code{403: hub.CodeOutOfScope, 202: hub.CodeOutcomeUnknown, 503: hub.CodeHubDraining} {
		f.answer = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"code":"`+string(code)+`","title":"T","detail":"no","status":1,"retry":"never","next_commands":[["a"]]}`)
		}
		_, err := f.change(string(hub.NewRequestID()))
		if e, ok := errors.AsType[*hub.Error](err); !ok || e.Code != code || e.Message != "no" || len(e.Next) != 0 {
			t.Errorf("%d: %v", status, err)
		}
	}
}

func TestForwardLosesAnswers(t *testing.T) {
	f := newForwarding(t)
	giant := `{"a":"` + strings.Repeat("x", maxAnswer) + `"}`
	for name, answer := range map[string]http.HandlerFunc{
		"cut":       func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"html":      func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") },
		"html, 404": func(w http.ResponseWriter, _ *http.Request) { http.NotFound(w, nil) },
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://127.0.0.1:1/", http.StatusFound)
		},
		"no problem": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(500)
		},
		"half": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"a":`)
		},
		"two": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{}{}`)
		},
		"giant error": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(500)
			_, _ = io.WriteString(w, giant)
		},
	} {
		f.answer = answer
		key := string(hub.NewRequestID())
		_, err := f.change(key)
		wantCode(t, name, err, hub.CodeOutcomeUnknown)
		if e, ok := errors.AsType[*hub.Error](err); !ok || !strings.Contains(e.Hint, key) {
			t.Errorf("%s: the request id is not named: %v", name, err)
		}
		_, err = f.read()
		wantCode(t, name+", a read", err, hub.CodeRemoteRuntimeUnavailable)
	}
	f.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, giant)
	}
	_, err := f.change(string(hub.NewRequestID()))
	wantCode(t, "giant", err, hub.CodeOutcomeUnknown)
	_, err = f.read()
	wantCode(t, "a giant read", err, hub.CodeTooLarge)
	f.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, giant[:len(giant)-len("xxxxxxxx\"}")]+`"}`)
	}
	if got, err := f.read(); err != nil || len(got.Body) != maxAnswer {
		t.Errorf("at the limit: %d bytes, %v", len(got.Body), err)
	}
}

func TestForwardUnsentIsUnavailable(t *testing.T) {
	f := newForwarding(t)
	f.answer = func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, 200, 1) }
	f.home.readdress("https://127.0.0.1:1")
	_, err := f.change(string(hub.NewRequestID()))
	wantCode(t, "nobody listens", err, hub.CodeRemoteRuntimeUnavailable)
	if f.asked.Load() != 0 {
		t.Error("it was sent")
	}
}
