package agent

import (
	"encoding/json"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// claudeStream reads `claude -p --output-format stream-json`. The last result
// counts. An API error has is_error with the subtype success.
type claudeStream struct {
	ending
	id string
}

type claudeRecord struct {
	Type    string       `json:"type"`
	Subtype string       `json:"subtype"`
	Session string       `json:"session_id"`
	IsError bool         `json:"is_error"`
	Status  int          `json:"api_error_status"`
	Result  string       `json:"result"`
	Errors  []string     `json:"errors"`
	Cost    *float64     `json:"total_cost_usd"`
	Usage   *claudeUsage `json:"usage"`
	Denials []struct {
		Tool string `json:"tool_name"`
	} `json:"permission_denials"`
}

type claudeUsage struct {
	Input   *int64 `json:"input_tokens"`
	Created *int64 `json:"cache_creation_input_tokens"`
	Read    *int64 `json:"cache_read_input_tokens"`
	Output  *int64 `json:"output_tokens"`
}

func (s *claudeStream) record(line []byte) {
	var head struct {
		Type    string `json:"type"`
		Session string `json:"session_id"`
	}
	if json.Unmarshal(line, &head) != nil {
		return
	}
	if s.id == "" {
		s.id = head.Session
	}
	var r claudeRecord
	if head.Type != "result" || json.Unmarshal(line, &r) != nil {
		return
	}
	result := judged("claude", r.IsError || r.Subtype != "success", r.text(), r.usage())
	for _, d := range r.Denials {
		result.Denied = append(result.Denied, d.Tool)
	}
	s.id = r.Session
	s.close(result)
}

func (r claudeRecord) text() string {
	text := r.Result
	if text == "" {
		text = strings.Join(append([]string{r.Subtype}, r.Errors...), "\n")
	}
	if r.IsError {
		text = withStatus(text, r.Status)
	}
	return text
}

// usage counts what was read from and written to the cache as input.
func (r claudeRecord) usage() hub.Usage {
	if r.Usage == nil {
		return hub.Usage{CostUSD: r.Cost}
	}
	u := r.Usage
	return hub.Usage{InputTokens: sum(u.Input, u.Created, u.Read), CachedInputTokens: u.Read, OutputTokens: u.Output,
		CostUSD: r.Cost, Source: hub.UsageReported}
}

func (s *claudeStream) session() string { return s.id }
func (s *claudeStream) end(int)         {}
