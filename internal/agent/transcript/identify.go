package transcript

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// HeadBytes is how much of a file's beginning Identify and Fingerprint want to
// see; less is right where the file has less.
const HeadBytes = 64 << 10

// Identify returns the agent's own id of the session that a file is of, as the
// file itself says. It is not ok while too little is there to tell, for a
// provider whose files do not say it (grok), and for an unknown provider.
func Identify(provider string, head []byte) (session string, ok bool) {
	for line := range bytes.Lines(head) {
		switch provider {
		case Codex:
			session = codexSession(line)
		case Claude, OpenClaude, Gemini:
			session = find(line, "sessionId")
		case OpenCode:
			if formOfHead(head) == formDocument {
				session = find(head, "info", "id")
				return session, session != ""
			}
			session = find(line, "sessionID")
		}
		if session != "" {
			return session, true
		}
	}
	return "", false
}

func codexSession(line []byte) string {
	if find(line, "type") != "session_meta" {
		return ""
	}
	if id := find(line, "payload", "id"); id != "" {
		return id
	}
	return find(line, "payload", "session_id")
}

// Fingerprint is an opaque hash of a file's beginning that stays the same while
// the file grows: another one means that the file was cut off or replaced. It
// is empty as long as too little is there. Of a document, which is written anew
// as a whole, it is that of the session's id.
func Fingerprint(provider string, head []byte) string {
	if provider == OpenCode {
		switch formOfHead(head) {
		case formUnclear:
			return ""
		case formDocument:
			id, ok := Identify(provider, head)
			if !ok {
				return ""
			}
			return hash([]byte(id))
		case formLines:
		}
	}
	head = head[:min(len(head), headBytes)]
	line, _, ended := bytes.Cut(head, []byte("\n"))
	if !ended && len(head) < headBytes {
		return ""
	}
	return hash(line)
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// find returns the string at a path of names in a JSON object, which may be cut
// off anywhere behind it.
func find(raw []byte, path ...string) string {
	dec := json.NewDecoder(bytes.NewReader(raw))
	for _, name := range path {
		if !enter(dec, name) {
			return ""
		}
	}
	t, err := dec.Token()
	if s, ok := t.(string); ok && err == nil && len(s) <= maxLabel {
		return s
	}
	return ""
}

// enter goes into an object, to the value of the first field of that name.
func enter(dec *json.Decoder, name string) bool {
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return false
	}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return false
		}
		if t == name {
			return true
		}
		if !pass(dec) {
			return false
		}
	}
	return false
}

// pass goes behind a value.
func pass(dec *json.Decoder) bool {
	for depth := 0; ; {
		t, err := dec.Token()
		if err != nil {
			return false
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth <= 0 {
			return true
		}
	}
}
