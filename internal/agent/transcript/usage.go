package transcript

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/wavehub/wavehub/internal/hub"
)

// tally is what one record says of usage.
type tally struct {
	id    string // of what the usage is of: a later one with this id replaces it
	total bool   // of the whole session so far
	usage hub.Usage
}

// count is a number of tokens; what is no whole number from 0 on is not given.
type count struct{ n *int64 }

// UnmarshalJSON never fails.
func (c *count) UnmarshalJSON(raw []byte) error {
	c.n = nil
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil && n >= 0 {
		c.n = &n
	}
	return nil
}

// money is an amount in US dollars; what is no amount is not given.
type money struct{ usd *float64 }

// UnmarshalJSON never fails.
func (m *money) UnmarshalJSON(raw []byte) error {
	m.usd = nil
	var f float64
	if err := json.Unmarshal(raw, &f); err == nil && f >= 0 && string(raw) != "null" {
		m.usd = &f
	}
	return nil
}

// plus adds what is given; nil only if nothing is.
func plus(counts ...*int64) *int64 {
	var sum *int64
	for _, c := range counts {
		switch {
		case c == nil:
		case sum == nil:
			n := *c
			sum = &n
		case *c > math.MaxInt64-*sum:
			*sum = math.MaxInt64
		default:
			*sum += *c
		}
	}
	return sum
}

func plusUSD(a, b *float64) *float64 {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	sum := *a + *b
	return &sum
}

func add(a, b hub.Usage) hub.Usage {
	return hub.Usage{
		InputTokens: plus(a.InputTokens, b.InputTokens), CachedInputTokens: plus(a.CachedInputTokens, b.CachedInputTokens),
		OutputTokens: plus(a.OutputTokens, b.OutputTokens), ReasoningTokens: plus(a.ReasoningTokens, b.ReasoningTokens),
		CostUSD: plusUSD(a.CostUSD, b.CostUSD), Source: hub.UsageReported,
	}
}

// given reports whether u has any figure.
func given(u hub.Usage) bool {
	return u.InputTokens != nil || u.CachedInputTokens != nil || u.OutputTokens != nil || u.ReasoningTokens != nil || u.CostUSD != nil
}

// shown is u for a message, nil if it has no figure.
func shown(u hub.Usage) *hub.Usage {
	if !given(u) {
		return nil
	}
	u.Source = hub.UsageReported
	return &u
}

func tallied(t tally) []tally {
	if !given(t.usage) {
		return nil
	}
	return []tally{t}
}
