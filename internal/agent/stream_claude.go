package agent

import (
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/safetext"
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
	var r claudeRecord
	if !decode(line, &r) {
		return
	}
	if r.Session != "" {
		s.id = r.Session
	}
	if r.Type == "result" {
		result := judged("claude", r.failed(), r.text(), r.usage())
		result.Denied = r.denied()
		s.close(result)
	}
}

func (r claudeRecord) failed() bool { return r.IsError || r.Subtype != "success" }

// Bounds of the tools that were denied: how many are named, and how long each.
const (
	maxDenied     = 20
	maxDeniedName = 100
)

func (r claudeRecord) denied() []string {
	var out []string
	for _, d := range r.Denials[:min(len(r.Denials), maxDenied)] {
		out = append(out, safetext.Line(d.Tool, maxDeniedName))
	}
	return out
}

func (r claudeRecord) text() string {
	text := r.Result
	if text == "" && r.failed() {
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
