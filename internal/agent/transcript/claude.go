package transcript

import (
	"encoding/json"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

type claudeLine struct {
	Type       string          `json:"type"`
	UUID       string          `json:"uuid"`
	Timestamp  string          `json:"timestamp"`
	Meta       bool            `json:"isMeta"`
	Message    json.RawMessage `json:"message"`
	Content    json.RawMessage `json:"content"`
	Attachment struct {
		Type string `json:"type"`
	} `json:"attachment"`
}

type claudeMessage struct {
	ID      string          `json:"id"`
	Content json.RawMessage `json:"content"`
	Usage   json.RawMessage `json:"usage"`
}

// decodeClaude reads a line of a project file. A line is a message of its own,
// with the line's id, also where several lines are the blocks of one answer.
// The carry holds whose usage was told last.
func decodeClaude(r record) decoded {
	var line claudeLine
	fill(r.raw, &line)
	d := decoded{carry: r.carry}
	at := parseTime(line.Timestamp)
	switch {
	case (line.Type == "user" || line.Type == "assistant") && first(line.Message) == '{':
		return decodeClaudeMessage(r, line)
	case line.Type == "system" && str(line.Content) != "":
		b := newMessage(r.id(line.UUID, 0), roleSystem, at)
		b.text(str(line.Content))
		d.messages = []message{b.done()}
	case line.Type == "attachment":
		d.messages = claudeNote(r, line, line.Attachment.Type)
	case line.Type == "queue-operation" || line.Type == "last-prompt" || line.Type == "mode":
		d.messages = claudeNote(r, line, "")
	default:
		d.messages = claudeNote(r, line, excerpt(r.raw))
	}
	return d
}

func claudeNote(r record, line claudeLine, text string) []message {
	b := newMessage(r.id(line.UUID, 0), roleOther, parseTime(line.Timestamp))
	b.other(line.Type, text)
	return []message{b.done()}
}

func decodeClaudeMessage(r record, line claudeLine) decoded {
	var m claudeMessage
	fill(line.Message, &m)
	b := newMessage(r.id(line.UUID, 0), line.Type, parseTime(line.Timestamp))
	claudeContent(b, m.Content)
	b.m.Role = claudeRole(line, b.m.Blocks)
	d := decoded{carry: r.carry}
	if usage := claudeUsage(m.Usage); line.Type == "assistant" && given(usage) {
		d.tallies = []tally{{id: m.ID, usage: usage}}
		if d.carry = memory(m.ID); m.ID == "" || d.carry != r.carry {
			b.m.Usage = shown(usage)
		}
	}
	d.messages = []message{b.done()}
	return d
}

// claudeRole is tool for a line that brings results only, and system for what
// the CLI itself told the model in the user's place.
func claudeRole(line claudeLine, blocks []hub.TranscriptBlock) string {
	results := 0
	for _, b := range blocks {
		if b.Kind == hub.BlockToolResult || b.Kind == hub.BlockImageRef {
			results++
		}
	}
	switch {
	case line.Type == "user" && line.Meta:
		return roleSystem
	case line.Type == "user" && len(blocks) > 0 && blocks[0].Kind == hub.BlockToolResult && results == len(blocks):
		return roleTool
	}
	return line.Type
}

func claudeContent(b *builder, content json.RawMessage) {
	if first(content) == '"' {
		b.text(str(content))
		return
	}
	for _, raw := range list(content) {
		claudeBlock(b, raw)
	}
}

func claudeBlock(b *builder, raw json.RawMessage) {
	var block struct {
		Type     string          `json:"type"`
		Text     string          `json:"text"`
		Thinking string          `json:"thinking"`
		ID       string          `json:"id"`
		Name     string          `json:"name"`
		Input    json.RawMessage `json:"input"`
		Call     string          `json:"tool_use_id"`
		Content  json.RawMessage `json:"content"`
		Failed   bool            `json:"is_error"`
		Source   struct {
			Media string `json:"media_type"`
		} `json:"source"`
	}
	fill(raw, &block)
	switch block.Type {
	case "text":
		b.text(block.Text)
	case "thinking", "redacted_thinking":
		b.thinking(block.Thinking)
	case "tool_use", "server_tool_use":
		b.call(block.ID, block.Name, block.Input)
	case "tool_result":
		claudeResult(b, block.Call, block.Content, block.Failed)
	case "image":
		b.image(block.Source.Media)
	default:
		b.other(block.Type, excerpt(raw))
	}
}

// claudeResult writes the texts of a result as one block; what else it holds
// follows.
func claudeResult(b *builder, call string, content json.RawMessage, failed bool) {
	if first(content) != '[' {
		b.result(call, str(content), failed)
		return
	}
	var texts []string
	var rest []json.RawMessage
	for _, raw := range list(content) {
		var part struct{ Type, Text string }
		if fill(raw, &part); part.Type == "text" {
			texts = append(texts, part.Text)
		} else {
			rest = append(rest, raw)
		}
	}
	b.result(call, strings.Join(texts, "\n"), failed)
	for _, raw := range rest {
		claudeBlock(b, raw)
	}
}

func claudeUsage(raw json.RawMessage) hub.Usage {
	var u struct {
		Input   count `json:"input_tokens"`
		Written count `json:"cache_creation_input_tokens"`
		Read    count `json:"cache_read_input_tokens"`
		Output  count `json:"output_tokens"`
	}
	if first(raw) == '{' {
		fill(raw, &u)
	}
	return hub.Usage{InputTokens: plus(u.Input.n, u.Written.n, u.Read.n), CachedInputTokens: u.Read.n, OutputTokens: u.Output.n}
}
