package agent

import (
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// geminiStream reads `gemini -o stream-json`. The text comes in pieces; any
// other record ends it.
type geminiStream struct {
	ending
	id, text string
	open     bool // the next piece belongs to text
}

type geminiRecord struct {
	Type    string       `json:"type"`
	Session string       `json:"session_id"`
	Role    string       `json:"role"`
	Content string       `json:"content"`
	Delta   bool         `json:"delta"`
	Status  string       `json:"status"`
	Stats   *geminiStats `json:"stats"`
	Error   struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
}

type geminiStats struct {
	Input  *int64 `json:"input_tokens"`
	Cached *int64 `json:"cached"`
	Output *int64 `json:"output_tokens"`
}

func (s *geminiStream) record(line []byte) {
	var r geminiRecord
	if !decode(line, &r) {
		return
	}
	switch {
	case r.Type == "init":
		s.id = r.Session
	case r.Type == "message" && r.Role == "assistant":
		s.say(r)
		return
	case r.Type == "result":
		s.close(judged("gemini", r.Status != "success", r.text(s.text), r.usage()))
	}
	s.open = false
}

// say keeps at most MaxRecord bytes of one text.
func (s *geminiStream) say(r geminiRecord) {
	if !s.open || !r.Delta {
		s.text = ""
	}
	if s.open = true; len(s.text)+len(r.Content) <= MaxRecord {
		s.text += r.Content
	}
}

func (r geminiRecord) text(said string) string {
	if r.Status != "success" && r.Error.Message != "" {
		return strings.TrimPrefix(r.Error.Type+": "+r.Error.Message, ": ")
	}
	return said
}

func (r geminiRecord) usage() hub.Usage {
	if r.Stats == nil {
		return hub.Usage{}
	}
	return hub.Usage{InputTokens: r.Stats.Input, CachedInputTokens: r.Stats.Cached, OutputTokens: r.Stats.Output, Source: hub.UsageReported}
}

func (s *geminiStream) session() string { return s.id }
func (s *geminiStream) end(int)         {}
