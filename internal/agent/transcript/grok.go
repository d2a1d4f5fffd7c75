package transcript

import "encoding/json"

// decodeGrok reads a chat message as the CLI prints it. It has neither id nor
// time.
func decodeGrok(r record) decoded {
	var m struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
		Call    string          `json:"tool_call_id"`
		Calls   json.RawMessage `json:"tool_calls"`
	}
	fill(r.raw, &m)
	b := newMessage(r.id("", 0), m.Role, 0)
	switch m.Role {
	case roleTool:
		b.result(m.Call, grokText(m.Content), false)
	case roleUser, roleAssistant, roleSystem:
		grokContent(b, m.Content)
		for _, raw := range list(m.Calls) {
			grokCall(b, raw)
		}
	default:
		return decoded{messages: r.unknown(m.Role)}
	}
	return decoded{messages: []message{b.done()}}
}

func grokCall(b *builder, raw json.RawMessage) {
	var call struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	}
	fill(raw, &call)
	b.call(call.ID, call.Function.Name, arguments(call.Function.Arguments))
}

func grokContent(b *builder, content json.RawMessage) {
	if s := str(content); s != "" {
		b.text(s)
	}
	for _, raw := range list(content) {
		var part struct {
			Type  string `json:"type"`
			Text  string `json:"text"`
			Image struct {
				URL string `json:"url"`
			} `json:"image_url"`
		}
		fill(raw, &part)
		switch part.Type {
		case "text":
			b.text(part.Text)
		case "image_url":
			b.image(dataType(part.Image.URL))
		default:
			b.other(part.Type, excerpt(raw))
		}
	}
}

// grokText is the result of a tool: a string, or what else it is as JSON.
func grokText(content json.RawMessage) string {
	if first(content) == '"' || absent(content) {
		return str(content)
	}
	return string(content)
}
