package hub

import (
	"slices"
	"strings"
)

// Values of a policy.
const (
	OrderDAG     = "dag"
	OrderBarrier = "barrier"

	FailFast     = "fail_fast"
	FailContinue = "continue"

	ConflictsReject    = "reject"
	ConflictsSerialize = "serialize"
	ConflictsAllow     = "allow"

	MailFinal = "final"
	MailAll   = "all"
)

// WavePolicy says how a wave is run. LivenessSecs and IdleSecs 0 are off;
// Concurrency 0 is no limit.
type WavePolicy struct {
	Order         string `json:"order"`
	OnFailure     string `json:"on_failure"`
	Conflicts     string `json:"conflicts"`
	Concurrency   int    `json:"concurrency"`
	TimeoutSecs   int64  `json:"timeout_secs"`
	LivenessSecs  int64  `json:"liveness_secs"`
	IdleSecs      int64  `json:"idle_secs"`
	Retry         int    `json:"retry"`
	MaxIterations int    `json:"max_iterations"`
	Verify        string `json:"verify"`
	Scope         string `json:"scope"`
	Budget        Budget `json:"budget"`
	Mail          string `json:"mail"`
}

// Budget bounds what all attempts of a wave may use together; 0 is no bound.
type Budget struct {
	CostUSD float64 `json:"cost_usd"`
	Tokens  int64   `json:"tokens"`
}

// BudgetChange replaces bounds; nil leaves one as it is.
type BudgetChange struct {
	CostUSD *float64 `json:"cost_usd,omitempty"`
	Tokens  *int64   `json:"tokens,omitempty"`
}

// With is b after c.
func (b Budget) With(c BudgetChange) Budget {
	if c.CostUSD != nil {
		b.CostUSD = *c.CostUSD
	}
	if c.Tokens != nil {
		b.Tokens = *c.Tokens
	}
	return b
}

// Set reports whether there is a bound.
func (b Budget) Set() bool { return b.CostUSD > 0 || b.Tokens > 0 }

// DefaultWavePolicy is the policy of a caller that says nothing.
func DefaultWavePolicy(livenessSecs int64) WavePolicy {
	return WavePolicy{
		Order: OrderDAG, OnFailure: FailFast, Conflicts: ConflictsReject, TimeoutSecs: DefaultWaveTime, LivenessSecs: livenessSecs,
		IdleSecs: DefaultIdle, MaxIterations: DefaultIterations, Verify: VerifyRecord, Scope: ScopeAdvisory, Mail: MailFinal,
	}
}

// Clean returns p with its time clamped to its bounds, or refuses it with the field
// named.
func (p WavePolicy) Clean() (WavePolicy, error) {
	for _, c := range []struct {
		field, value string
		of           []string
	}{
		{"order", p.Order, []string{OrderDAG, OrderBarrier}},
		{"on_failure", p.OnFailure, []string{FailFast, FailContinue}},
		{"conflicts", p.Conflicts, []string{ConflictsReject, ConflictsSerialize, ConflictsAllow}},
		{"verify", p.Verify, []string{VerifyRecord, VerifyRequired}},
		{"scope", p.Scope, []string{ScopeAdvisory, ScopeEnforce}},
		{"mail", p.Mail, []string{MailFinal, MailAll}},
	} {
		if !slices.Contains(c.of, c.value) {
			return p, Invalid(c.field, "must be %s", strings.Join(c.of, " or "))
		}
	}
	p.TimeoutSecs = ClampWaveTime(p.TimeoutSecs)
	return p, p.bounded()
}

// ClampWaveTime brings a time-out into its bounds; a negative one is left to be
// refused.
func ClampWaveTime(secs int64) int64 {
	if secs < 0 {
		return secs
	}
	return min(max(secs, 1), MaxWaveTime)
}

func (p WavePolicy) bounded() error {
	switch {
	case p.TimeoutSecs < 0:
		return Invalid("timeout_secs", "must not be negative")
	case p.Concurrency < 0 || p.Concurrency > MaxWaveTasks:
		return Invalid("concurrency", "must be 0 to %d", MaxWaveTasks)
	case p.LivenessSecs < 0 || p.LivenessSecs > MaxLivenessSecs:
		return Invalid("liveness_secs", "must be 0 to %d", MaxLivenessSecs)
	case p.IdleSecs < 0 || p.IdleSecs > MaxLivenessSecs:
		return Invalid("idle_secs", "must be 0 to %d", MaxLivenessSecs)
	case p.Retry < 0 || p.Retry > MaxWaveRetry:
		return Invalid("retry", "must be 0 to %d", MaxWaveRetry)
	case p.MaxIterations < 1 || p.MaxIterations > MaxIterations:
		return Invalid("max_iterations", "must be 1 to %d", MaxIterations)
	case p.Budget.CostUSD < 0 || p.Budget.CostUSD > 1e9 || p.Budget.Tokens < 0:
		return Invalid("budget", "must not be negative")
	}
	return nil
}
