package hub

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestParseUsage(t *testing.T) {
	for name, c := range map[string]struct {
		raw    string
		cost   float64
		tokens int64
		ok     bool
	}{
		"ours":                {`{"input_tokens":100,"cached_input_tokens":40,"output_tokens":7,"reasoning_tokens":3,"cost_usd":0.25,"source":"reported"}`, 0.25, 67, true},
		"ours, nothing":       {`{"input_tokens":null,"cached_input_tokens":null,"output_tokens":null,"reasoning_tokens":null,"cost_usd":null,"source":"unknown"}`, 0, 0, false},
		"ours, cost alone":    {`{"input_tokens":null,"output_tokens":null,"cost_usd":1.5,"source":"reported"}`, 1.5, 0, true},
		"ours, zero":          {`{"input_tokens":0,"output_tokens":0,"cost_usd":0}`, 0, 0, true},
		"a plain word":        {`{"cost_usd":2,"tokens":1000}`, 2, 1000, true},
		"a total":             {`{"total_tokens":12}`, 0, 12, true},
		"claude":              {`{"input_tokens":10,"cache_creation_input_tokens":5,"cache_read_input_tokens":900,"output_tokens":20}`, 0, 35, true},
		"claude's record":     {`{"type":"result","total_cost_usd":0.5,"usage":{"input_tokens":10,"cache_read_input_tokens":90,"output_tokens":20}}`, 0.5, 30, true},
		"codex":               {`{"input_tokens":100,"cached_input_tokens":80,"output_tokens":30,"reasoning_output_tokens":10}`, 0, 50, true},
		"gemini's stats":      {`{"total_tokens":150,"input_tokens":100,"output_tokens":30,"cached":60}`, 0, 70, true},
		"opencode's step":     {`{"cost":0.125,"tokens":{"input":10,"output":4,"reasoning":2,"cache":{"read":50,"write":6}}}`, 0.125, 20, true},
		"an API's":            {`{"prompt_tokens":3,"completion_tokens":4}`, 0, 7, true},
		"more cached than in": {`{"input_tokens":1,"cached_input_tokens":9,"output_tokens":4}`, 0, 4, true},
		"negative":            {`{"input_tokens":-5,"output_tokens":3,"cost_usd":-1}`, 0, 3, true},
		"no figure":           {`{"input_tokens":"many","cost_usd":true}`, 0, 0, false},
		"beyond belief":       {`{"input_tokens":1e300,"output_tokens":1}`, 0, 1, true},
		"a fraction":          {`{"input_tokens":1.9,"output_tokens":1}`, 0, 2, true},
		"empty":               {`{}`, 0, 0, false},
		"no object":           {`[1]`, 0, 0, false},
		"null":                {`null`, 0, 0, false},
		"nothing":             {``, 0, 0, false},
		"no JSON":             {`{`, 0, 0, false},
	} {
		got, ok := ParseUsage(json.RawMessage(c.raw))
		if ok != c.ok || got != (Spent{c.cost, c.tokens}) {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
}

func FuzzParseUsage(f *testing.F) {
	f.Add(`{"input_tokens":1,"usage":{"usage":{}},"tokens":{"tokens":{"tokens":1}}}`)
	f.Fuzz(func(t *testing.T, raw string) {
		s, ok := ParseUsage(json.RawMessage(raw))
		if s.CostUSD < 0 || s.Tokens < 0 || !ok && s != (Spent{}) {
			t.Errorf("%+v, %v", s, ok)
		}
	})
}

func TestUsageIsBounded(t *testing.T) {
	long := `{"cost_usd":1,"tokens":5,"note":"` + strings.Repeat("x", MaxUsageBytes) + `"}`
	if CleanUsage(json.RawMessage(long)) != nil || !IsCode(CheckUsage(json.RawMessage(long)), CodeTooLarge) {
		t.Error("usage of any size is kept")
	}
	for _, raw := range []string{`[]`, `1`, `null`, `{`} {
		if CleanUsage(json.RawMessage(raw)) != nil || !IsCode(CheckUsage(json.RawMessage(raw)), CodeInvalidArgument) {
			t.Errorf("%s is kept as usage", raw)
		}
	}
	if CheckUsage(nil) != nil || CheckUsage(json.RawMessage(`{}`)) != nil {
		t.Error("no usage is refused")
	}
	if got := ShortUsage(json.RawMessage(long)); string(got) != `{"cost_usd":1,"tokens":5}` {
		t.Errorf("short it is %s", got)
	}
	if got := ShortUsage(json.RawMessage(`{"a":1}`)); string(got) != `{"a":1}` {
		t.Errorf("short already it is %s", got)
	}
	if got := ShortUsage(json.RawMessage(`{"note":"` + strings.Repeat("x", maxShortUsage) + `"}`)); got != nil {
		t.Errorf("without a figure it is %s", got)
	}
}

// What was decoded comes before what was said, unless it says nothing.
func TestWhatAWorkerUsed(t *testing.T) {
	n := int64(3)
	counted, unknown := &Usage{InputTokens: &n, OutputTokens: &n, Source: UsageReported}, &Usage{Source: UsageUnknown}
	for name, c := range map[string]struct {
		agent AgentState
		want  Spent
		ok    bool
	}{
		"nothing":           {AgentState{}, Spent{}, false},
		"said":              {AgentState{Said: `{"tokens":9}`}, Spent{Tokens: 9}, true},
		"counted":           {AgentState{Usage: counted}, Spent{Tokens: 6}, true},
		"both":              {AgentState{Usage: counted, Said: `{"tokens":9}`}, Spent{Tokens: 6}, true},
		"unknown, and said": {AgentState{Usage: unknown, Said: `{"tokens":9}`}, Spent{Tokens: 9}, true},
		"unknown":           {AgentState{Usage: unknown}, Spent{}, false},
	} {
		raw, err := Attachment{Agent: c.agent}.Used()
		got, ok := ParseUsage(raw)
		if err != nil || got != c.want || ok != c.ok {
			t.Errorf("%s: %s, %v", name, raw, err)
		}
	}
}
