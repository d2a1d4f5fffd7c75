package cli

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/wavehub/wavehub/internal/capfile"
	"github.com/wavehub/wavehub/internal/config"
	"github.com/wavehub/wavehub/internal/keystore"
)

// seen is one request that reached the fake hub.
type seen struct {
	route, query, body string
	head               http.Header
}

// fakeHub answers routes ("GET /v1/hub") with canned documents.
type fakeHub struct {
	t      *testing.T
	srv    *httptest.Server
	routes map[string]http.HandlerFunc

	mu   sync.Mutex
	seen []seen
}

// newHub serves a hub and points the environment at it as the local one.
func newHub(t *testing.T) *fakeHub {
	t.Helper()
	h := &fakeHub{t: t, routes: map[string]http.HandlerFunc{}}
	h.srv = httptest.NewUnstartedServer(http.HandlerFunc(h.serve))
	h.srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	h.srv.StartTLS()
	t.Cleanup(h.srv.Close)
	home := t.TempDir()
	for _, name := range []string{"WAVEHUB_CONFIG_DIR", "WAVEHUB_DATA_DIR", envConsumer, envConsumerFile, envTerminal, "NO_COLOR"} {
		t.Setenv(name, "")
	}
	t.Setenv(envDispatchFile, "")
	if err := os.Unsetenv(envDispatchFile); err != nil {
		t.Fatal(err)
	}
	t.Setenv("WAVEHUB_HOME", home)
	data := filepath.Join(home, "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	h.write(filepath.Join(data, "token"), "whu_operator\n", 0o600)
	if err := config.WriteEndpoint(data, config.Endpoint{URL: h.srv.URL, Fingerprint: h.fingerprint(), HubID: "hub_x"}); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *fakeHub) fingerprint() string { return keystore.FingerprintOf(h.srv.Certificate()) }

func (h *fakeHub) write(path, text string, mode os.FileMode) {
	h.t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		h.t.Fatal(err)
	}
}

// enterDispatch makes a capability file the credential.
func (h *fakeHub) enterDispatch() string {
	h.t.Helper()
	raw, err := capfile.Encode(capfile.File{
		URL: h.srv.URL, Fingerprint: h.fingerprint(), Token: "whd_capability",
		RunID: "run_1", TaskID: "task_1", DispatchID: "dispatch_1",
	})
	if err != nil {
		h.t.Fatal(err)
	}
	path := filepath.Join(h.t.TempDir(), "dispatch")
	h.write(path, string(raw), 0o600)
	h.t.Setenv(envDispatchFile, path)
	return path
}

func (h *fakeHub) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		h.t.Error(err)
	}
	route := r.Method + " " + r.URL.Path
	h.mu.Lock()
	h.seen = append(h.seen, seen{route: route, query: r.URL.RawQuery, body: string(body), head: r.Header.Clone()})
	handler := h.routes[route]
	h.mu.Unlock()
	if handler == nil {
		problem(w, 404, "not_found")
		return
	}
	handler(w, r)
}

func (h *fakeHub) on(route string, status int, doc string) {
	h.handle(route, func(w http.ResponseWriter, _ *http.Request) { reply(w, status, "application/json", doc) })
}

func (h *fakeHub) fail(route string, status int, code string) {
	h.handle(route, func(w http.ResponseWriter, _ *http.Request) { problem(w, status, code) })
}

func (h *fakeHub) handle(route string, handler http.HandlerFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.routes[route] = handler
}

func (h *fakeHub) requests() []seen {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]seen(nil), h.seen...)
}

func (h *fakeHub) last() seen {
	h.t.Helper()
	all := h.requests()
	if len(all) == 0 {
		h.t.Fatal("no request reached the hub")
	}
	return all[len(all)-1]
}

func reply(w http.ResponseWriter, status int, kind, doc string) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, doc)
}

func problem(w http.ResponseWriter, status int, code string) {
	reply(w, status, "application/problem+json", `{"code":"`+code+`","title":"T of `+code+`","status":`+strconv.Itoa(status)+`,"retry":"never"}`)
}

// lose reads the request and drops the connection.
func lose(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

// result is what one command line did.
type result struct {
	code        int
	out, errout string
}

func wavehub(t *testing.T, args ...string) result {
	t.Helper()
	return wavehubIn(t, t.Context(), "", args...)
}

func wavehubIn(t *testing.T, ctx context.Context, stdin string, args ...string) result {
	t.Helper()
	var out, errout bytes.Buffer
	code := Main(ctx, BuildInfo{Version: "test"}, args, strings.NewReader(stdin), &out, &errout)
	return result{code, out.String(), errout.String()}
}

func (r result) want(t *testing.T, code int, parts ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d; stdout %q, stderr %q", r.code, code, r.out, r.errout)
	}
	for _, part := range parts {
		if !strings.Contains(r.out+r.errout, part) {
			t.Errorf("%q is missing; stdout %q, stderr %q", part, r.out, r.errout)
		}
	}
}
