package transcript

import (
	"encoding/json"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// decodeOpenCode reads an event of run: one part of an answer.
func decodeOpenCode(r record) decoded {
	var event struct {
		Type  string          `json:"type"`
		Time  count           `json:"timestamp"`
		Part  json.RawMessage `json:"part"`
		Error json.RawMessage `json:"error"`
	}
	fill(r.raw, &event)
	at := millis(event.Time)
	switch {
	case event.Type == "error":
		b := newMessage(r.id("", 0), roleOther, at)
		b.other("error", openCodeError(event.Error))
		return decoded{messages: []message{b.done()}}
	case first(event.Part) != '{':
		return decoded{messages: r.unknown(event.Type)}
	}
	var part struct {
		ID string `json:"id"`
	}
	fill(event.Part, &part)
	b := newMessage(r.id(part.ID, 0), roleAssistant, at)
	usage := openCodePart(b, event.Part)
	b.m.Role = openCodeRole(b.m)
	b.m.Usage = shown(usage)
	return decoded{messages: []message{b.done()}, tallies: tallied(tally{id: b.m.ID, usage: usage})}
}

// openCodeRole is other for an event that is only noted.
func openCodeRole(m hub.TranscriptMessage) string {
	for _, b := range m.Blocks {
		if b.Kind != hub.BlockOther {
			return roleAssistant
		}
	}
	return roleOther
}

// decodeExport reads a message of the document that export prints.
func decodeExport(r record) decoded {
	if d := (decoded{}); !json.Valid(r.raw) || first(r.raw) != '{' {
		d.invalid = !json.Valid(r.raw)
		d.messages = r.unknown("message")
		return d
	}
	var m struct {
		Info struct {
			ID   string `json:"id"`
			Role string `json:"role"`
			Time struct {
				Created count `json:"created"`
			} `json:"time"`
			Error json.RawMessage `json:"error"`
		} `json:"info"`
		Parts []json.RawMessage `json:"parts"`
	}
	fill(r.raw, &m)
	role := m.Info.Role
	if role != roleUser && role != roleAssistant && role != roleSystem {
		role = roleOther
	}
	b := newMessage(r.id(m.Info.ID, 0), role, millis(m.Info.Time.Created))
	var usage hub.Usage
	for _, raw := range m.Parts {
		usage = add(usage, openCodePart(b, raw))
	}
	if !absent(m.Info.Error) {
		b.other("error", openCodeError(m.Info.Error))
	}
	b.explain("message", r.raw)
	b.m.Usage = shown(usage)
	return decoded{messages: []message{b.done()}, tallies: tallied(tally{id: b.m.ID, usage: usage})}
}

type openCodeTool struct {
	Tool  string `json:"tool"`
	Call  string `json:"callID"`
	State struct {
		Status string            `json:"status"`
		Input  json.RawMessage   `json:"input"`
		Output string            `json:"output"`
		Error  string            `json:"error"`
		Files  []json.RawMessage `json:"attachments"`
	} `json:"state"`
}

// openCodePart writes a part and returns the usage that it tells.
func openCodePart(b *builder, raw json.RawMessage) hub.Usage {
	var part struct {
		Type   string `json:"type"`
		Text   string `json:"text"`
		Reason string `json:"reason"`
		Media  string `json:"mime"`
		openCodeTool
	}
	if first(raw) == '{' {
		fill(raw, &part)
	}
	switch {
	case part.Type == "text":
		b.text(part.Text)
	case part.Type == "reasoning":
		b.thinking(part.Text)
	case part.Type == "tool":
		openCodeCall(b, part.openCodeTool)
	case part.Type == "file" && strings.HasPrefix(part.Media, "image/"):
		b.image(part.Media)
	case part.Type == "step-start":
		b.other(part.Type, "")
	case part.Type == "step-finish":
		b.other(part.Type, part.Reason)
		return openCodeUsage(raw)
	default:
		b.other(part.Type, excerpt(raw))
	}
	return hub.Usage{}
}

func openCodeCall(b *builder, t openCodeTool) {
	b.call(t.Call, t.Tool, t.State.Input)
	switch t.State.Status {
	case "completed":
		b.result(t.Call, t.State.Output, false)
	case "error":
		b.result(t.Call, t.State.Error, true)
	}
	for _, raw := range t.State.Files {
		var file struct {
			Media string `json:"mime"`
		}
		if fill(raw, &file); strings.HasPrefix(file.Media, "image/") {
			b.image(file.Media)
		} else {
			b.other("file", file.Media)
		}
	}
}

func openCodeError(raw json.RawMessage) string {
	var e struct {
		Name string `json:"name"`
		Data struct {
			Message string `json:"message"`
		} `json:"data"`
	}
	if first(raw) != '{' {
		return str(raw)
	}
	fill(raw, &e)
	return strings.Trim(e.Name+": "+e.Data.Message, ": ")
}

// openCodeUsage reads the figures of a step. Its input is without the cached;
// whether its output is without the reasoning, the total says.
func openCodeUsage(raw json.RawMessage) hub.Usage {
	var p struct {
		Cost   money `json:"cost"`
		Tokens struct {
			Total     count `json:"total"`
			Input     count `json:"input"`
			Output    count `json:"output"`
			Reasoning count `json:"reasoning"`
			Cache     struct {
				Read  count `json:"read"`
				Write count `json:"write"`
			} `json:"cache"`
		} `json:"tokens"`
	}
	fill(raw, &p)
	t := p.Tokens
	u := hub.Usage{InputTokens: plus(t.Input.n, t.Cache.Read.n, t.Cache.Write.n), CachedInputTokens: t.Cache.Read.n,
		OutputTokens: t.Output.n, ReasoningTokens: t.Reasoning.n, CostUSD: p.Cost.usd}
	both := plus(t.Output.n, t.Reasoning.n)
	if all := plus(u.InputTokens, both); all != nil && t.Total.n != nil && *all == *t.Total.n {
		u.OutputTokens = both
	}
	return u
}
