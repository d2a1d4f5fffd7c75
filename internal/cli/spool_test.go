package cli

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/capfile"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/spool"
)

// spooler is a Dispatch whose hub is the fake one.
type spooler struct {
	*fakeHub
	cap   capfile.File
	place spool.Place
	path  string // of the capability
}

func newSpooler(t *testing.T) *spooler {
	t.Helper()
	s := &spooler{fakeHub: newHub(t), place: spool.Place{Root: filepath.Join(t.TempDir(), "private"), Terminal: hub.NewTerminalID(), Dispatch: hub.NewDispatchID()}}
	folder := filepath.Dir(s.place.File())
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	s.path = filepath.Join(folder, "dispatch.json")
	s.cap = capfile.File{
		URL: s.srv.URL, Fingerprint: s.fingerprint(), Token: "whd_capability", Spool: s.place.File(),
		RunID: string(hub.NewRunID()), TaskID: string(hub.NewTaskID()), DispatchID: string(s.place.Dispatch),
	}
	s.writeCap()
	t.Setenv(envDispatchFile, s.path)
	return s
}

func (s *spooler) writeCap() {
	s.t.Helper()
	raw, err := capfile.Encode(s.cap)
	if err != nil {
		s.t.Fatal(err)
	}
	s.write(s.path, string(raw), 0o600)
}

// lines are the spooled ones, each proven.
func (s *spooler) lines() (lines []spool.Line) {
	s.t.Helper()
	raw, err := os.ReadFile(s.place.File())
	if os.IsNotExist(err) {
		return nil
	}
	err = spool.Drain(s.t.Context(), s.place, func(e spool.Entry) error {
		if !e.ProvenBy(s.cap.Token) {
			s.t.Errorf("%s is not proven: %v", e.Raw, e.Err)
		}
		lines = append(lines, e.Line)
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, l := range lines {
		if err := spool.Append(s.t.Context(), s.place, s.cap.Token, l); err != nil {
			s.t.Fatal(err)
		}
	}
	if again, err := os.ReadFile(s.place.File()); err != nil || string(again) != string(raw) {
		s.t.Fatalf("looking changed the spool: %v", err)
	}
	return lines
}

// mustSpool wants exit 0, state spooled, and the request as the last line.
func (s *spooler) mustSpool(r result, body string) spool.Line {
	s.t.Helper()
	r.want(s.t, 0)
	var out struct {
		State    string
		Verdict  *string
		Message  struct{ MessageID *string }
		Mutation struct {
			RequestID string `json:"request_id"`
		}
	}
	lines := s.lines()
	if err := json.Unmarshal([]byte(r.out), &out); err != nil || out.State != "spooled" || out.Verdict != nil || len(lines) == 0 {
		s.t.Fatalf("the answer is %s %v, %d lines", r.out, err, len(lines))
	}
	last := lines[len(lines)-1]
	if string(last.Request) != out.Mutation.RequestID || !strings.Contains(string(last.Body), `"body":"`+body+`"`) || last.Operation != "sendMessage" {
		s.t.Fatalf("the line is %s of %s, answered as %s", last.Body, last.Request, out.Mutation.RequestID)
	}
	return last
}

// Whatever way no whole answer comes, the message is spooled under the very
// request id that may have been sent.
func TestWhatNoHubAnswersIsSpooled(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"lost":     lose,
		"draining": func(w http.ResponseWriter, _ *http.Request) { problem(w, 503, "hub_draining") },
		"half": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			reply(w, 201, "application/json", sentDoc)
		},
		"wrong": func(w http.ResponseWriter, _ *http.Request) { reply(w, 201, "application/json", `[1`) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSpooler(t)
			s.handle("POST /v1/messages", answer)
			line := s.mustSpool(wavehub(t, "done", "B", "--wait-verdict", "--json"), "B")
			sent := s.last()
			if sent.head.Get("Idempotency-Key") != string(line.Request) || sent.body != string(line.Body) {
				t.Errorf("sent was %s %s, spooled %s %s", sent.head.Get("Idempotency-Key"), sent.body, line.Request, line.Body)
			}
		})
	}
	t.Run("refused connection", func(t *testing.T) {
		s := newSpooler(t)
		s.srv.Close()
		s.mustSpool(wavehub(t, "progress", "B", "--json"), "B")
		r := wavehub(t, "send", "--type", "status", "--body", "C")
		r.want(t, 0, "spooled", "goes out when the hub is back")
	})
	t.Run("another key", func(t *testing.T) {
		s := newSpooler(t)
		s.cap.Fingerprint = "hub_other"
		s.writeCap()
		s.mustSpool(wavehub(t, "progress", "B", "--json"), "B")
		if n := len(s.requests()); n != 0 {
			t.Errorf("%d requests reached another hub", n)
		}
	})
}

