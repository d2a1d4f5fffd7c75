package agent

import (
	"encoding/json"

	"github.com/wavehub/wavehub/internal/hub"
)

// opencodeStream reads `opencode run --format json`, which has no terminal
// record: its result comes with the exit, its usage is the sum of the steps.
type opencodeStream struct {
	ending
	id, text, failure string
	steps             int
	usage             hub.Usage
}

type opencodeRecord struct {
	Type    string `json:"type"`
	Session string `json:"sessionID"`
	Part    struct {
		Text   string         `json:"text"`
		Cost   *float64       `json:"cost"`
		Tokens opencodeTokens `json:"tokens"`
	} `json:"part"`
	Error opencodeError `json:"error"`
}

type opencodeTokens struct {
	Input     *int64 `json:"input"`
	Output    *int64 `json:"output"`
	Reasoning *int64 `json:"reasoning"`
	Cache     struct {
		Read  *int64 `json:"read"`
		Write *int64 `json:"write"`
	} `json:"cache"`
}

func (s *opencodeStream) record(line []byte) {
	var r opencodeRecord
	if !decode(line, &r) {
		return
	}
	if s.id == "" {
		s.id = r.Session
	}
	switch r.Type {
	case "text":
		s.text = r.Part.Text
	case "step_finish":
		s.count(r)
	case "error":
		s.failure = r.Error.text()
	}
}

func (s *opencodeStream) count(r opencodeRecord) {
	t := r.Part.Tokens
	step := hub.Usage{InputTokens: sum(t.Input, t.Cache.Read, t.Cache.Write), CachedInputTokens: t.Cache.Read,
		OutputTokens: t.Output, ReasoningTokens: t.Reasoning, CostUSD: r.Part.Cost, Source: hub.UsageReported}
	if s.steps++; s.steps == 1 {
		s.usage = step
		return
	}
	s.usage.InputTokens = sum(s.usage.InputTokens, step.InputTokens)
	s.usage.CachedInputTokens = sum(s.usage.CachedInputTokens, step.CachedInputTokens)
	s.usage.OutputTokens = sum(s.usage.OutputTokens, step.OutputTokens)
	s.usage.ReasoningTokens = sum(s.usage.ReasoningTokens, step.ReasoningTokens)
	if s.usage.CostUSD == nil || step.CostUSD == nil {
		s.usage.CostUSD = nil
		return
	}
	cost := *s.usage.CostUSD + *step.CostUSD
	s.usage.CostUSD = &cost
}

func (s *opencodeStream) session() string { return s.id }

// end makes the result, unless the output had nothing to say.
func (s *opencodeStream) end(exitCode int) {
	if s.steps == 0 && s.failure == "" {
		return
	}
	text := s.text
	if s.failure != "" {
		text = s.failure
	}
	s.close(judged("opencode", exitCode != 0 || s.failure != "", text, s.usage))
}

// grokStream reads `grok -p`: the messages of the chat, without a terminal
// record, a session or figures.
type grokStream struct {
	ending
	text  string
	heard bool // the assistant had the last word
}

func (s *grokStream) record(line []byte) {
	var r struct {
		Role    string            `json:"role"`
		Content string            `json:"content"`
		Calls   []json.RawMessage `json:"tool_calls"`
	}
	if !decode(line, &r) || r.Role == "" {
		return
	}
	if s.heard = r.Role == "assistant" && len(r.Calls) == 0; s.heard {
		s.text = r.Content
	}
}

func (s *grokStream) session() string { return "" }

// end makes the result, if the assistant came to an end of its own.
func (s *grokStream) end(exitCode int) {
	if s.heard {
		s.close(judged("grok", exitCode != 0, s.text, hub.Usage{}))
	}
}
