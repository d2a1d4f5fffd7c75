package client

import (
	"context"
	"net/http"
	"time"

	"github.com/wavehub/wavehub/openapi/api"
)

// The waits of a hub whose caller is silent.
const (
	createWait       = 30 * time.Second
	sendWait         = 10 * time.Second
	defaultCloseWait = 30 * time.Second
)

// CreateTerminal runs an agent, a command line or the user's shell in a terminal
// of its own. A receipt whose State is failed or outcome_unknown is a result,
// not an error.
func (c *Client) CreateTerminal(ctx context.Context, in api.TerminalCreate, opts ...Option) (*api.TerminalReceipt, error) {
	return mutate[api.TerminalReceipt](ctx, c, createWait, opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.CreateTerminal(ctx, &api.CreateTerminalParams{IdempotencyKey: key}, in)
	})
}

// TerminalFilter selects terminals; empty fields select all.
type TerminalFilter struct {
	Worktree string // id or name
	Live     bool   // only those whose end is not on record
}

// Terminals lists terminals, newest first.
func (c *Client) Terminals(ctx context.Context, filter TerminalFilter, page Page, opts ...Option) (*api.TerminalPage, error) {
	return read[api.TerminalPage](ctx, c, 0, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.ListTerminals(ctx, &api.ListTerminalsParams{
			Worktree: filter.Worktree, Live: filter.Live, Cursor: page.Cursor, Limit: page.Limit,
		})
	})
}

// Terminal returns one terminal and what is known of its process.
func (c *Client) Terminal(ctx context.Context, terminal string, opts ...Option) (*api.TerminalDetail, error) {
	return read[api.TerminalDetail](ctx, c, 0, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.GetTerminal(ctx, terminal)
	})
}

// Screen returns what a person would see, with that many lines above it. It is
// worker text: clean it before it is shown.
func (c *Client) Screen(ctx context.Context, terminal string, scrollback int, opts ...Option) (*api.TerminalScreen, error) {
	return read[api.TerminalScreen](ctx, c, 0, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.ReadScreen(ctx, terminal, &api.ReadScreenParams{Scrollback: scrollback})
	})
}

// OutputRange asks for output as it was written: From counts all bytes ever
// written, Limit bytes (0: the hub's default), Wait how long to wait for more, at
// most MaxWait.
type OutputRange struct {
	From  int64
	Limit int
	Wait  time.Duration
}

// TerminalOutput reads a stretch of output, or waits until there is some.
func (c *Client) TerminalOutput(ctx context.Context, terminal string, in OutputRange, opts ...Option) (*api.TerminalOutput, error) {
	return read[api.TerminalOutput](ctx, c, in.Wait, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.ReadTerminalOutput(ctx, terminal, &api.ReadTerminalOutputParams{
			From: in.From, Limit: in.Limit, WaitMs: milliseconds(in.Wait),
		})
	})
}

// WaitTerminal waits for exit, output, idle, or with text for a line of the
// screen that matches the pattern, at most MaxWait.
func (c *Client) WaitTerminal(ctx context.Context, terminal, what, text string, wait time.Duration, opts ...Option) (*api.TerminalWait, error) {
	return read[api.TerminalWait](ctx, c, wait, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.WaitTerminal(ctx, terminal, &api.WaitTerminalParams{
			For: api.WaitTerminalParamsFor(what), Text: text, WaitMs: milliseconds(wait),
		})
	})
}

// SendTerminal writes as a keyboard would, at most once. State failed or
// outcome_unknown is a result, not an error.
func (c *Client) SendTerminal(ctx context.Context, terminal string, in api.TerminalSend, opts ...Option) (*api.TerminalSent, error) {
	return mutate[api.TerminalSent](ctx, c, sendWait, opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.SendTerminal(ctx, terminal, &api.SendTerminalParams{IdempotencyKey: key}, in)
	})
}

// CloseTerminal ends exactly the terminal's process tree. State outcome_unknown
// is a result, not an error.
func (c *Client) CloseTerminal(ctx context.Context, terminal string, in api.TerminalClose, opts ...Option) (*api.TerminalClosed, error) {
	return mutate[api.TerminalClosed](ctx, c, waitOf(in.TimeoutMs, defaultCloseWait), opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.CloseTerminal(ctx, terminal, &api.CloseTerminalParams{IdempotencyKey: key}, in)
	})
}
