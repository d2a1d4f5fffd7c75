package server

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/openapi/api"
	"github.com/wavehub/wavehub/openapi/peerapi"
)

func routes(t *testing.T, r chi.Router) []string {
	t.Helper()
	var out []string
	err := chi.Walk(r, func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		out = append(out, method+" "+route)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

// documented lists the routes of a document, with the operation of each.
func documented(t *testing.T, peers bool) map[string]string {
	t.Helper()
	doc, err := api.GetSpec()
	if peers {
		doc, err = peerapi.GetSpec()
	}
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			out[method+" "+path] = operationID(op)
		}
	}
	return out
}

func TestRoutesDocumentsAndScopesAgree(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		router     chi.Router
		peers      bool
		scopes     map[string]kinds
		exceptions []string
	}{
		{w.server.api, false, apiScopes, []string{"GET /openapi.json", "GET /openapi.yaml", "GET /docs"}},
		{w.server.peer, true, peerScopes, nil},
	} {
		docs := documented(t, c.peers)
		if c.peers {
			c.exceptions = beneath(proxyPrefix, documented(t, false))
		}
		var want, ops []string
		for route, id := range docs {
			want, ops = append(want, route), append(ops, id)
		}
		want = append(want, c.exceptions...)
		slices.Sort(want)
		slices.Sort(ops)
		if got := routes(t, c.router); !slices.Equal(got, want) {
			t.Errorf("routed:\n%s\ndocumented:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if got := sortedKeys(c.scopes); !slices.Equal(got, ops) {
			t.Errorf("in the scope table: %q\nin the document: %q", got, ops)
		}
	}
}

// beneath are the routes of a document below a prefix.
func beneath(prefix string, docs map[string]string) (out []string) {
	for route := range docs {
		method, path, _ := strings.Cut(route, " ")
		out = append(out, method+" "+prefix+path)
	}
	return out
}

// TestEveryScopeOfAPeer asks every operation of the API with a peer's key.
func TestEveryScopeOfAPeer(t *testing.T) {
	w := newWorld(t)
	w.paired(hub.PeerActive)
	open := 0
	for _, o := range w.server.apiOps {
		q := example(o)
		q.path = proxyPrefix + q.path
		got := w.doPeer(q)
		allowed := o.allowed&peer != 0
		if refused := got.status == http.StatusForbidden && strings.Contains(got.text("detail"), "does not allow "+o.id); refused == allowed {
			t.Errorf("%s: allowed %v, got %d %s", o.id, allowed, got.status, got.raw)
		}
		if allowed {
			open++
		}
	}
	if open != 15 {
		t.Errorf("a peer may use %d operations", open)
	}
}

// TestEveryScope asks every operation with every credential: what the table
// does not allow is out_of_scope, what it allows is not.
func TestEveryScope(t *testing.T) {
	w := newWorld(t)
	credentials := map[kinds]string{operator: w.operator, attached: w.attached, reader: w.reader, worker: w.worker(), worker | coordinator: w.coordinator().token}
	for _, o := range w.server.apiOps {
		for kind, token := range credentials {
			q := example(o)
			q.token = token
			got := w.do(q)
			allowed := o.allowed&(kind|anyone) != 0
			if refused := got.status == http.StatusForbidden && strings.Contains(got.text("detail"), "does not allow "+o.id); refused == allowed {
				t.Errorf("%s with kind %d: allowed %v, got %d %s", o.id, kind, allowed, got.status, got.raw)
			}
		}
		if o.mutates() && o.allowed&reader != 0 {
			t.Errorf("%s changes something and a reader may use it", o.id)
		}
	}
}

// worker makes a Dispatch with a live worker and returns its capability.
func (w *world) worker() string {
	w.t.Helper()
	_, d := w.started()
	token, _ := fakeAuthority{}.Capability("", hub.DispatchID(d))
	return token
}

func (w *world) started() (task, dispatch string) {
	w.t.Helper()
	run := w.post(201, "/v1/runs", `{"objective":"audit"}`).text("run", "run_id")
	task = w.post(201, "/v1/runs/"+run+"/tasks", `{"spec":"look"}`).text("task", "task_id")
	out := w.post(201, "/v1/tasks/"+task+"/workers", `{"worktree":"path:/x","agent":"fake"}`)
	return task, out.text("dispatch_id")
}

// example is a request for the operation whose ids do not exist and whose body
// has what is required.
func example(o *operation) request {
	path := o.pattern
	for _, name := range []string{"run", "task", "dispatch", "message", "box", "peer", "request"} {
		path = strings.ReplaceAll(path, "{"+name+"}", "none")
	}
	q := request{method: o.method, path: path}
	if o.body != nil {
		q.body = "{}"
	}
	return q
}
