// Package backoff paces the attempts at something that fails: ever rarer,
// never in step with others, and at once when there is a reason.
package backoff
