package work

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/safetext"
	"github.com/wavehub/wavehub/internal/store"
)

// Sizes of what is read of a terminal at once.
const (
	DefaultRangeBytes = 64 << 10
	MaxRangeBytes     = 1 << 20
	MaxScrollback     = 10_000
	maxScreenText     = 512 << 10
)

// ShownTerminal is a terminal with what is known of it now. Process says what
// is proven; the rest is zero where nobody could be asked. Busy: it works for
// its Dispatch, which is live.
type ShownTerminal struct {
	hub.Terminal
	Process hub.ProcessState
	State   hub.TerminalState
	Busy    bool
}

// ListTerminals reads the terminals that the caller may see, newest first, each
// observed.
func (s *Service) ListTerminals(ctx context.Context, who hub.Principal, f store.TerminalFilter, p store.Page) (out []ShownTerminal, next int64, err error) {
	err = s.Store.View(ctx, func(rx store.Rx) error {
		sight, err := SightOf(rx, who)
		if err != nil {
			return err
		}
		ts, n, err := Visible(p, func(p store.Page) ([]hub.Terminal, int64, error) { return rx.TerminalList(f, p) }, sight.terminal(rx))
		if err != nil {
			return err
		}
		out, next = make([]ShownTerminal, len(ts)), n
		for i, t := range ts {
			if out[i].Busy, err = owned(rx, t); err != nil {
				return err
			}
			out[i].Terminal = sight.without(t)
		}
		return nil
	})
	for i := range out {
		out[i].Process = s.processOf(ctx, out[i].Terminal)
	}
	return out, next, err
}

// WorktreeOf finds the worktree that a filter names, by id or by name.
func (s *Service) WorktreeOf(ctx context.Context, who hub.Principal, selector string) (id hub.WorktreeID, err error) {
	err = s.Store.View(ctx, func(rx store.Rx) error {
		sight, err := SightOf(rx, who)
		if err != nil {
			return err
		}
		w, err := sight.FindWorktree(rx, selector)
		id = w.ID
		return err
	})
	return id, err
}

// ShowTerminal reads one terminal and asks its supervisor.
func (s *Service) ShowTerminal(ctx context.Context, who hub.Principal, id hub.TerminalID) (out ShownTerminal, err error) {
	if _, err = s.decided(ctx, id); err != nil && !hub.IsCode(err, hub.CodeTerminalNotFound) {
		s.Log.Warn("finding out about a terminal", "terminal_id", id, "error", err)
	}
	var sight Sight
	err = s.Store.View(ctx, func(rx store.Rx) error {
		if sight, err = SightOf(rx, who); err != nil {
			return err
		}
		if out.Terminal, err = sight.findTerminal(rx, id); err != nil {
			return err
		}
		out.Busy, err = owned(rx, out.Terminal)
		return err
	})
	if err != nil {
		return out, err
	}
	made := sight.made(out.Terminal)
	out.Terminal = sight.without(out.Terminal)
	out.Process = s.processOf(ctx, out.Terminal)
	if out.Terminal.Process != nil && made {
		if st, err := s.Terminals.State(ctx, *out.Terminal.Process); err == nil {
			out.State = st // without it show says less, and nothing wrong
		}
	}
	return out, nil
}

// processOf is what is proven of a terminal's process now. Not being able to
// look proves nothing.
func (s *Service) processOf(ctx context.Context, t hub.Terminal) hub.ProcessState {
	if t.Over() {
		return hub.ProcessState{Liveness: hub.Exited, ExitCode: t.ExitCode, Signal: t.Signal, ExitedAt: t.EndedAt}
	}
	if t.Process == nil {
		return hub.ProcessState{Liveness: hub.Unverifiable}
	}
	st, err := s.Terminals.Observe(ctx, *t.Process)
	if err != nil {
		return hub.ProcessState{Liveness: hub.Unverifiable}
	}
	return st
}