// An answer is an answer: it is returned and nothing is spooled.
func TestAnswersAreNotSpooled(t *testing.T) {
	s := newSpooler(t)
	for code, c := range map[string]struct{ status, exit int }{
		"dispatch_inactive": {409, 5}, "lifecycle_invalid": {422, 2}, "rate_limited": {429, 6}, "storage_full": {507, 6}, "invalid_token": {401, 4}, "internal": {500, 1},
	} {
		s.fail("POST /v1/messages", c.status, code)
		wavehub(t, "done", "B").want(t, c.exit, code)
	}
	s.handle("POST /v1/messages", func(w http.ResponseWriter, _ *http.Request) { reply(w, 502, "text/plain", "bad gateway") })
	wavehub(t, "done", "B").want(t, 1, "internal")
	s.on("POST /v1/messages", 201, sentDoc)
	wavehub(t, "done", "B").want(t, 0, "queued")
	if lines := s.lines(); len(lines) != 0 {
		t.Errorf("%d lines were spooled", len(lines))
	}
}

func TestQuestionsAndMailboxesAreNotSpooled(t *testing.T) {
	s := newSpooler(t)
	s.srv.Close()
	wavehub(t, "ask", "--question", "Q").want(t, 6, "hub_unreachable")
	wavehub(t, "send", "--type", "question", "--body", "Q").want(t, 6, "hub_unreachable")
	wavehub(t, "check").want(t, 6, "hub_unreachable")
	if lines := s.lines(); len(lines) != 0 {
		t.Errorf("%d lines were spooled", len(lines))
	}
}

// While something lies in the spool nothing is sent, so that nothing overtakes it.
func TestNothingOvertakesTheSpool(t *testing.T) {
	s := newSpooler(t)
	s.handle("POST /v1/messages", lose)
	first := s.mustSpool(wavehub(t, "progress", "first", "--json"), "first")
	s.on("POST /v1/messages", 201, sentDoc)
	sent := len(s.requests())
	s.mustSpool(wavehub(t, "done", "second", "--json"), "second")
	if len(s.requests()) != sent || len(s.lines()) != 2 || s.lines()[0].Request != first.Request {
		t.Errorf("%d requests were sent, %d lines", len(s.requests())-sent, len(s.lines()))
	}
	if err := spool.Drain(t.Context(), s.place, func(spool.Entry) error { return nil }); err != nil {
		t.Fatal(err)
	}
	wavehub(t, "progress", "third").want(t, 0, "queued")
}

// What the hub would refuse is refused while somebody still reads the answer.
func TestWhatIsWrongIsNotSpooled(t *testing.T) {
	s := newSpooler(t)
	s.srv.Close()
	for _, c := range []struct {
		part string
		args []string
	}{
		{"outcome", []string{"--type", "worker_done", "--body", "b", "--task-id", s.cap.TaskID, "--dispatch-id", s.cap.DispatchID}},
		{"dispatch_id", []string{"--type", "worker_done", "--body", "b", "--outcome", "failed", "--task-id", s.cap.TaskID, "--dispatch-id", string(hub.NewDispatchID())}},
		{"task_id", []string{"--type", "worker_done", "--body", "b", "--outcome", "failed", "--task-id", string(hub.NewTaskID()), "--dispatch-id", s.cap.DispatchID}},
		{"body is missing", []string{"--type", "worker_done", "--body", " ", "--outcome", "failed", "--task-id", s.cap.TaskID, "--dispatch-id", s.cap.DispatchID}},
		{"verify_result", []string{"--type", "worker_done", "--body", "b", "--outcome", "failed", "--task-id", s.cap.TaskID, "--dispatch-id", s.cap.DispatchID, "--verify-result", "perhaps"}},
		{"type", []string{"--type", "answer", "--body", "b"}},
		{"payload", []string{"--type", "status", "--payload", "[1]"}},
		{"milestone", []string{"--type", "status", "--payload", "{}", "--milestone", "m"}},
		{"options", []string{"--type", "status", "--option", "a"}},
		{"thread_id", []string{"--type", "status", "--thread-id", "msg_x"}},
		{"recipient", []string{"--type", "status", "--to", "run:" + s.cap.RunID}},
		{"dispatch_id", []string{"--type", "status", "--dispatch-id", string(hub.NewDispatchID())}},
		{"subject", []string{"--type", "status", "--subject", strings.Repeat("x", hub.MaxSubjectBytes+1)}},
		{"retry-request", []string{"--type", "status", "--retry-request", "req_1"}},
	} {
		wavehub(t, append([]string{"send"}, c.args...)...).want(t, 2, c.part)
	}
	if lines := s.lines(); len(lines) != 0 {
		t.Errorf("%d lines were spooled", len(lines))
	}
	s.cap.MayCoordinate = true
	s.writeCap()
	s.mustSpool(wavehub(t, "send", "--type", "guidance", "--to", "dispatch:"+string(hub.NewDispatchID()), "--body", "G", "--json"), "G")
}

