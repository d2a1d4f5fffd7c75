package cli

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

// dispatchDoc is the detail of a Dispatch in the state, with a reason or "".
func dispatchDoc(name, state, reason string) string {
	quoted := "null"
	if reason != "" {
		quoted = `"` + reason + `"`
	}
	return `{"dispatch":{"dispatch_id":"` + name + `","task_id":"task_1","run_id":"run_1","state":"` + state + `","reason":` + quoted +
		`,"retry_of":null,"server":{"peer_id":null,"name":"n"},"created_at":"t","settled_at":null,"outcome":null,"future":1},` +
		`"observation":{"link":"local","process":"live","attachment":"present","last_output_at":null,"last_report_at":null,"waiting_for":null,"lost":false,"exit_code":null},` +
		`"receipt":` + receiptDoc("ready") + `}`
}

func (h *fakeHub) dispatch(name, state, reason string) {
	h.on("GET /v1/dispatches/"+name, 200, dispatchDoc(name, state, reason))
}

func TestExitCodesOfWorkerWait(t *testing.T) {
	const failed, ok, stopped, open, unverified = "failed", "succeeded", "stopped", "ready", "unverified"
	for _, c := range []struct {
		states   []string
		flags    string
		want     int
		timedOut bool
	}{
		{[]string{ok}, "", 0, false}, {[]string{failed}, "", 0, false}, {[]string{stopped, failed}, "", 0, false},
		{[]string{open}, "--timeout 1ms", 0, true}, {[]string{open}, "--timeout 0", 0, true},
		{[]string{ok, ok}, "--exit-status", 0, false}, {[]string{ok, failed}, "--exit-status", 1, false},
		{[]string{unverified, ok}, "--exit-status", 9, false}, {[]string{unverified, failed}, "--exit-status", 1, false},
		{[]string{stopped, ok}, "--exit-status", 8, false}, {[]string{"abandoned"}, "--exit-status", 8, false},
		{[]string{stopped, unverified}, "--exit-status", 9, false}, {[]string{ok, open}, "--exit-status --timeout 1ms", 7, true},
		{[]string{open, open}, "--any --exit-status --timeout 1ms", 7, true}, {[]string{ok, open}, "--any --exit-status --timeout 1ms", 0, false},
	} {
		h, args := newHub(t), []string{"worker", "wait"}
		for i, state := range c.states {
			name, reason := "d"+string(rune('a'+i)), ""
			if state == unverified {
				state, reason = failed, reasonUnverified
			}
			h.dispatch(name, state, reason)
			args = append(args, name)
		}
		r := wavehub(t, append(append(args, strings.Fields(c.flags)...), "--json")...)
		r.want(t, c.want)
		var out struct {
			Dispatches []map[string]any `json:"dispatches"`
			TimedOut   bool             `json:"timed_out"`
		}
		if err := json.Unmarshal([]byte(r.out), &out); err != nil || len(out.Dispatches) != len(c.states) {
			t.Fatalf("%v %q: %v %q", c.states, c.flags, err, r.out)
		}
		for i, d := range out.Dispatches {
			if d["dispatch_id"] != args[2+i] || d["future"] == nil {
				t.Errorf("%v: %d is %v", c.states, i, d)
			}
		}
		if out.TimedOut != c.timedOut {
			t.Errorf("%v %q: timed out %v", c.states, c.flags, out.TimedOut)
		}
	}
}

// TestWaitForAnyEndsTheOtherWaits, and shows what they waited for as it is.
func TestWaitForAnyEndsTheOtherWaits(t *testing.T) {
	h := newHub(t)
	waits, left := make(chan struct{}), make(chan struct{}, 1)
	h.handle("GET /v1/dispatches/done", func(w http.ResponseWriter, _ *http.Request) {
		<-waits
		reply(w, 200, "application/json", dispatchDoc("done", "succeeded", ""))
	})
	h.handle("GET /v1/dispatches/busy", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("wait_ms") != "" {
			close(waits)
			<-r.Context().Done()
			left <- struct{}{}
			return
		}
		reply(w, 200, "application/json", dispatchDoc("busy", "ready", ""))
	})
	r := wavehub(t, "worker", "wait", "busy", "done", "--any", "--exit-status", "--json")
	r.want(t, 0, `"timed_out":false`, `"state":"ready"`, `"state":"succeeded"`)
	select {
	case <-left:
	case <-time.After(10 * time.Second):
		t.Error("the other wait goes on")
	}
	h.handle("GET /v1/dispatches/busy", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	h.fail("GET /v1/dispatches/gone", 404, "dispatch_not_found")
	wavehub(t, "worker", "wait", "busy", "gone").want(t, 3, "(dispatch_not_found)")
}

func TestUsageOfWorkerWait(t *testing.T) {
	newHub(t)
	for _, args := range [][]string{{}, {""}, {"a", "a"}, strings.Fields(strings.Repeat("x ", maxAwaited+1)), {"a", "--timeout", "-1s"}} {
		wavehub(t, append([]string{"worker", "wait"}, args...)...).want(t, 2, "(invalid_argument)")
	}
}
