package transcript

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

type codexLine struct {
	Timestamp string          `json:"timestamp"`
	Type      string          `json:"type"`
	Payload   json.RawMessage `json:"payload"`
}

// decodeCodex reads a line of a rollout. Messages are its response items.
func decodeCodex(r record) decoded {
	var line codexLine
	fill(r.raw, &line)
	at := parseTime(line.Timestamp)
	switch {
	case line.Type == "response_item" && first(line.Payload) == '{':
		return decoded{messages: codexItem(r, line.Payload, at)}
	case line.Type == "event_msg" && first(line.Payload) == '{':
		return codexEvent(r, line.Payload, at)
	case line.Type == "token_usage_record":
		return codexUsageRecord(r, line.Payload, at)
	case slices.Contains([]string{"session_meta", "turn_context", "world_state"}, line.Type):
		return decoded{messages: codexNote(r, at, line.Type, "")}
	}
	return decoded{messages: codexNote(r, at, line.Type, excerpt(r.raw))}
}

func codexNote(r record, at hub.Micros, kind, text string) []message {
	b := newMessage(r.id("", 0), roleOther, at)
	b.other(kind, text)
	return []message{b.done()}
}

type codexPayload struct {
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	Summary   json.RawMessage `json:"summary"`
	Name      string          `json:"name"`
	Call      string          `json:"call_id"`
	Arguments string          `json:"arguments"`
	Input     string          `json:"input"`
	Action    json.RawMessage `json:"action"`
	Output    json.RawMessage `json:"output"`
	Origin    struct {
		Items []struct {
			Provenance struct {
				Type string `json:"type"`
			} `json:"provenance"`
		} `json:"content_item_metadata"`
	} `json:"internal_chat_message_metadata_passthrough"`
}

func codexItem(r record, payload json.RawMessage, at hub.Micros) []message {
	var p codexPayload
	fill(payload, &p)
	b := newMessage(r.id(p.ID, 0), roleAssistant, at)
	switch p.Type {
	case "message":
		b.m.Role = codexRole(p)
		codexContent(b, p.Content)
		b.explain("message", payload)
	case "reasoning":
		codexReasoning(b, p)
	case "function_call":
		b.call(p.Call, p.Name, arguments(p.Arguments))
	case "custom_tool_call":
		b.call(p.Call, p.Name, quote(p.Input))
	case "local_shell_call", "web_search_call":
		b.call(p.Call, strings.TrimSuffix(p.Type, "_call"), p.Action)
	case "function_call_output", "custom_tool_call_output":
		b.m.Role = roleTool
		codexOutput(b, p.Call, p.Output)
	default:
		b.m.Role = roleOther
		b.other("response_item."+p.Type, excerpt(payload))
	}
	return []message{b.done()}
}

// environment begins what codex itself tells the model in the user's place.
const environment = "<environment_context>"

// codexRole takes what comes from codex itself for the system's: developer
// messages, the description of the environment, and what is marked as the
// harness's throughout.
func codexRole(p codexPayload) string {
	switch p.Role {
	case roleAssistant:
		return roleAssistant
	case roleSystem, "developer":
		return roleSystem
	case roleUser:
		if strings.HasPrefix(codexText(p.Content), environment) || fromHarness(p) {
			return roleSystem
		}
		return roleUser
	}
	return roleOther
}

func fromHarness(p codexPayload) bool {
	for _, item := range p.Origin.Items {
		if item.Provenance.Type != "harness" {
			return false
		}
	}
	return len(p.Origin.Items) > 0
}

// codexText is the first text of a content.
func codexText(content json.RawMessage) string {
	var part struct{ Text string }
	if parts := list(content); len(parts) > 0 {
		fill(parts[0], &part)
	}
	return strings.TrimLeft(part.Text+str(content), space)
}

func codexContent(b *builder, content json.RawMessage) {
	if first(content) == '"' {
		b.text(str(content))
	}
	for _, raw := range list(content) {
		codexPart(b, raw)
	}
}

func codexPart(b *builder, raw json.RawMessage) {
	var part struct {
		Type  string `json:"type"`
		Text  string `json:"text"`
		Image string `json:"image_url"`
	}
	fill(raw, &part)
	switch part.Type {
	case "input_text", "output_text", "text":
		b.text(part.Text)
	case "input_image":
		b.image(dataType(part.Image))
	default:
		b.other(part.Type, excerpt(raw))
	}
}

