package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

func newStream(t testing.TB, kind string) *Stream {
	t.Helper()
	s, err := NewStream(kind)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var streamKinds = []string{StreamClaude, StreamCodex, StreamGemini, StreamOpencode, StreamGrok}

// TestStreamGolden reads the recorded output of the real CLIs, cut anywhere.
func TestStreamGolden(t *testing.T) {
	var text strings.Builder
	for _, kind := range streamKinds {
		raw := bytes.Join(lines(t, "streams/"+kind+".jsonl"), []byte("\n"))
		for _, size := range []int{1, 7, len(raw)} {
			s := newStream(t, kind)
			for rest := raw; len(rest) > 0; rest = rest[min(size, len(rest)):] {
				if n, err := s.Write(rest[:min(size, len(rest))]); err != nil || n != min(size, len(rest)) {
					t.Fatal(n, err)
				}
			}
			_, early := s.Result()
			s.End(0)
			r, ok := s.Result()
			shown, err := json.MarshalIndent(r, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			if size == 1 {
				fmt.Fprintf(&text, "=== %s early=%v %v\n%s\n", kind, early, ok, shown)
			} else if !strings.Contains(text.String(), fmt.Sprintf("=== %s early=%v %v\n%s\n", kind, early, ok, shown)) {
				t.Errorf("%s in pieces of %d: %s", kind, size, shown)
			}
		}
	}
	golden(t, "streams/results.golden", text.String())
}

func TestStreamResults(t *testing.T) {
	cases := []struct {
		name, kind, out string
		exit            int
		ok              bool
		outcome         hub.Outcome
		class           hub.ErrorClass
		text            string
	}{
		{"an API error is a success by its subtype", StreamClaude,
			`{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"API Error: Request rejected (429) · scripted error","session_id":"s"}`,
			1, true, hub.OutcomeFailed, hub.ErrorRateLimited, "API Error: Request rejected (429) · scripted error (status 429)"},
		{"no status", StreamClaude, `{"type":"result","subtype":"success","is_error":true,"api_error_status":null,"result":"Not logged in · Please run /login"}`,
			1, true, hub.OutcomeFailed, hub.ErrorAuthFailed, "Not logged in · Please run /login"},
		{"interrupted", StreamClaude, `{"type":"result","subtype":"error_during_execution","is_error":false,"errors":["a","b"]}`,
			1, true, hub.OutcomeFailed, hub.ErrorNone, "error_during_execution\na\nb"},
		{"cut off", StreamClaude, `{"type":"assistant","session_id":"s"}`, 143, false, "", "", ""},
		{"codex gives up", StreamCodex, `{"type":"turn.started"}
{"type":"error","message":"Reconnecting... 1/5"}
{"type":"turn.failed","error":{"message":"exceeded retry limit, last status: 429 Too Many Requests"}}`,
			1, true, hub.OutcomeFailed, hub.ErrorRateLimited, "exceeded retry limit, last status: 429 Too Many Requests"},
		{"codex tries again", StreamCodex, `{"type":"error","message":"Reconnecting... 1/5"}`, 143, false, "", "", ""},
		{"a second turn", StreamCodex, "{\"type\":\"turn.completed\"}\n{\"type\":\"turn.started\"}", 143, false, "", "", ""},
		{"gemini fails", StreamGemini, `{"type":"result","status":"error","error":{"type":"FatalAuthenticationError","message":"API key not valid"}}`,
			41, true, hub.OutcomeFailed, hub.ErrorAuthFailed, "FatalAuthenticationError: API key not valid"},
		{"gemini speaks twice", StreamGemini, `{"type":"message","role":"assistant","content":"a","delta":true}
{"type":"tool_use"}
{"type":"message","role":"assistant","content":"b","delta":true}
{"type":"message","role":"assistant","content":"c","delta":true}
{"type":"result","status":"success"}`, 0, true, hub.OutcomeSucceeded, "", "bc"},
		{"opencode fails", StreamOpencode, `{"type":"error","sessionID":"ses_a","error":{"name":"APIError","data":{"message":"x","statusCode":500}}}`,
			1, true, hub.OutcomeFailed, hub.ErrorTransient, "APIError: x (status 500)"},
		{"opencode is killed", StreamOpencode, `{"type":"step_finish","part":{}}`, 143, true, hub.OutcomeFailed, hub.ErrorNone, ""},
		{"opencode says nothing", StreamOpencode, `{"type":"step_start"}`, 0, false, "", "", ""},
		{"grok is cut off in a tool", StreamGrok, `{"role":"assistant","content":"x","tool_calls":[{}]}`, 143, false, "", "", ""},
		{"grok fails", StreamGrok, `{"role":"assistant","content":"Grok API error: 401 Unauthorized"}`, 1, true, hub.OutcomeFailed, hub.ErrorAuthFailed,
			"Grok API error: 401 Unauthorized"},
		{"fields of other types", StreamClaude, `{"type":"result","subtype":"success","is_error":false,"api_error_status":"none","result":"done","usage":{"input_tokens":"many"},"permission_denials":{}}`,
			0, true, hub.OutcomeSucceeded, "", "done"},
		{"an empty success", StreamClaude, `{"type":"result","subtype":"success","result":""}`, 0, true, hub.OutcomeSucceeded, "", ""},
		{"noise", StreamClaude, "Warning: x\n[1]\n{\"type\":\n{\"type\":5}\nnull\n", 0, false, "", "", ""},
	}
	for _, c := range cases {
		s := newStream(t, c.kind)
		if _, err := s.Write([]byte(c.out)); err != nil {
			t.Fatal(err)
		}
		s.End(c.exit)
		r, ok := s.Result()
		if ok != c.ok || r.Outcome != c.outcome || r.Class != c.class || r.Text != c.text {
			t.Errorf("%s: %v %+v", c.name, ok, r)
		}
		if ok && r.Usage.Source == "" {
			t.Errorf("%s: the usage has no source", c.name)
		}
	}
	if _, err := NewStream("xml"); !hub.IsCode(err, hub.CodeInvalidArgument) {
		t.Errorf("another kind: %v", err)
	}
}

func TestStreamDenials(t *testing.T) {
	s := newStream(t, StreamClaude)
	_, err := s.Write([]byte(`{"type":"result","subtype":"success","result":"done","session_id":"../x","permission_denials":[{"tool_name":"Bash"},{"tool_name":"Write"}]}` + "\n"))
	r, ok := s.Result()
	if err != nil || !ok || r.Outcome != hub.OutcomeSucceeded || strings.Join(r.Denied, " ") != "Bash Write" {
		t.Errorf("%+v %v %v", r, ok, err)
	}
	if r.Session != "" || s.Session() != "" {
		t.Errorf("a path is taken for a session: %q", r.Session)
	}
	if r.Usage.Source != hub.UsageUnknown || r.Usage.InputTokens != nil {
		t.Errorf("usage %+v", r.Usage)
	}
}

// TestStreamPassesOverLongLines: a line beyond the bound costs no memory and
// not the lines after it.
func TestStreamPassesOverLongLines(t *testing.T) {
	s := newStream(t, StreamClaude)
	piece := []byte(`{"type":"result","subtype":"success","result":"` + strings.Repeat("x", 1<<20))
	for range 5 {
		if _, err := s.Write(piece); err != nil {
			t.Fatal(err)
		}
		if len(s.line) > MaxRecord {
			t.Fatalf("%d bytes are kept", len(s.line))
		}
	}
	if _, err := s.Write([]byte("\"}\n{\"type\":\"result\",\"subtype\":\"success\",\"result\":\"short\"}\n")); err != nil {
		t.Fatal(err)
	}
	if r, ok := s.Result(); !ok || r.Text != "short" || s.Skipped() != 1 {
		t.Errorf("%v %.80q, %d skipped", ok, r.Text, s.Skipped())
	}
}

func FuzzStream(f *testing.F) {
	for i, kind := range streamKinds {
		f.Add(i, bytes.Join(lines(f, "streams/"+kind+".jsonl"), []byte("\n")), 0)
	}
	f.Fuzz(func(t *testing.T, kind int, raw []byte, exit int) {
		s := newStream(t, streamKinds[uint(kind)%uint(len(streamKinds))])
		half := len(raw) / 2
		for _, part := range [][]byte{raw[:half], raw[half:]} {
			if n, err := s.Write(part); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		s.End(exit)
		r, ok := s.Result()
		if ok != (r.Outcome != "") || r.Session != "" && !sessionGrammar.MatchString(r.Session) {
			t.Errorf("%v %+v", ok, r)
		}
	})
}
