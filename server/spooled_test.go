package server

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

// A spooled request is the one that was sent: its receipt is found, whatever
// white space it was written with, and it has no second effect.
func TestASpooledRequestIsRecognised(t *testing.T) {
	w := newWorld(t)
	run, task, dispatch, token := w.working()
	body := `{"type":"worker_done","subject":"s","body":"<b>","outcome":"succeeded","task_id":"` + task + `","dispatch_id":"` + dispatch + `","result":{"n":1.10}}`
	key := string(hub.NewRequestID())
	w.must(201, request{method: "POST", path: "/v1/messages", body: body, token: token, key: key})
	in := Spooled{Token: token, Key: hub.RequestID(key), Operation: SpooledOperation, Body: []byte(strings.ReplaceAll(body, ",", " ,\n"))}
	for range 2 {
		if err := w.server.Deliver(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(w.get(200, "/v1/mailboxes/run:"+run+"/messages").at("messages").([]any)); got != 1 {
		t.Errorf("%d messages came of one request", got)
	}
	in.Body = []byte(strings.Replace(body, "succeeded", "failed", 1))
	if err := w.server.Deliver(t.Context(), in); !hub.IsCode(err, hub.CodeRequestMismatch) {
		t.Errorf("another request under the same id: %v", err)
	}
}

// The other way round: what was taken from the spool answers the request that is
// repeated over HTTP.
func TestASpooledRequestAnswersItsRepetition(t *testing.T) {
	w := newWorld(t)
	_, _, _, token := w.working()
	key, body := string(hub.NewRequestID()), `{"type":"status","body":"b"}`
	if err := w.server.Deliver(t.Context(), Spooled{Token: token, Key: hub.RequestID(key), Operation: SpooledOperation, Body: []byte(body)}); err != nil {
		t.Fatal(err)
	}
	got := w.must(201, request{method: "POST", path: "/v1/messages", body: body, token: token, key: key})
	if got.at("mutation", "replayed") != true {
		t.Errorf("the answer is %s", got.raw)
	}
}

func TestSpooledRequestsAreCheckedAsOthersAre(t *testing.T) {
	w := newWorld(t)
	_, _, _, token := w.working()
	for name, c := range map[string]struct {
		change func(*Spooled)
		code   hub.Code
	}{
		"another operation": {func(s *Spooled) { s.Operation = "createRun" }, hub.CodeInvalidArgument},
		"no request id":     {func(s *Spooled) { s.Key = "" }, hub.CodeInvalidArgument},
		"a made-up id":      {func(s *Spooled) { s.Key = "req_1" }, hub.CodeInvalidArgument},
		"unknown token":     {func(s *Spooled) { s.Token = tokenOf("whd_", "nobody") }, hub.CodeInvalidToken},
		"operator":          {func(s *Spooled) { s.Token = w.operator }, hub.CodeInvalidToken},
		"no JSON":           {func(s *Spooled) { s.Body = []byte("{") }, hub.CodeInvalidJson},
		"duplicate keys":    {func(s *Spooled) { s.Body = []byte(`{"type":"status","type":"status"}`) }, hub.CodeInvalidJson},
		"unknown field":     {func(s *Spooled) { s.Body = []byte(`{"type":"status","from":"x"}`) }, hub.CodeInvalidArgument},
		"a question":        {func(s *Spooled) { s.Body = []byte(`{"type":"question","body":"q"}`) }, hub.CodeInvalidArgument},
		"too large":         {func(s *Spooled) { s.Body = []byte(`{"type":"` + strings.Repeat("x", messageBody) + `"}`) }, hub.CodeTooLarge},
	} {
		in := Spooled{Token: token, Key: hub.NewRequestID(), Operation: SpooledOperation, Body: []byte(`{"type":"status","body":"b"}`)}
		c.change(&in)
		if err := w.server.Deliver(t.Context(), in); !hub.IsCode(err, c.code) {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
}

// A worker's spool is taken before its message; one that cannot be taken now
// keeps the message from overtaking it. Others have no spool.
func TestADirectMessageWaitsForTheSpool(t *testing.T) {
	var asked []hub.DispatchID
	var fails error
	w := newWorld(t, func(c *Config) {
		c.Unspool = func(_ context.Context, id hub.DispatchID) error { asked = append(asked, id); return fails }
	})
	run, _, dispatch, token := w.working()
	post := func(status int, path, body string) {
		t.Helper()
		w.must(status, request{method: "POST", path: path, body: body, token: token})
	}
	post(201, "/v1/messages", `{"type":"status","body":"b"}`)
	post(201, "/v1/messages:batch", `{"messages":[{"type":"status","body":"b"}]}`)
	w.post(201, "/v1/messages", `{"to":"run:`+run+`","type":"status","body":"b"}`)
	if len(asked) != 2 || asked[0] != hub.DispatchID(dispatch) || asked[1] != asked[0] {
		t.Errorf("the spools asked for are %v", asked)
	}
	fails = hub.Errorf(hub.CodeStorageFull, "no room")
	post(507, "/v1/messages", `{"type":"status","body":"late"}`)
	fails = errors.New("no lock")
	post(500, "/v1/messages:batch", `{"messages":[{"type":"status","body":"late"}]}`)
	if all := w.get(200, "/v1/mailboxes/run:"+run+"/messages"); strings.Contains(all.raw, "late") {
		t.Errorf("a message overtook the spool: %s", all.raw)
	}
}
