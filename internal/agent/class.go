package agent

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// maxReset bounds what is believed of a time at which a provider works again.
const maxReset = 31 * 24 * time.Hour

// maxErrorText is how much of an error is looked at: its beginning and its end,
// in bytes each.
const maxErrorText = 8 << 10

// Classify says what an error text of an agent's means: its last words, what a
// hook gave, or its standard error. kind is the Launcher's Kind. The time at
// which the provider works again is told only where the text states it in a
// form that is known; now, with the zone of the machine, is what relative
// times count from: the zero time leaves them out.
func Classify(kind, text string, now time.Time) (hub.ErrorClass, hub.Micros) {
	if len(text) > 2*maxErrorText {
		text = text[:maxErrorText] + "\n" + text[len(text)-maxErrorText:]
	}
	class := classOf(kind, strings.ToLower(text))
	if class != hub.ErrorRateLimited && class != hub.ErrorQuotaExhausted {
		return class, 0
	}
	return class, resetAt(text, now)
}

// classed is a class and the words that stand for it, in lower case.
type classed struct {
	class hub.ErrorClass
	words []string
}

// common holds for every agent, in this order: a spent quota also answers 429.
var common = []classed{
	{hub.ErrorQuotaExhausted, []string{"insufficient_quota", "exceeded your current quota", "usage limit", "credit balance is too low",
		"billing_hard_limit", "payment required"}},
	{hub.ErrorRateLimited, []string{"rate limit", "rate_limit", "ratelimit", "too many requests"}},
	{hub.ErrorAuthFailed, []string{"invalid api key", "invalid_api_key", "incorrect api key", "authentication_error", "authentication_failed",
		"failed to authenticate", "unauthorized", "not logged in", "please run /login"}},
	{hub.ErrorTransient, []string{"overloaded", "internal server error", "bad gateway", "service unavailable", "gateway timeout",
		"stream disconnected", "connection reset", "connection refused", "connection error", "econnreset", "econnrefused", "etimedout",
		"fetch failed", "network error"}},
}

// special are the words of single agents; they come first.
var special = map[string][]classed{
	"claude": {
		{hub.ErrorQuotaExhausted, []string{"hit your limit", "hit your session limit", "hit your weekly limit", "limit reached"}},
		{hub.ErrorTransient, []string{"server-side issue"}},
	},
	"codex": {
		{hub.ErrorQuotaExhausted, []string{"quota exceeded", "out of credits"}},
		{hub.ErrorTransient, []string{"experiencing high demand", "at capacity"}},
	},
	"gemini": {
		{hub.ErrorQuotaExhausted, []string{"exhausted your daily quota", "exhausted your capacity", "terminalquotaerror"}},
		{hub.ErrorRateLimited, []string{"resource_exhausted", "resource has been exhausted", "retryablequotaerror"}},
		{hub.ErrorAuthFailed, []string{"api key not valid", "api_key_invalid", "fatalauthenticationerror"}},
	},
}

// statusForm is an HTTP status where the text says that it is one.
var statusForm = regexp.MustCompile(`(?:status|error|code|http|rejected)["':=/ (]{1,4}(?:code["':= ]{1,3})?(\d{3})\b`)

func classOf(kind, text string) hub.ErrorClass {
	if kind == "openclaude" {
		kind = "claude"
	}
	for _, c := range append(special[kind][:len(special[kind]):len(special[kind])], common...) {
		for _, words := range c.words {
			if strings.Contains(text, words) {
				return c.class
			}
		}
	}
	if m := statusForm.FindStringSubmatch(text); m != nil {
		return classOfStatus(m[1])
	}
	return hub.ErrorNone
}

func classOfStatus(status string) hub.ErrorClass {
	switch status {
	case "429":
		return hub.ErrorRateLimited
	case "402":
		return hub.ErrorQuotaExhausted
	case "401", "403":
		return hub.ErrorAuthFailed
	case "408", "500", "502", "503", "504", "529":
		return hub.ErrorTransient
	}
	return hub.ErrorNone
}

