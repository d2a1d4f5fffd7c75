package cli

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

// followWait is how long one request of a follower waits for output.
const followWait = time.Minute

// followScrollback is how far above the screen a follower looks for lines that
// it has not printed.
const followScrollback = 1000

type readFlags struct {
	scrollback  int
	raw, follow bool
	from        int64
	limit       int
}

func (a *app) terminalRead() *cobra.Command {
	var f readFlags
	cmd := mark(&cobra.Command{
		Use: "read TERM", Short: "Read what a terminal shows", Args: exactly("TERM"),
		Long: "Prints the rendered screen, without control sequences and with tokens masked, also after\n" +
			"the end of the process. With --raw it is the output as it was written, from an offset on,\n" +
			"which is never printed to a terminal. With --follow it goes on until the process ends.\n" +
			"It is the process's word, not the hub's.",
		Example: "wavehub terminal read " + exampleTerminal + " --scrollback 200\n" +
			"wavehub terminal read " + exampleTerminal + " --raw --cursor 4096 --json",
	}, isProxied)
	cmd.Flags().IntVar(&f.scrollback, "scrollback", 0, "lines above the screen")
	cmd.Flags().BoolVar(&f.raw, "raw", false, "output as it was written; not to a terminal")
	cmd.Flags().BoolVar(&f.follow, "follow", false, "go on with what is written from now on")
	cmd.Flags().Int64Var(&f.from, "cursor", 0, "offset that raw output is read from: next of the answer before")
	cmd.Flags().IntVar(&f.limit, "limit", 0, "bytes of raw output at once (0: the hub's default)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := a.checkRead(cmd, f); err != nil {
			return err
		}
		switch {
		case f.follow:
			return a.follow(cmd, args, f)
		case f.raw:
			return a.readRaw(f).runE(a)(cmd, args)
		}
		return a.readScreen(f).runE(a)(cmd, args)
	}
	return cmd
}

func (a *app) checkRead(cmd *cobra.Command, f readFlags) error {
	changed := cmd.Flags().Changed
	switch {
	case f.raw && !a.flags.json && isTerminal(a.stdout):
		return misused(cmd, "--raw is not printed to a terminal: what was written could steer it; send it to a file or a pipe, or use --json")
	case f.raw && changed("scrollback"):
		return misused(cmd, "--scrollback is for the screen, not for --raw")
	case !f.raw && (changed("cursor") || changed("limit")):
		return misused(cmd, "--cursor and --limit are for --raw")
	case f.from < 0 || f.limit < 0 || f.scrollback < 0:
		return misused(cmd, "takes no negative numbers")
	}
	return nil
}

func (a *app) readScreen(f readFlags) verb[client.TerminalScreen] {
	return verb[client.TerminalScreen]{
		call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.TerminalScreen, error) {
			return s.Screen(ctx, args[0], f.scrollback, opts...)
		},
		human: func(p *printer, out *client.TerminalScreen) {
			if p.text(strings.Join(shownLines(out), "\n")); out.Truncated {
				a.say("older output is left out")
			}
		},
	}
}

func shownLines(out *client.TerminalScreen) []string {
	return append(slices.Clone(out.Scrollback), out.Lines...)
}

func (a *app) readRaw(f readFlags) verb[client.TerminalOutput] {
	return verb[client.TerminalOutput]{
		call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.TerminalOutput, error) {
			return s.TerminalOutput(ctx, args[0], client.OutputRange{From: f.from, Limit: f.limit}, opts...)
		},
		human: func(p *printer, out *client.TerminalOutput) {
			_, _ = p.out.Write(out.Data) // bufio keeps the error for Flush
			if !out.Ended {
				a.say("more with: --cursor %d", out.Next)
			}
		},
	}
}

// follow prints what is written, each request waiting for more of it, until the
// process has ended and all was read.
func (a *app) follow(cmd *cobra.Command, args []string, f readFlags) error {
	s, err := a.connect(a.silence(cmd))
	if err != nil {
		return err
	}
	defer s.Close()
	if args, err = a.expand(cmd.Context(), s, cmd, args); err != nil {
		return err
	}
	fl := follower{a: a, s: s, id: args[0], f: f}
	show := fl.screen
	if f.raw {
		show = fl.raw
	} else if err := fl.begin(cmd.Context()); err != nil {
		return err
	}
	for {
		ended, err := show(cmd.Context())
		if err != nil || ended {
			return err
		}
	}
}

// follower prints one terminal as it goes on.
type follower struct {
	a     *app
	s     *session
	id    string
	f     readFlags
	shown []string // the lines as they were printed last
}

// next waits for output behind what was read.
func (fl *follower) next(ctx context.Context, limit int) (*client.TerminalOutput, json.RawMessage, error) {
	var body json.RawMessage
	out, err := fl.s.TerminalOutput(ctx, fl.id, client.OutputRange{From: fl.f.from, Limit: limit, Wait: followWait}, client.WithBody(&body))
	return out, body, err
}

func (fl *follower) raw(ctx context.Context) (ended bool, err error) {
	out, body, err := fl.next(ctx, fl.f.limit)
	if err != nil {
		return false, err
	}
	fl.f.from = out.Next
	if len(out.Data) == 0 && !out.Ended {
		return false, nil
	}
	return out.Ended, fl.a.emit(body, func(p *printer) { _, _ = p.out.Write(out.Data) })
}

// begin prints the screen as it is.
func (fl *follower) begin(ctx context.Context) error {
	shown, err := fl.s.Terminal(ctx, fl.id)
	if err != nil {
		return err
	}
	fl.f.from = shown.Observation.OutputBytes // before the screen: what is written meanwhile is looked at again
	return fl.render(ctx, func(out *client.TerminalScreen) []string {
		above := len(out.Scrollback)
		return append(slices.Clone(out.Scrollback[above-min(above, fl.f.scrollback):]), out.Lines...)
	})
}

// screen waits for output, and prints the lines that are new with it.
func (fl *follower) screen(ctx context.Context) (ended bool, err error) {
	out, _, err := fl.next(ctx, 1)
	if err != nil || out.Total <= fl.f.from {
		return err == nil && out.Ended, err
	}
	fl.f.from = out.Total
	return false, fl.render(ctx, func(screen *client.TerminalScreen) []string {
		return unseen(fl.shown, shownLines(screen), screen.Size.Rows)
	})
}

// render prints what choose takes of the screen as it is now.
func (fl *follower) render(ctx context.Context, choose func(*client.TerminalScreen) []string) error {
	var body json.RawMessage
	out, err := fl.s.Screen(ctx, fl.id, followScrollback, client.WithBody(&body))
	if err != nil {
		return err
	}
	lines := choose(out)
	if fl.shown = shownLines(out); len(lines) == 0 {
		return nil
	}
	return fl.a.emit(body, func(p *printer) { p.text(strings.Join(lines, "\n")) })
}

// unseen are the lines of now from the first on that is not as it was before.
// Both are the lines of a screen of so many rows with what has scrolled away
// above it, of which now may have lost some at its top.
func unseen(before, now []string, rows int) []string {
	for lost := range before {
		same := 0
		for same < len(now) && lost+same < len(before) && now[same] == before[lost+same] {
			same++
		}
		if same >= len(before)-lost-rows { // only the screen itself is written to
			return now[same:]
		}
	}
	return now
}