// A spool that cannot be written: nothing happened, unless a part was sent.
func TestASpoolThatCannotBeWritten(t *testing.T) {
	s := newSpooler(t)
	if err := os.Mkdir(s.place.File()+".lock", 0o700); err != nil { // nobody gets the lock
		t.Fatal(err)
	}
	s.handle("POST /v1/messages", lose)
	r := wavehub(t, "done", "B")
	r.want(t, 10, "outcome_unknown", "cannot be spooled", "recover: wavehub done B --retry-request "+s.last().head.Get("Idempotency-Key"))
	s.handle("POST /v1/messages", func(http.ResponseWriter, *http.Request) {
		if err := os.Remove(s.path); err != nil {
			t.Error(err)
		}
		panic(http.ErrAbortHandler)
	})
	wavehub(t, "done", "B").want(t, 10, "outcome_unknown", "cannot be spooled")
	s.writeCap()
	s.fail("POST /v1/messages", 503, "hub_draining")
	wavehub(t, "done", "B").want(t, 6, "hub_unreachable", "cannot be spooled")
	s.srv.Close()
	wavehub(t, "done", "B").want(t, 6, "hub_unreachable", "cannot be spooled")
	if err := os.Remove(s.path); err != nil {
		t.Fatal(err)
	}
	wavehub(t, "done", "B").want(t, 4, "no other credential")
}

func TestAFullSpool(t *testing.T) {
	s := newSpooler(t)
	s.srv.Close()
	s.mustSpool(wavehub(t, "progress", "B", "--json"), "B")
	raw, err := os.ReadFile(s.place.File())
	if err != nil {
		t.Fatal(err)
	}
	s.write(s.place.File(), strings.Repeat(string(raw), spool.MaxLines), 0o600)
	wavehub(t, "progress", "C").want(t, 6, "hub_unreachable", "no room")
	wavehub(t, "done", "D").want(t, 0, "spooled")
	wavehub(t, "done", "E").want(t, 6, "no room")
}

// A hub that was started again may be elsewhere: its file is read once more
// before anything is spooled, and the same request is sent there.
func TestAHubThatMovedIsFound(t *testing.T) {
	s := newSpooler(t)
	there := newHub(t) // takes the environment over
	t.Setenv(envDispatchFile, s.path)
	there.on("POST /v1/messages", 201, sentDoc)
	s.handle("POST /v1/messages", func(http.ResponseWriter, *http.Request) {
		s.cap.URL, s.cap.Fingerprint = there.srv.URL, there.fingerprint()
		s.writeCap()
		panic(http.ErrAbortHandler)
	})
	wavehub(t, "done", "B").want(t, 0, "queued")
	if a, b := s.last().head.Get("Idempotency-Key"), there.last().head.Get("Idempotency-Key"); a != b || a == "" {
		t.Errorf("the request was sent as %q and as %q", a, b)
	}
	if lines := s.lines(); len(lines) != 0 {
		t.Errorf("%d lines were spooled", len(lines))
	}
}

// A request of the caller's own keeps its id.
func TestARepeatedRequestIsSpooledUnderItsID(t *testing.T) {
	s := newSpooler(t)
	s.srv.Close()
	key := string(hub.NewRequestID())
	if line := s.mustSpool(wavehub(t, "done", "B", "--retry-request", key, "--json"), "B"); string(line.Request) != key {
		t.Errorf("the line is of %s", line.Request)
	}
}