// withStatus adds an HTTP status to a text that may not have it.
func withStatus(text string, status int) string {
	if status < 100 || status > 999 {
		return text
	}
	return strings.TrimSpace(text + " (status " + strconv.Itoa(status) + ")")
}

var (
	epochForm   = regexp.MustCompile(`limit reached\|(\d{10})\b`)
	secondsForm = regexp.MustCompile(`(?i)\bretry-after["']?\s*[:=]\s*["']?(\d{1,7})\b`)
	goForm      = regexp.MustCompile(`(?i)(?:try again in|retry in|reset after|"retrydelay"\s*:\s*")\s*((?:\d+(?:\.\d+)?(?:ms|h|m|s))+)`)
	wordsForm   = regexp.MustCompile(`(?i)try again in((?:[ ,]+(?:and )?\d+ (?:day|hour|minute|second)s?\b)+)`)
	clockForm   = regexp.MustCompile(`(?i)\bresets (?:at )?(\d{1,2})(?::(\d{2}))?\s?(am|pm)\b(?: \(([A-Za-z_]+(?:/[A-Za-z_]+){0,2})\))?`)
)

// resetAt finds a time in one of the forms; 0 if there is none, or if it is
// past belief.
func resetAt(text string, now time.Time) hub.Micros {
	if m := epochForm.FindStringSubmatch(text); m != nil {
		seconds, err := strconv.ParseInt(m[1], 10, 64)
		if err == nil {
			return believed(time.Unix(seconds, 0), now)
		}
	}
	if now.IsZero() {
		return 0
	}
	if wait := waitFor(text); wait > 0 {
		return believed(now.Add(wait), now)
	}
	if m := clockForm.FindStringSubmatch(text); m != nil {
		return believed(nextClock(m, now), now)
	}
	return 0
}

func believed(at, now time.Time) hub.Micros {
	if at.IsZero() || !now.IsZero() && (at.Before(now) || at.After(now.Add(maxReset))) {
		return 0
	}
	return hub.Micros(at.UnixMicro())
}

func waitFor(text string) time.Duration {
	if m := secondsForm.FindStringSubmatch(text); m != nil {
		return duration(m[1] + "s")
	}
	if m := goForm.FindStringSubmatch(text); m != nil {
		return duration(strings.ToLower(m[1]))
	}
	if m := wordsForm.FindStringSubmatch(text); m != nil {
		return inWords(m[1])
	}
	return 0
}

func duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil { // too large for the type: past belief
		return 0
	}
	return d
}

var numberOf = regexp.MustCompile(`(?i)(\d+) (day|hour|minute|second)`)

func inWords(text string) time.Duration {
	var sum time.Duration
	for _, m := range numberOf.FindAllStringSubmatch(text, 8) {
		n, err := strconv.Atoi(m[1])
		if err != nil || n > 1000 {
			return 0
		}
		unit := map[string]time.Duration{"day": 24 * time.Hour, "hour": time.Hour, "minute": time.Minute, "second": time.Second}
		sum += time.Duration(n) * unit[strings.ToLower(m[2])]
	}
	return sum
}

// nextClock is the next time at which a clock shows the hour of the match, in
// its zone or in now's. A zone that this machine does not know gives zero.
func nextClock(m []string, now time.Time) time.Time {
	hour, hourErr := strconv.Atoi(m[1])
	minute, minuteErr := strconv.Atoi("0" + m[2])
	if hourErr != nil || minuteErr != nil || hour < 1 || hour > 12 || minute > 59 {
		return time.Time{}
	}
	hour %= 12
	if strings.EqualFold(m[3], "pm") {
		hour += 12
	}
	zone := now.Location()
	if m[4] != "" {
		named, err := time.LoadLocation(m[4])
		if err != nil {
			return time.Time{}
		}
		zone = named
	}
	here := now.In(zone)
	at := time.Date(here.Year(), here.Month(), here.Day(), hour, minute, 0, 0, zone)
	if !at.After(now) {
		at = time.Date(here.Year(), here.Month(), here.Day()+1, hour, minute, 0, 0, zone)
	}
	return at
}
