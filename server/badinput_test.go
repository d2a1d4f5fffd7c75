package server

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/wavehub/wavehub/internal/hub"
)

// Raw JSON of values that no field may take, by the type that its schema has.
// What a string field may hold at most is its own business: a megabyte is over
// all of it but a spec's.
var badValues = map[string][]string{
	"string": {
		`"` + strings.Repeat("a", 1_000_000) + `"`, `"a\u0000b"`, `"\ud800"`, "\"\xff\"", `1`, `true`, `{}`, `["a"]`, `null`,
	},
	"integer": {`1e309`, `-1e309`, `-1`, `1.5`, `9223372036854775808`, `1e19`, `"1"`, `true`, `null`, `[]`, `0x10`, `NaN`, `+1`, `01`},
	"boolean": {`"true"`, `1`, `null`, `{}`},
	"array":   {`"a"`, `{}`, `1`, `[null]`, `[1]`, `[{}]`, `["a\u0000b"]`, `null`},
	"object":  {`"a"`, `[]`, `1`, `null`, `{"a":1,"a":2}`, strings.Repeat(`{"a":`, 40) + `1` + strings.Repeat(`}`, 40)},
}

// mayBe lists what a field takes although its type's list holds it: free JSON.
var anyJSON = []string{`1`, `true`, `{}`, `["a"]`, `null`, `"a\u0000b"`, `"\ud800"`}

var mayBe = map[string][]string{"result": anyJSON, "backend_ctx": anyJSON, "metadata": {`{}`}, "defaults": {`{}`}}

// bases are bodies that are taken as they are, by operation.
func (w *world) bases() map[string]string {
	run, task, dispatch, token := w.working()
	fresh := w.post(201, "/v1/runs/"+run+"/tasks", `{"spec":"x"}`).text("task", "task_id")
	terminal, _ := w.createdTerminal(`{"dir":"/x"}`)
	message := `{"to":"run:` + run + `","type":"status","body":"b"}`
	return map[string]string{
		"createRun": `{"objective":"o","bind":"none"}`, "createTask": `{"spec":"s"}`, "updateTask": `{"title":"t"}`,
		"startWorker": `{"worktree":"path:/x","agent":"fake","no_wait":true}`, "sendMessage": message,
		"startRunWorker": `{"task":{"spec":"s"},"start":{"worktree":"path:/x","agent":"fake","no_wait":true}}`,
		"sendMessages":   `{"messages":[` + message + `]}`, "replyMessage": `{"body":"b"}`, "checkMailbox": `{}`,
		"addRepo": `{"path":"/x"}`, "createInvite": `{}`, "rotateKey": `{}`, "setPeerReverse": `{"reverse":true}`, "addPeer": `{"name":"n","url":"https://127.0.0.1:1","code":"AAAA-AAAA-AAAA-AAAA"}`,
		"createWorktree": `{"name":"n"}`, "removeWorktree": `{}`, "createTerminal": `{"dir":"/x"}`, "sendTerminal": `{"text":"x"}`, "closeTerminal": `{}`, "terminal": terminal,
		"stopWorker": `{}`, "abandonWorker": `{}`, "bindRun": `{}`, "putHeartbeat": `{}`, "testAgent": `{}`, "putAgentEvent": `{"event":"Stop"}`,
		"createDispatch": `{"to":"worker:w-1","no_wait":true}`,
		"registerWorker": `{"name":"w-2"}`, "drainWorker": `{}`, "revokeWorker": `{}`, "attachWorker": `{}`, "putPresence": `{}`,
		"updatePeer": `{"name":"n"}`, "grantPeer": `{"max_workers":1}`, "removePeer": `{}`, "revokeInvite": `{}`,
		"updateSession": `{"backend_ctx":1}`, "worker": "w-1", "session": "none", "peer": "a", "invite": string(hub.NewInviteID()),
		"planWave": `{}`, "createWave": `{"run_id":"` + run + `"}`, "spawnWave": `{}`, "cancelWave": `{}`, "retryWave": `{}`,
		"addWaveTask": `{"task":{"task_id":"a","goal":"g"}}`, "updateWaveTask": `{"goal":"g"}`,
		"run": run, "task": fresh, "dispatch": dispatch, "box": "run:" + run, "message": string(hub.NewMessageID()), "busy": task, "token": token,
	}
}

