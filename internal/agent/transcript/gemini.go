package transcript

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

type geminiLine struct {
	ID        string            `json:"id"`
	Type      string            `json:"type"`
	Timestamp string            `json:"timestamp"`
	Content   json.RawMessage   `json:"content"`
	Thoughts  []json.RawMessage `json:"thoughts"`
	Tokens    json.RawMessage   `json:"tokens"`
	Calls     []json.RawMessage `json:"toolCalls"`
	Session   string            `json:"sessionId"`
	Set       json.RawMessage   `json:"$set"`
}

// decodeGemini reads a line of a session file. A line with an id that came
// before is shown again: it replaces the former one. The carry holds the calls
// whose results were shown last; the line that repeats just those results for
// the model is left out.
func decodeGemini(r record) decoded {
	var line geminiLine
	fill(r.raw, &line)
	switch {
	case first(line.Set) == '{':
		return decodeGeminiSet(r, line.Set)
	case line.Type == "user" || line.Type == "gemini":
		return decodeGeminiMessage(r, line, 0)
	case line.Session != "" && line.Type == "":
		return decoded{carry: r.carry, messages: r.other("session", "")}
	}
	b := newMessage(r.id(line.ID, 0), roleOther, parseTime(line.Timestamp))
	b.other(geminiKind(r.raw, line.Type), excerpt(r.raw))
	return decoded{carry: r.carry, messages: []message{b.done()}}
}

// geminiKind names a record without a type by its first field that is an
// instruction.
func geminiKind(raw []byte, kind string) string {
	var fields map[string]json.RawMessage
	if fill(raw, &fields); kind != "" {
		return kind
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if strings.HasPrefix(name, "$") {
			return name
		}
	}
	return "record"
}

// decodeGeminiSet reads a change of the header. The time of the last change
// alone says nothing; messages in it are messages.
func decodeGeminiSet(r record, raw json.RawMessage) decoded {
	var fields map[string]json.RawMessage
	fill(raw, &fields)
	d := decoded{carry: r.carry}
	for n, each := range list(fields["messages"]) {
		var line geminiLine
		fill(each, &line)
		one := decodeGeminiMessage(record{raw: each, place: r.place, carry: d.carry}, line, n)
		d.messages = append(d.messages, one.messages...)
		d.tallies = append(d.tallies, one.tallies...)
		d.carry = one.carry
	}
	delete(fields, "lastUpdated")
	if len(list(fields["messages"])) > 0 {
		delete(fields, "messages")
	}
	if len(fields) > 0 {
		b := newMessage(r.id("", len(d.messages)), roleOther, 0)
		b.other("$set", fieldsExcerpt(fields))
		d.messages = append(d.messages, b.done())
	}
	return d
}

func decodeGeminiMessage(r record, line geminiLine, n int) decoded {
	d := decoded{carry: r.carry}
	b := newMessage(r.id(line.ID, n), geminiRole(line.Type), parseTime(line.Timestamp))
	answered := geminiContent(b, line.Content)
	if len(answered) > 0 && len(answered) == len(b.m.Blocks) {
		if memory(answered...) == r.carry {
			return d
		}
		b.m.Role = roleTool
	}
	for _, raw := range line.Thoughts {
		var thought struct{ Subject, Description string }
		fill(raw, &thought)
		b.thinking(strings.TrimSpace(thought.Subject + "\n" + thought.Description))
	}
	if calls := geminiCalls(b, line.Calls); len(calls) > 0 {
		d.carry = memory(calls...)
	}
	b.explain("message", r.raw)
	usage := geminiUsage(line.Tokens)
	b.m.Usage = shown(usage)
	d.tallies = tallied(tally{id: b.m.ID, usage: usage})
	d.messages = []message{b.done()}
	return d
}

func fieldsExcerpt(fields map[string]json.RawMessage) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		texts = append(texts, name+": "+excerpt(fields[name]))
	}
	return strings.Join(texts, "\n")
}

