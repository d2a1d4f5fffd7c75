package transcript

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// The providers whose transcripts are read.
const (
	Codex      = "codex"      // rollout JSONL
	Claude     = "claude"     // project JSONL
	OpenClaude = "openclaude" // the same
	Gemini     = "gemini"     // session JSONL
	Grok       = "grok"       // chat messages on its standard output
	OpenCode   = "opencode"   // the document of export, or the events of run
)

// decoders turn one line of a provider's file into messages. They are pure and
// are given valid JSON objects only.
var decoders = map[string]func(record) decoded{
	Codex: decodeCodex, Claude: decodeClaude, OpenClaude: decodeClaude,
	Gemini: decodeGemini, Grok: decodeGrok, OpenCode: decodeOpenCode,
}

// Providers lists the providers, sorted.
func Providers() []string {
	return []string{Claude, Codex, Gemini, Grok, OpenClaude, OpenCode}
}

// checkProvider refuses a provider that has no decoder.
func checkProvider(provider string) error {
	if slices.Contains(Providers(), provider) {
		return nil
	}
	return hub.Invalid("provider", "no transcript of %q can be read; known are: %s", provider, strings.Join(Providers(), ", "))
}

// record is one record of a file. The carry is what the decoder remembers of
// the records before it.
type record struct {
	raw   []byte
	place int64 // byte offset of a line, index of a document's message
	carry string
}

// decoded is what a record says.
type decoded struct {
	messages []message
	tallies  []tally
	carry    string // for the next record
	invalid  bool   // not JSON
}

// message is a message with what the bounds did to it.
type message struct {
	hub.TranscriptMessage
	cut  int // blocks that were cut or left out
	size int // bytes that count against the text of a page
}

// decode never fails: what is no record of the provider is a message of the
// role other. A blank line says nothing.
func decode(provider string, r record) decoded {
	r.raw = bytes.TrimSpace(r.raw)
	d := decoded{carry: r.carry}
	switch {
	case len(r.raw) == 0:
		return d
	case !json.Valid(r.raw):
		d.invalid = true
		d.messages = r.other("invalid", withoutData(string(r.raw)))
		return d
	case r.raw[0] != '{':
		d.messages = r.unknown("json")
		return d
	}
	return decoders[provider](r)
}

// id is the given id, else one made of the record's place and n, the number of
// the message in its record. It stays the same as long as the file grows.
func (r record) id(given string, n int) string {
	if id := label(given); id != "" {
		return id
	}
	id := "@" + strconv.FormatInt(r.place, 10)
	if n > 0 {
		id += "." + strconv.Itoa(n)
	}
	return id
}

// other is a record that is no message, by its type and, cut short, its text.
func (r record) other(kind, text string) []message {
	return []message{r.note(kind, text).done()}
}

func (r record) note(kind, text string) *builder {
	b := newMessage(r.id("", 0), roleOther, 0)
	b.other(kind, text)
	return b
}

// unknown is a record of a type that no rule is known for, with the beginning
// of what it holds.
func (r record) unknown(kind string) []message { return r.other(kind, excerpt(r.raw)) }