// TestBadInputIsTypedAndStoresNothing sends every field of every body, every
// path and query parameter and every header values that it cannot have. Each is
// refused by the caller's fault, with a code, and not one leads to a commit.
func TestBadInputIsTypedAndStoresNothing(t *testing.T) {
	w := newWorld(t)
	bases := w.bases()
	tried := 0
	try := func(o *operation, what string, q request) {
		t.Helper()
		q.method, q.token = o.method, w.operator
		if o.allowed&operator == 0 {
			q.token = bases["token"]
		}
		if o.allowed&(operator|worker) == 0 {
			q.token = w.attached
		}
		before := w.commits.Load()
		got := w.do(q)
		tried++
		switch code := got.code(); {
		case got.status >= 200 && got.status < 300:
			t.Errorf("%s: %.120s was taken: %.200s", o.id, what, got.raw)
		case got.status >= 500 || !hub.Code(code).Known():
			t.Errorf("%s: %.120s: %d %.200s", o.id, what, got.status, got.raw)
		case w.commits.Load() != before:
			t.Errorf("%s: %.120s was refused with %s and committed something", o.id, what, code)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(w.server.apiOps), byPath) {
		o := w.server.apiOps[key]
		if o.allowed&anyone != 0 {
			continue // they look at nothing
		}
		path := pathOf(o, bases)
		for name, bad := range badFields(t, o, bases[o.id]) {
			try(o, name, request{path: path, body: bad})
		}
		for name, bad := range badPaths(o, bases) {
			try(o, name, request{path: bad, body: bases[o.id]})
		}
		for name, bad := range badQueries(o) {
			try(o, name, request{path: path + "?" + bad, body: bases[o.id]})
		}
		for _, p := range o.params {
			if p.Value.In == openapi3.ParameterInHeader {
				try(o, "an empty "+p.Value.Name, request{path: path, body: bases[o.id], header: map[string]string{p.Value.Name: ""}})
			}
		}
		if o.mutates() && o.id != "putHeartbeat" && o.id != "putAgentEvent" && o.id != "putPresence" && o.id != "planWave" {
			for _, id := range []string{"x", "req_" + strings.Repeat("0", 27), "req_" + strings.Repeat("U", 26), strings.Repeat("r", 1000)} {
				try(o, "Idempotency-Key "+id, request{path: path, body: bases[o.id], header: map[string]string{"Idempotency-Key": id}})
			}
		}
	}
	t.Logf("%d bad requests", tried)
	if tried < 500 {
		t.Errorf("only %d bad requests were made", tried)
	}
}

func pathOf(o *operation, bases map[string]string) string {
	path := o.pattern
	for _, p := range o.params {
		if p.Value.In == openapi3.ParameterInPath {
			value := bases[p.Value.Name]
			if value == "" {
				value = "none"
			}
			path = strings.ReplaceAll(path, "{"+p.Value.Name+"}", value)
		}
	}
	return path
}

// badFields are bodies of which one field is bad, by what is bad about them.
func badFields(t *testing.T, o *operation, base string) map[string]string {
	out := map[string]string{}
	if o.body == nil {
		return out
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(base), &fields); err != nil {
		t.Fatalf("%s has no body to begin with: %v", o.id, err)
	}
	for name, ref := range o.body.Properties {
		for _, kind := range kindsOf(ref.Value) {
			for _, bad := range badValues[kind] {
				if !slices.Contains(mayBe[name], bad) && !tooLongFor(name, ref.Value, bad) {
					out[name+" "+clip(bad)] = with(fields, name, bad)
				}
			}
		}
	}
	out["an unknown field"] = with(fields, "from", `"me"`)
	for _, raw := range []string{``, `[`, `[]`, `"x"`, `null`, `{} {}`, `{"a":1,"a":1}`, strings.Repeat(`[`, 5000), "\xff"} {
		if o.required || raw != `` && raw != `{}` {
			out["the body "+clip(raw)] = raw
		}
	}
	return out
}

func kindsOf(s *openapi3.Schema) []string {
	if s.Type == nil {
		return []string{"string"}
	}
	return s.Type.Slice()
}

// tooLongFor leaves out a long text where the schema says nothing: there the
// use-case refuses it, which other tests show, or the field takes it.
func tooLongFor(name string, s *openapi3.Schema, bad string) bool {
	return len(bad) > 100_000 && (s.Type == nil || name == "spec")
}

func clip(s string) string { return s[:min(len(s), 40)] }

// with writes the fields with one replaced, as raw text.
func with(fields map[string]json.RawMessage, name, raw string) string {
	var parts []string
	for k, v := range fields {
		if k != name {
			parts = append(parts, `"`+k+`":`+string(v))
		}
	}
	return `{` + strings.Join(append(parts, `"`+name+`":`+raw), ",") + `}`
}

func badPaths(o *operation, bases map[string]string) map[string]string {
	out := map[string]string{}
	for _, p := range o.params {
		if p.Value.In != openapi3.ParameterInPath {
			continue
		}
		for _, bad := range []string{strings.Repeat("a", 5000), "none", "..", "a\x00b", "\xff", "run_", "' OR 1=1 --", "\u202e"} {
			others := maps.Clone(bases)
			others[p.Value.Name] = url.PathEscape(bad)
			out[p.Value.Name+" "+clip(bad)] = pathOf(o, others)
		}
	}
	return out
}

func badQueries(o *operation) map[string]string {
	out := map[string]string{}
	for _, p := range o.params {
		if p.Value.In != openapi3.ParameterInQuery {
			continue
		}
		for _, kind := range kindsOf(p.Value.Schema.Value) {
			bad := []string{strings.Repeat("a", 5000), "a\x00b", "\xff"}
			switch kind {
			case "integer":
				bad = []string{"-1", "1e309", "1.5", "x", "9223372036854775808", "", "0x1", " 1"}
			case "boolean":
				bad = []string{"maybe", "2", ""}
			}
			for _, v := range bad {
				out[p.Value.Name+"="+clip(v)] = p.Value.Name + "=" + url.QueryEscape(v)
			}
		}
	}
	out["an unknown parameter"] = "nonsense=1"
	return out
}

// TestEndlessIdsAreTyped: an id of a million characters gets an answer with a
// code over a real connection too.
func TestEndlessIdsAreTyped(t *testing.T) {
	w := newWorld(t)
	addr, _ := w.port(nil)
	c, err := dialTLS(t, addr, "")
	if err != nil {
		t.Fatal(err)
	}
	path := "/v1/runs/" + strings.Repeat("a", 1_000_000) + " HTTP/1.1\r\nAuthorization: Bearer " + w.operator + "\r\nX:"
	resp, body, err := ask(c, path)
	if err != nil || resp.StatusCode != 400 || !strings.Contains(body, `"code":"invalid_argument"`) || !strings.Contains(body, `"field":"run"`) {
		t.Errorf("%v %v %.300s", resp, err, body)
	}
}