func geminiRole(kind string) string {
	switch kind {
	case "user":
		return roleUser
	case "gemini":
		return roleAssistant
	}
	return roleOther
}

// geminiContent writes text or parts and returns the calls that the parts
// answer.
func geminiContent(b *builder, content json.RawMessage) (answered []string) {
	if s := str(content); s != "" {
		b.text(s)
	}
	for _, raw := range list(content) {
		if id, ok := geminiPart(b, raw); ok {
			answered = append(answered, id)
		}
	}
	return answered
}

type geminiAnswer struct {
	ID       string          `json:"id"`
	Response json.RawMessage `json:"response"`
}

// geminiPart writes a part. It is an answer if it is the result of a call.
func geminiPart(b *builder, raw json.RawMessage) (id string, answer bool) {
	var part struct {
		Text    *string       `json:"text"`
		Thought bool          `json:"thought"`
		Answer  *geminiAnswer `json:"functionResponse"`
		Call    *struct {
			ID   string          `json:"id"`
			Name string          `json:"name"`
			Args json.RawMessage `json:"args"`
		} `json:"functionCall"`
		Inline *struct {
			Media string `json:"mimeType"`
		} `json:"inlineData"`
	}
	fill(raw, &part)
	switch {
	case part.Answer != nil:
		geminiResult(b, part.Answer.ID, part.Answer.Response, false)
		return part.Answer.ID, true
	case part.Call != nil:
		b.call(part.Call.ID, part.Call.Name, part.Call.Args)
	case part.Text != nil && part.Thought:
		b.thinking(*part.Text)
	case part.Text != nil:
		b.text(*part.Text)
	case part.Inline != nil && strings.HasPrefix(part.Inline.Media, "image/"):
		b.image(part.Inline.Media)
	default:
		b.other("part", excerpt(raw))
	}
	return "", false
}

// geminiResult writes what a tool answered: its output or error as text, else
// all of it as JSON.
func geminiResult(b *builder, id string, response json.RawMessage, failed bool) {
	var fields struct {
		Output json.RawMessage `json:"output"`
		Error  json.RawMessage `json:"error"`
	}
	if first(response) == '{' {
		fill(response, &fields)
	}
	failed = failed || !absent(fields.Error)
	text := str(fields.Output) + str(fields.Error)
	if text == "" && !absent(response) {
		text = string(response)
	}
	b.result(id, text, failed)
}

// geminiCalls writes the calls of an answer with their results, and returns the
// calls that have results, in the order of those.
func geminiCalls(b *builder, calls []json.RawMessage) (answered []string) {
	for _, raw := range calls {
		var call struct {
			ID      string            `json:"id"`
			Name    string            `json:"name"`
			Args    json.RawMessage   `json:"args"`
			Status  string            `json:"status"`
			Results []json.RawMessage `json:"result"`
		}
		fill(raw, &call)
		b.call(call.ID, call.Name, call.Args)
		failed := call.Status == "error" || call.Status == "cancelled"
		for _, raw := range call.Results {
			var part struct {
				Answer *geminiAnswer `json:"functionResponse"`
			}
			if fill(raw, &part); part.Answer == nil {
				geminiPart(b, raw)
				continue
			}
			geminiResult(b, part.Answer.ID, part.Answer.Response, failed)
			answered = append(answered, part.Answer.ID)
		}
	}
	return answered
}

// geminiUsage: what the model thought is not in its output, and the prompts of
// tools are not in its input, as they come from the provider.
func geminiUsage(raw json.RawMessage) hub.Usage {
	var t struct {
		Input    count `json:"input"`
		Output   count `json:"output"`
		Cached   count `json:"cached"`
		Thoughts count `json:"thoughts"`
		Tool     count `json:"tool"`
	}
	if first(raw) == '{' {
		fill(raw, &t)
	}
	return hub.Usage{InputTokens: plus(t.Input.n, t.Tool.n), CachedInputTokens: t.Cached.n,
		OutputTokens: plus(t.Output.n, t.Thoughts.n), ReasoningTokens: t.Thoughts.n}
}
