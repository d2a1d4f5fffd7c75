package hub

import (
	"encoding/json"
	"math"
)

// Spent is what can be added up of a usage: money, and tokens as input and output
// without what was read from a cache.
type Spent struct {
	CostUSD float64 `json:"cost_usd"`
	Tokens  int64   `json:"tokens"`
}

// maxFigure bounds a figure of a usage that is believed, so that sums of them do
// not overflow.
const maxFigure = 1 << 50

// ParseUsage reads what a worker, or the decoder of its output, says that it used:
// a JSON object in the words of Usage, of an agent's own CLI, or {"cost_usd",
// "tokens"}. A figure that is missing, negative or no number counts 0; ok is false
// where there is none at all. It never fails.
func ParseUsage(raw json.RawMessage) (s Spent, ok bool) {
	f, ok := figuresOf(raw)
	if !ok {
		return Spent{}, false
	}
	if nested, ok := figuresOf(f["usage"]); ok { // Claude's terminal record
		for _, name := range costNames {
			if v, given := f[name]; given {
				nested[name] = v
			}
		}
		f = nested
	}
	cost, costGiven := f.first(costNames...)
	tokens, tokensGiven := f.tokens()
	return Spent{cost, int64(tokens)}, costGiven || tokensGiven
}

var costNames = []string{"cost_usd", "total_cost_usd", "cost"}

// figures are the members of a usage.
type figures map[string]json.RawMessage

func figuresOf(raw json.RawMessage) (f figures, ok bool) {
	return f, json.Unmarshal(raw, &f) == nil && f != nil
}

// first is the first of the names that is given as a figure.
func (f figures) first(names ...string) (float64, bool) {
	for _, name := range names {
		var v *float64
		if json.Unmarshal(f[name], &v) == nil && v != nil && *v >= 0 && *v <= maxFigure {
			return *v, true
		}
	}
	return 0, false
}

// tokens adds up input and output. Where reads of a cache are told as part of the
// input they are taken off it; Claude and OpenCode tell them apart from it, and
// what was written to the cache too.
func (f figures) tokens() (float64, bool) {
	in, inGiven := f.first("input_tokens", "input", "prompt_tokens")
	out, outGiven := f.first("output_tokens", "output", "completion_tokens")
	if !inGiven && !outGiven {
		total, given := f.first("tokens", "total_tokens")
		if inner, ok := figuresOf(f["tokens"]); !given && ok { // OpenCode's step
			return inner.tokens()
		}
		return math.Floor(total), given
	}
	cached, _ := f.first("cached_input_tokens", "cached")
	written, _ := f.first("cache_creation_input_tokens")
	if cache, ok := figuresOf(f["cache"]); ok {
		written, _ = cache.first("write")
	}
	return math.Floor(max(in-cached, 0) + written + out), true
}

// CleanUsage is usage that a hub keeps: a JSON object of at most MaxUsageBytes. Of
// anything else nothing is left.
func CleanUsage(raw json.RawMessage) json.RawMessage {
	if len(raw) > MaxUsageBytes || !isObject(raw) {
		return nil
	}
	return raw
}

// CheckUsage refuses what CleanUsage would leave away; nil is none.
func CheckUsage(raw json.RawMessage) error {
	switch {
	case len(raw) == 0:
		return nil
	case len(raw) > MaxUsageBytes:
		return &Error{Code: CodeTooLarge, Field: "usage", Message: "usage: at most 4 KiB are taken"}
	case !isObject(raw):
		return Invalid("usage", "must be a JSON object")
	}
	return nil
}

// maxShortUsage is what a usage may take in the room that is kept for an end.
const maxShortUsage = 1 << 10

// ShortUsage is usage, or where it is long the figures alone.
func ShortUsage(raw json.RawMessage) json.RawMessage {
	if len(raw) <= maxShortUsage {
		return raw
	}
	spent, ok := ParseUsage(raw)
	if !ok {
		return nil
	}
	short, err := json.Marshal(spent)
	if err != nil { // two numbers always marshal
		panic(err)
	}
	return short
}

// Used is what the attachment's worker has used as far as is known: as its output
// was decoded, else in its own latest word. nil where nothing is.
func (a Attachment) Used() (json.RawMessage, error) {
	if u := a.Agent.Usage; u != nil && (u.Source != UsageUnknown || a.Agent.Said == "") {
		return json.Marshal(u)
	}
	if a.Agent.Said == "" {
		return nil, nil
	}
	return json.RawMessage(a.Agent.Said), nil
}