// ReadScreen renders what a person would see in the terminal, with what looks
// like a token masked.
func (s *Service) ReadScreen(ctx context.Context, id hub.TerminalID, scrollback int) (hub.Screen, hub.Liveness, error) {
	t, err := s.readable(ctx, id)
	if err != nil {
		return hub.Screen{}, "", err
	}
	screen, err := s.Terminals.Screen(ctx, id, hub.ScreenQuery{Scrollback: scrollback})
	if err != nil {
		return screen, "", err
	}
	return cutScreen(maskScreen(screen), maxScreenText), s.processOf(ctx, t).Liveness, nil
}

// maskScreen masks what looks like a token, also where it goes on in the next
// row.
func maskScreen(sc hub.Screen) hub.Screen {
	var all []byte
	rows := append(append([]string{}, sc.Scrollback...), sc.Lines...)
	for _, row := range rows {
		if all = append(all, row...); utf8.RuneCountInString(row) < sc.Size.Cols {
			all = append(all, '\n')
		}
	}
	all = safetext.Mask(all)
	for i, row := range rows {
		rows[i], all = hub.PlainText(all[:len(row)]), all[len(row):]
		if utf8.RuneCountInString(row) < sc.Size.Cols {
			all = all[1:]
		}
	}
	above := len(sc.Scrollback)
	sc.Scrollback, sc.Lines, sc.Title = rows[:above:above], rows[above:], string(safetext.Mask([]byte(sc.Title)))
	return sc
}

// cutScreen leaves out the oldest lines above the screen that there is no room
// for, in bytes.
func cutScreen(sc hub.Screen, room int) hub.Screen {
	for _, row := range sc.Lines {
		room -= len(row)
	}
	first := len(sc.Scrollback)
	for first > 0 && room >= len(sc.Scrollback[first-1]) {
		first--
		room -= len(sc.Scrollback[first])
	}
	sc.Scrollback, sc.Truncated = sc.Scrollback[first:], sc.Truncated || first > 0
	return sc
}

// readable is a terminal that has, or may have, output.
func (s *Service) readable(ctx context.Context, id hub.TerminalID) (hub.Terminal, error) {
	t, err := s.terminal(ctx, id)
	if err == nil && t.Process == nil {
		err = hub.Errorf(hub.CodePreconditionFailed, "%s has no output: no process of it is known", id)
	}
	return t, err
}

// RangeQuery asks for output as it was written. From counts all bytes ever
// written; where there is nothing behind it yet, Wait is how long to wait.
type RangeQuery struct {
	From  int64
	Limit int // bytes; 0 takes DefaultRangeBytes
	Wait  time.Duration
}

// ReadRange reads a stretch of the terminal's output. Tokens are masked in place,
// so that offsets hold. Ended: the process is gone and this is the last of it.
func (s *Service) ReadRange(ctx context.Context, id hub.TerminalID, q RangeQuery) (out hub.OutputRange, ended bool, err error) {
	t, err := s.readable(ctx, id)
	if err != nil {
		return out, false, err
	}
	if q.Limit == 0 {
		q.Limit = DefaultRangeBytes
	}
	if out, ended, err = s.readOnce(ctx, t, q); err != nil || ended || len(out.Data) > 0 || q.Wait == 0 {
		return out, ended, err
	}
	if err := s.awaitOutput(ctx, *t.Process, out.From, q.Wait); err != nil {
		return out, false, err
	}
	return s.readOnce(ctx, t, q)
}

func (s *Service) readOnce(ctx context.Context, t hub.Terminal, q RangeQuery) (out hub.OutputRange, ended bool, err error) {
	gone := s.processOf(ctx, t).Liveness == hub.Exited // before the reading: what is read then is the last
	out, err = s.Terminals.Output(ctx, t.ID, q.From, q.Limit)
	out.Data = safetext.Mask(out.Data)
	return out, gone && out.From+int64(len(out.Data)) >= out.Total, err
}

// awaitOutput waits for output after an offset, for the end, or for the limit.
// A terminal that nobody can be asked about is an error: there is no waiting.
func (s *Service) awaitOutput(ctx context.Context, in hub.Incarnation, after int64, limit time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, err := s.Terminals.AwaitOutput(waiting, in, after)
	if waiting.Err() != nil {
		return ctx.Err()
	}
	return err
}
