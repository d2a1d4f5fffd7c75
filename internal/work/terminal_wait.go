package work

import (
	"context"
	"regexp"
	"strings"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// What a wait on a terminal can be for.
const (
	WaitExit   = "exit"
	WaitOutput = "output" // anything that was not there when the wait began
	WaitIdle   = "idle"   // the process says so, or has been quiet
	WaitText   = "text"   // a line of the screen matches
)

// Limits of waits on terminals.
const (
	MaxWaitTime = 600 * time.Second
	maxPattern  = 1024
	quietTime   = 2 * time.Second // without output this long hints at idle
	lookPause   = 100 * time.Millisecond
	matchAbove  = 200 // lines above the screen that are looked at too
)

// WaitQuery says what to wait for, and how long.
type WaitQuery struct {
	For  string
	Text string // RE2, of WaitText
	Wait time.Duration
}

// Waited is how a wait ended: met, timed out, or neither when the process ended
// first. Source says what an idle rests on: title or quiescence.
type Waited struct {
	Met      bool
	TimedOut bool
	Source   string
	Line     string // that matched
	Process  hub.ProcessState
}

// Check refuses what cannot be waited for.
func (q WaitQuery) Check() (*regexp.Regexp, error) {
	switch {
	case q.Wait < 0 || q.Wait > MaxWaitTime:
		return nil, hub.Invalid("wait_ms", "must be 0 to %d", MaxWaitTime.Milliseconds())
	case q.For == WaitText && (q.Text == "" || len(q.Text) > maxPattern):
		return nil, hub.Invalid("text", "a pattern has 1 to %d bytes", maxPattern)
	case q.For == WaitText:
		pattern, err := regexp.Compile(q.Text)
		if err != nil {
			return nil, hub.Invalid("text", "%v", err)
		}
		return pattern, nil
	case q.For != WaitExit && q.For != WaitOutput && q.For != WaitIdle:
		return nil, hub.Invalid("for", "must be exit, output, idle or text")
	}
	return nil, nil
}

// WaitTerminal waits until what q asks for is so, its time is over, or the
// process has ended.
func (s *Service) WaitTerminal(ctx context.Context, id hub.TerminalID, q WaitQuery) (Waited, error) {
	pattern, err := q.Check()
	if err != nil {
		return Waited{}, err
	}
	t, err := s.readable(ctx, id)
	if err != nil {
		return Waited{}, err
	}
	limited, cancel := context.WithTimeout(ctx, q.Wait)
	defer cancel()
	w := waiter{s: s, t: t, in: *t.Process, pattern: pattern}
	out, err := w.await(ctx, limited, q.For)
	if limited.Err() != nil && ctx.Err() == nil && !out.Met {
		out.TimedOut, err = true, nil
	}
	if err != nil {
		return out, err
	}
	out.Process = s.processOf(ctx, t)
	return out, nil
}

// waiter waits for one thing of one terminal. It looks with ctx and waits with
// limit, so that it looks at least once however short the limit is.
type waiter struct {
	s       *Service
	t       hub.Terminal
	in      hub.Incarnation
	pattern *regexp.Regexp
}

func (w waiter) await(ctx, limit context.Context, what string) (Waited, error) {
	switch what {
	case WaitExit:
		return w.exit(ctx, limit)
	case WaitOutput:
		return w.output(ctx, limit)
	case WaitIdle:
		return w.until(ctx, limit, w.idle)
	}
	return w.until(ctx, limit, w.text)
}

func (w waiter) exit(ctx, limit context.Context) (Waited, error) {
	if w.s.processOf(ctx, w.t).Liveness == hub.Exited {
		return Waited{Met: true}, nil
	}
	st, err := w.s.Terminals.Wait(limit, w.in)
	if err == nil && st.Liveness != hub.Exited {
		err = hub.Errorf(hub.CodePreconditionFailed, "the process of %s can no longer be verified", w.t.ID)
	}
	return Waited{Met: err == nil}, err
}

func (w waiter) output(ctx, limit context.Context) (Waited, error) {
	st, err := w.s.Terminals.State(ctx, w.in)
	if err != nil || w.t.Over() {
		return Waited{}, err
	}
	total, err := w.s.Terminals.AwaitOutput(limit, w.in, st.Total)
	return Waited{Met: err == nil && total > st.Total}, err
}

// look tells whether what is waited for is so, and if not, when to look again
// though nothing is written; 0 for never.
type look func(context.Context, hub.TerminalState) (out Waited, again time.Duration, err error)

// until looks whenever there is output, and never more often than lookPause.
func (w waiter) until(ctx, limit context.Context, look look) (Waited, error) {
	for {
		st, err := w.s.Terminals.State(ctx, w.in)
		if err != nil {
			return Waited{}, err
		}
		out, again, err := look(ctx, st)
		if err != nil || out.Met {
			return out, err
		}
		gone, err := w.more(limit, st.Total, again)
		if err != nil || gone {
			return out, err
		}
	}
}

// more waits for output after an offset, or for the time to look again. gone:
// the process has ended, and all of its output was looked at.
func (w waiter) more(limit context.Context, after int64, again time.Duration) (gone bool, err error) {
	if err := sleep(limit, lookPause); err != nil {
		return false, err
	}
	waiting, cancel := limit, context.CancelFunc(func() {})
	if again > 0 {
		waiting, cancel = context.WithTimeout(limit, again)
	}
	defer cancel()
	total, err := w.s.Terminals.AwaitOutput(waiting, w.in, after)
	if waiting.Err() != nil {
		return false, limit.Err()
	}
	return err == nil && total <= after, err
}

func (w waiter) idle(_ context.Context, st hub.TerminalState) (Waited, time.Duration, error) {
	switch st.Activity() {
	case hub.ActivityIdle:
		return Waited{Met: true, Source: "title"}, 0, nil
	case hub.ActivityWorking, hub.ActivityBlocked:
		return Waited{}, 0, nil
	}
	quiet := time.Since(st.LastOutputAt.Time())
	if st.LastOutputAt != 0 && quiet >= quietTime {
		return Waited{Met: true, Source: "quiescence"}, 0, nil
	}
	return Waited{}, max(quietTime-quiet, lookPause), nil
}

func (w waiter) text(ctx context.Context, _ hub.TerminalState) (Waited, time.Duration, error) {
	screen, err := w.s.Terminals.Screen(ctx, w.t.ID, hub.ScreenQuery{Scrollback: matchAbove})
	if err != nil {
		return Waited{}, 0, err
	}
	for _, line := range append(screen.Scrollback, screen.Lines...) {
		if w.pattern.MatchString(line) {
			return Waited{Met: true, Line: strings.TrimSpace(redact([]byte(line)))}, 0, nil
		}
	}
	return Waited{}, 0, nil
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
