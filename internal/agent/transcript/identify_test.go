package transcript

import (
	"strings"
	"testing"
)

func TestIdentify(t *testing.T) {
	long := strings.Repeat("x", HeadBytes)
	for name, c := range map[string]struct {
		provider, head, want string
	}{
		"codex, cut off":           {Codex, `{"timestamp":"t","type":"session_meta","payload":{"session_id":"S","id":"T","text":"` + long, "T"},
		"codex, session only":      {Codex, `{"type":"session_meta","payload":{"session_id":"S"}}` + "\n", "S"},
		"codex, the first counts":  {Codex, `{"type":"session_meta","payload":{"id":"A"}}` + "\n" + `{"type":"session_meta","payload":{"id":"B"}}` + "\n", "A"},
		"codex, of another type":   {Codex, `{"type":"response_item","payload":{"id":"A"}}` + "\n", ""},
		"codex, nested":            {Codex, `{"type":"session_meta","payload":{"x":{"id":"A"},"id":7}}`, ""},
		"claude, a later line":     {Claude, `{"type":"summary","x":[{"sessionId":"no"}]}` + "\n" + `{"sessionId":"S"}`, "S"},
		"openclaude":               {OpenClaude, `{"sessionId":"S"`, "S"},
		"claude, torn id":          {Claude, `{"sessionId":"S`, ""},
		"claude, long id":          {Claude, `{"sessionId":"` + long + `"}`, ""},
		"gemini":                   {Gemini, `{"sessionId":"S"}` + "\n", "S"},
		"opencode, events":         {OpenCode, `{"type":"text","sessionID":"S"}`, "S"},
		"opencode, document":       {OpenCode, "{\n \"info\": {\n  \"id\": \"S\",", "S"},
		"opencode, document later": {OpenCode, `{"messages":[{"info":{"id":"no"}}],"info":{"id":"S"`, "S"},
		"opencode, too little":     {OpenCode, `{"in`, ""},
		"grok":                     {Grok, `{"sessionId":"S"}`, ""},
		"unknown":                  {"copilot", `{"sessionId":"S"}`, ""},
		"nothing":                  {Claude, "", ""},
		"no JSON":                  {Claude, "sessionId\n[]\n7\n", ""},
	} {
		if got, ok := Identify(c.provider, []byte(c.head)); got != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q, %v", name, got, ok)
		}
	}
}

// TestFormIsDecidedByTheHead: a longer head does not change what was decided.
func TestFormIsDecidedByTheHead(t *testing.T) {
	file := strings.Repeat(" ", headBytes) + `{"info":{"id":"S"},"messages":[]}`
	if whole, head := formOfHead([]byte(file)), formOfHead([]byte(file[:headBytes])); whole != head || whole != formLines {
		t.Errorf("%v by all, %v by the head", whole, head)
	}
}

// TestFingerprintIsStable: once there is one, it is that of every longer
// beginning of the same file, and of no other sample.
func TestFingerprintIsStable(t *testing.T) {
	seen := map[string]string{}
	for name, raw := range samples(t) {
		provider, want := providerOf(name), ""
		for n := range len(raw) + 1 {
			got := Fingerprint(provider, raw[:n])
			if want != "" && got != want {
				t.Fatalf("%s: other after %d bytes", name, n)
			}
			want = got
		}
		session, _ := Identify(provider, raw)
		if want == "" || session != "" && strings.Contains(want, session) {
			t.Errorf("%s: %q", name, want)
		}
		if other, ok := seen[want]; ok {
			t.Errorf("%s and %s have the same", name, other)
		}
		seen[want] = name
	}
}

func TestFingerprintTellsApart(t *testing.T) {
	line := `{"role":"user","content":"` + strings.Repeat("x", 2*headBytes) + `"}` + "\n"
	if Fingerprint(Grok, []byte(line)) == "" || Fingerprint(Grok, []byte(line)) != Fingerprint(Grok, []byte(line[:headBytes])) {
		t.Error("a long first record has no stable fingerprint")
	}
	if Fingerprint(Grok, []byte("a\nb\n")) != Fingerprint(Grok, []byte("a\nc\n")) || Fingerprint(Grok, []byte("a\n")) == Fingerprint(Grok, []byte("b\n")) {
		t.Error("it is not of the first record")
	}
	first, again := `{"info":{"id":"S","cost":1},"messages":[]}`, "{\n\"info\":{\"id\":\"S\",\"cost\":22},\"messages\":[{}]}"
	if Fingerprint(OpenCode, []byte(first)) != Fingerprint(OpenCode, []byte(again)) {
		t.Error("a document that is written anew is another")
	}
}
