package agent

import "github.com/wavehub/wavehub/internal/hub"

// codexStream reads `codex exec --json`. Errors on the way are no end: codex
// tries again. A turn that begins takes back the result of the one before.
type codexStream struct {
	ending
	id, text string
}

type codexRecord struct {
	Type   string `json:"type"`
	Thread string `json:"thread_id"`
	Item   struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"item"`
	Usage *codexUsage `json:"usage"`
	Error struct {
		Message string `json:"message"`
	} `json:"error"`
}

type codexUsage struct {
	Input     *int64 `json:"input_tokens"`
	Cached    *int64 `json:"cached_input_tokens"`
	Output    *int64 `json:"output_tokens"`
	Reasoning *int64 `json:"reasoning_output_tokens"`
}

func (s *codexStream) record(line []byte) {
	var r codexRecord
	if !decode(line, &r) {
		return
	}
	switch r.Type {
	case "thread.started":
		s.id = r.Thread
	case "turn.started":
		s.ending = ending{}
	case "item.completed":
		if r.Item.Type == "agent_message" {
			s.text = r.Item.Text
		}
	case "turn.completed":
		s.close(judged("codex", false, s.text, r.usage()))
	case "turn.failed":
		s.close(judged("codex", true, r.Error.Message, r.usage()))
	}
}

func (r codexRecord) usage() hub.Usage {
	if r.Usage == nil {
		return hub.Usage{}
	}
	u := r.Usage
	return hub.Usage{InputTokens: u.Input, CachedInputTokens: u.Cached, OutputTokens: u.Output, ReasoningTokens: u.Reasoning,
		Source: hub.UsageReported}
}

func (s *codexStream) session() string { return s.id }
func (s *codexStream) end(int)         {}