// codexReasoning writes what may be read of the reasoning; of what is encrypted
// only that there was some.
func codexReasoning(b *builder, p codexPayload) {
	for _, raw := range slices.Concat(list(p.Summary), list(p.Content)) {
		var part struct{ Text string }
		fill(raw, &part)
		b.thinking(part.Text)
	}
	if len(b.m.Blocks) == 0 {
		b.thinking("")
	}
}

// codexOutput writes a result. It is text, text that is a document with an exit
// code, or a list of parts.
func codexOutput(b *builder, call string, output json.RawMessage) {
	var object struct {
		Content json.RawMessage `json:"content"`
		Success *bool           `json:"success"`
	}
	if first(output) == '{' {
		fill(output, &object)
		output = object.Content
	}
	var texts []string
	var rest []json.RawMessage
	for _, raw := range list(output) {
		var part struct{ Type, Text string }
		if fill(raw, &part); part.Type == "input_text" {
			texts = append(texts, part.Text)
		} else {
			rest = append(rest, raw)
		}
	}
	text, failed := codexExit(str(output) + strings.Join(texts, "\n"))
	b.result(call, text, failed || object.Success != nil && !*object.Success)
	for _, raw := range rest {
		codexPart(b, raw)
	}
}

var exitLine = regexp.MustCompile(`(?m)^(?:Process exited with code|Exit code:) (-?\d+)$`)

// codexExit finds the exit code where codex writes it: in a document around the
// output, or in the lines before it.
func codexExit(text string) (string, bool) {
	var doc struct {
		Output   *string `json:"output"`
		Metadata struct {
			Exit *int64 `json:"exit_code"`
		} `json:"metadata"`
	}
	if strings.HasPrefix(text, "{") && json.Valid([]byte(text)) {
		if fill([]byte(text), &doc); doc.Output != nil && doc.Metadata.Exit != nil {
			return *doc.Output, *doc.Metadata.Exit != 0
		}
	}
	head, _, _ := strings.Cut(text, "\nOutput:\n")
	m := exitLine.FindStringSubmatch(head)
	return text, m != nil && m[1] != "0"
}

// shownAsItems are the completed items that a response item repeats, as the
// samples show: the same text, call and result. No others are left out.
var shownAsItems = []string{"UserMessage", "AgentMessage", "CommandExecution"}

func codexEvent(r record, payload json.RawMessage, at hub.Micros) decoded {
	var p struct {
		Type  string          `json:"type"`
		Info  json.RawMessage `json:"info"`
		Error json.RawMessage `json:"error"`
		Item  struct {
			Type string `json:"type"`
		} `json:"item"`
	}
	fill(payload, &p)
	kind := "event_msg." + p.Type
	switch p.Type {
	case "item_completed":
		if slices.Contains(shownAsItems, p.Item.Type) {
			return decoded{}
		}
	case "token_count":
		return decoded{messages: codexNote(r, at, kind, ""), tallies: codexTotal(p.Info, "total_token_usage")}
	case "task_started", "thread_settings_applied":
		return decoded{messages: codexNote(r, at, kind, "")}
	case "task_complete":
		text := ""
		if !absent(p.Error) {
			text = excerpt(p.Error)
		}
		return decoded{messages: codexNote(r, at, kind, text)}
	}
	return decoded{messages: codexNote(r, at, kind, excerpt(payload))}
}

// codexUsageRecord is the usage of one request, and of the thread so far.
func codexUsageRecord(r record, payload json.RawMessage, at hub.Micros) decoded {
	d := decoded{messages: codexNote(r, at, "token_usage_record", "")}
	var p struct {
		Usage json.RawMessage `json:"usage"`
	}
	if first(payload) == '{' {
		fill(payload, &p)
		d.tallies = codexTotal(payload, "thread_token_usage")
		d.messages[0].Usage = shown(codexUsage(p.Usage))
	}
	return d
}

// codexTotal is the thread's usage so far, in the named field.
func codexTotal(raw json.RawMessage, field string) []tally {
	var fields map[string]json.RawMessage
	if first(raw) == '{' {
		fill(raw, &fields)
	}
	return tallied(tally{total: true, usage: codexUsage(fields[field])})
}

func codexUsage(raw json.RawMessage) hub.Usage {
	var u struct {
		Input     count `json:"input_tokens"`
		Cached    count `json:"cached_input_tokens"`
		Output    count `json:"output_tokens"`
		Reasoning count `json:"reasoning_output_tokens"`
	}
	if first(raw) == '{' {
		fill(raw, &u)
	}
	return hub.Usage{InputTokens: u.Input.n, CachedInputTokens: u.Cached.n, OutputTokens: u.Output.n, ReasoningTokens: u.Reasoning.n}
}
