package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// TestClassify holds texts of the real CLIs (against a scripted service, or
// from their documentation) and texts that must mean nothing.
func TestClassify(t *testing.T) {
	cases := map[hub.ErrorClass][][2]string{
		hub.ErrorRateLimited: {
			{"codex", "exceeded retry limit, last status: 429 Too Many Requests"},
			{"claude", "API Error: Request rejected (429) · scripted error"},
			{"openclaude", `API Error: 429 {"type":"error","error":{"type":"rate_limit_error"}}`},
			{"gemini", `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}`},
			{"opencode", "APIError: no (status 429)"},
			{"copilot", "HTTP 429"},
		},
		hub.ErrorQuotaExhausted: {
			{"codex", "You've hit your usage limit. Try again in 3 days 2 hours 5 minutes."},
			{"claude", "You've hit your limit · resets 3pm (Europe/Zurich)"},
			{"claude", "5-hour limit reached ∙ resets 3pm"},
			{"claude", "Credit balance is too low"},
			{"gemini", "TerminalQuotaError: You have exhausted your daily quota on this model."},
			{"grok", "429 You exceeded your current quota, please check your plan"},
		},
		hub.ErrorAuthFailed: {
			{"codex", "unexpected status 401 Unauthorized: scripted error, url: http://127.0.0.1/v1/responses"},
			{"claude", "Failed to authenticate. API Error: 401 scripted error"},
			{"claude", "Not logged in · Please run /login"},
			{"gemini", "API key not valid. Please pass a valid API key."},
			{"mine", "status 403"},
		},
		hub.ErrorTransient: {
			{"codex", "We’re currently experiencing high demand, which may cause temporary errors."},
			{"claude", "API Error: 500 scripted error. This is a server-side issue, usually temporary — try again in a moment."},
			{"claude", `API Error: 529 {"type":"error","error":{"type":"overloaded_error"}}`},
			{"opencode", "fetch failed: ECONNRESET"},
		},
		hub.ErrorNone: {
			{"claude", "API Error: 400 scripted error"}, {"codex", "stream ended at line 429"}, {"sh", "wrote 500 files, error 0"},
			{"gemini", "limit reached"}, {"mine", ""}, {"claude", "fixed issue (429)"},
		},
	}
	for want, texts := range cases {
		for _, c := range texts {
			if got, _ := Classify(c[0], c[1], time.Time{}); got != want {
				t.Errorf("%s %q: %s, want %s", c[0], c[1], got, want)
			}
		}
	}
	long := strings.Repeat("x", 1<<20) + " rate limit"
	if got, _ := Classify("codex", long, time.Time{}); got != hub.ErrorRateLimited {
		t.Errorf("the end of a long text is not looked at: %s", got)
	}
}

func TestResetTimes(t *testing.T) {
	zone := time.FixedZone("here", 2*3600)
	now := time.Date(2026, 11, 30, 14, 30, 0, 0, zone)
	cases := map[string]time.Time{
		"Rate limit reached. Please try again in 20s.":        now.Add(20 * time.Second),
		"rate limit: try again in 1.5s":                       now.Add(1500 * time.Millisecond),
		"rate limit: try again in 6m0s":                       now.Add(6 * time.Minute),
		"rate limit, retry-after: 30":                         now.Add(30 * time.Second),
		`rate limit {"Retry-After":"120"}`:                    now.Add(2 * time.Minute),
		"Rate limit. Please retry in 41.5s.":                  now.Add(41500 * time.Millisecond),
		`too many requests "retryDelay": "36s"`:               now.Add(36 * time.Second),
		"usage limit. Try again in 3 days 2 hours 5 minutes.": now.Add(74*time.Hour + 5*time.Minute),
		"usage limit. Your quota will reset after 12h34m56s.": now.Add(12*time.Hour + 34*time.Minute + 56*time.Second),
		"You've hit your limit · resets 3pm":                  time.Date(2026, 11, 30, 15, 0, 0, 0, zone),
		"You've hit your limit · resets 2:30pm":               time.Date(2026, 12, 1, 14, 30, 0, 0, zone),
		"You've hit your limit · resets 12am":                 time.Date(2026, 12, 1, 0, 0, 0, 0, zone),
		"You've hit your limit · resets 3pm (UTC)":            time.Date(2026, 11, 30, 15, 0, 0, 0, time.UTC),
		"Claude AI usage limit reached|1796083200":            time.Unix(1796083200, 0),
		"You've hit your limit · resets Oct 6, 1pm":           {},
		"You've hit your limit · resets 13pm":                 {},
		"You've hit your limit · resets 3pm (Nowhere/At_All)": {},
		"usage limit reached|1999999999":                      {}, // years away
		"rate limit: try again in 99999999999999h":            {},
		"rate limit: try again later":                         {},
		"rate limit. try again in a moment, 5 minutes":        {},
		"unauthorized, retry-after: 30":                       {}, // no pool to open again
		"usage limit. Try again in 99999999999999999999 days": {},
	}
	for text, want := range cases {
		_, got := Classify("claude", text, now)
		if want.IsZero() != (got == 0) || got != 0 && !got.Time().Equal(want) {
			t.Errorf("%q: %v, want %v", text, got.Time(), want)
		}
	}
	for text, want := range map[string]hub.Micros{"usage limit reached|1796083200": 1796083200e6, "rate limit: try again in 20s": 0} {
		if _, got := Classify("claude", text, time.Time{}); got != want {
			t.Errorf("%q without a clock: %d", text, got)
		}
	}
}
