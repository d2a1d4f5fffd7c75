package server

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/work"
	"github.com/wavehub/wavehub/openapi/api"
)

// CreateTerminal runs a process in a terminal of its own.
func (s apiHandlers) CreateTerminal(w http.ResponseWriter, r *http.Request, params api.CreateTerminalParams) {
	mutate(s.Server, w, r, verb[api.TerminalCreate, hub.TerminalReceipt]{
		key: params.IdempotencyKey,
		do: func(ctx context.Context, q receipt.Request, b api.TerminalCreate) (hub.TerminalReceipt, error) {
			return s.cfg.Work.CreateTerminal(ctx, q, work.TerminalCreate{
				Worktree: b.Worktree, CurrentDir: b.CurrentDir, Dir: b.Dir, Agent: b.Agent, Command: b.Command, Name: b.Name,
				Size: hub.TerminalSize{Rows: b.Rows, Cols: b.Cols},
			})
		},
		show: func(o hub.TerminalReceipt) (int, any) {
			return known(http.StatusCreated, o.State), terminalReceipt(o)
		},
		waits: func(api.TerminalCreate) bool { return true },
	})
}

// known is the status of an answer, 202 where the outcome is not known.
func known(status int, state string) int {
	if state == hub.TerminalUnknown {
		return http.StatusAccepted
	}
	return status
}

// ListTerminals shows terminals, newest first.
func (s apiHandlers) ListTerminals(w http.ResponseWriter, r *http.Request, params api.ListTerminalsParams) {
	l := list{"terminals", strconv.FormatBool(params.Live), params.Worktree}
	before, err := s.position(l, params.Cursor)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	f := store.TerminalFilter{Live: params.Live}
	if params.Worktree != "" {
		if f.Worktree, err = s.cfg.Work.WorktreeOf(r.Context(), callOf(r).principal, params.Worktree); err != nil {
			s.fail(w, r, err)
			return
		}
	}
	ts, next, err := s.cfg.Work.ListTerminals(r.Context(), callOf(r).principal, f, store.Page{Before: before, Limit: pageSize(params.Limit)})
	s.reply(w, r, http.StatusOK, api.TerminalPage{Terminals: each(ts, terminalOf), NextCursor: s.cursor(l, next)}, err)
}

// GetTerminal shows one terminal and what is known of its process.
func (s apiHandlers) GetTerminal(w http.ResponseWriter, r *http.Request, id api.TerminalParam) {
	shown, err := s.cfg.Work.ShowTerminal(r.Context(), callOf(r).principal, hub.TerminalID(id))
	s.reply(w, r, http.StatusOK, terminalDetail(shown), err)
}

// ReadScreen renders the terminal.
func (s apiHandlers) ReadScreen(w http.ResponseWriter, r *http.Request, id api.TerminalParam, params api.ReadScreenParams) {
	var screen hub.Screen
	var live hub.Liveness
	err := s.held(r.Context(), r, hub.TerminalID(id), func(ctx context.Context) (err error) {
		screen, live, err = s.cfg.Work.ReadScreen(ctx, hub.TerminalID(id), params.Scrollback)
		return err
	})
	s.reply(w, r, http.StatusOK, screenOf(id, screen, live), err)
}

// ReadTerminalOutput reads output as it was written, or waits for more of it.
func (s apiHandlers) ReadTerminalOutput(w http.ResponseWriter, r *http.Request, id api.TerminalParam, params api.ReadTerminalOutputParams) {
	s.waitFor(w, r, params.WaitMs, func(ctx context.Context, wait time.Duration) (out any, err error) {
		err = s.held(ctx, r, hub.TerminalID(id), func(ctx context.Context) error {
			stretch, ended, err := s.cfg.Work.ReadRange(ctx, hub.TerminalID(id), work.RangeQuery{From: params.From, Limit: params.Limit, Wait: wait})
			out = rangeOf(id, stretch, ended)
			return err
		})
		return out, err
	})
}

// WaitTerminal waits for something of the terminal.
func (s apiHandlers) WaitTerminal(w http.ResponseWriter, r *http.Request, id api.TerminalParam, params api.WaitTerminalParams) {
	s.waitFor(w, r, params.WaitMs, func(ctx context.Context, wait time.Duration) (out any, err error) {
		err = s.held(ctx, r, hub.TerminalID(id), func(ctx context.Context) error {
			waited, err := s.cfg.Work.WaitTerminal(ctx, hub.TerminalID(id), work.WaitQuery{For: string(params.For), Text: params.Text, Wait: wait})
			out = waitedOf(id, waited)
			return err
		})
		return out, err
	})
}

// SendTerminal writes to the terminal, at most once.
func (s apiHandlers) SendTerminal(w http.ResponseWriter, r *http.Request, id api.TerminalParam, params api.SendTerminalParams) {
	mutate(s.Server, w, r, verb[api.TerminalSend, hub.TerminalInput]{
		key: params.IdempotencyKey, path: id,
		do: func(ctx context.Context, q receipt.Request, b api.TerminalSend) (hub.TerminalInput, error) {
			return s.cfg.Work.SendTerminal(ctx, q, work.SendInput{
				Terminal: hub.TerminalID(id), Text: b.Text, Paste: b.Paste, Keys: b.Keys, Enter: b.Enter,
			})
		},
		show:  func(o hub.TerminalInput) (int, any) { return known(http.StatusOK, o.State), terminalSent(o) },
		waits: func(api.TerminalSend) bool { return true },
	})
}

// CloseTerminal ends the terminal's process tree.
func (s apiHandlers) CloseTerminal(w http.ResponseWriter, r *http.Request, id api.TerminalParam, params api.CloseTerminalParams) {
	mutate(s.Server, w, r, verb[api.TerminalClose, hub.TerminalEnd]{
		key: params.IdempotencyKey, path: id,
		do: func(ctx context.Context, q receipt.Request, b api.TerminalClose) (hub.TerminalEnd, error) {
			return s.cfg.Work.CloseTerminal(ctx, q, work.CloseInput{Terminal: hub.TerminalID(id), TimeoutMS: b.TimeoutMs, GraceMS: b.GraceMs})
		},
		show:  func(o hub.TerminalEnd) (int, any) { return known(http.StatusOK, o.State), terminalClosed(o) },
		waits: func(api.TerminalClose) bool { return true },
	})
}
