package cli

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

const exampleTerminal = "term_01j8zq4h5n6p7r8s9t0v1w2x3y"

func (a *app) terminalCommand() *cobra.Command {
	return group("terminal", "Run, read and end terminals: supervised processes with a screen and a keyboard",
		"wavehub terminal list",
		a.terminalCreate(), a.terminalList(), a.terminalShow(), a.terminalRead(), a.terminalSend(), a.terminalWait(), a.terminalClose())
}

func (a *app) terminalCreate() *cobra.Command {
	var in client.TerminalCreate
	cmd := mark(&cobra.Command{
		Use: "create", Short: "Run an agent, a command or your shell in a terminal of its own", Args: exactly(),
		Long: "Runs a process in a new terminal, without a Dispatch: an agent without a prompt, a command\n" +
			"line, or else your shell. It works in an existing worktree or a folder, by default in the\n" +
			"current one. Programs in it are yours until a Dispatch is attached.\n\n" +
			"Exit code 0 ready, 1 failed, 10 when it is unknown whether the process runs.",
		Example: "wavehub terminal create --command \"make watch\" --name watch\n" +
			"wavehub terminal create --worktree id:wt_01j8zq4h5n6p7r8s9t0v1w2x3y --agent claude",
	}, isMutation, isProxied)
	flags := cmd.Flags()
	flags.StringVar(&in.Worktree, "worktree", "", "existing worktree: current, id:…, path:… or a name")
	flags.StringVar(&in.Dir, "dir", "", "folder to work in")
	flags.StringVar(&in.Agent, "agent", "", "launcher to start without a prompt")
	flags.StringVar(&in.Command, "command", "", "command line for the platform's shell")
	flags.StringVar(&in.Name, "name", "", "name to show to people")
	flags.IntVar(&in.Rows, "rows", 0, "height in characters (0: the hub's default)")
	flags.IntVar(&in.Cols, "cols", 0, "width in characters (0: the hub's default)")
	cmd.RunE = verb[client.TerminalReceipt]{
		call: func(ctx context.Context, s *session, _ []string, opts ...client.Option) (*client.TerminalReceipt, error) {
			full, err := s.placedTerminal(in)
			if err != nil {
				return nil, err
			}
			return s.CreateTerminal(ctx, full, opts...)
		},
		human: printTerminalReceipt,
		exit: func(r *client.TerminalReceipt) error {
			switch r.State {
			case "failed":
				return exitCode(1)
			case "outcome_unknown":
				return unknownOutcome(r.Mutation.RequestId, "it is not known whether %s runs: %s", r.Terminal.TerminalId, or(r.LastError, "no proof either way"))
			}
			return nil
		},
		label: "creating",
	}.runE(a)
	return cmd
}

// placedTerminal completes what depends on the working directory.
func (s *session) placedTerminal(in client.TerminalCreate) (client.TerminalCreate, error) {
	if in.Dir != "" {
		var err error
		if in.Dir, err = s.folder("dir", in.Dir); err != nil {
			return in, err
		}
	}
	if in.Worktree == "current" || in.Worktree == "" && in.Dir == "" {
		if err := s.nowhere("dir"); err != nil {
			return in, err
		}
		dir, err := os.Getwd()
		if err != nil {
			return in, fmt.Errorf("finding the working directory: %w", err)
		}
		in.CurrentDir = dir
	}
	return in, nil
}

func printTerminalReceipt(p *printer, r *client.TerminalReceipt) {
	p.line("%s  %s  in %s", r.Terminal.TerminalId, string(r.State), r.Terminal.Dir)
	if r.LastError != nil {
		p.line("  %s: %s", or(r.FailedStage, r.Stage), *r.LastError)
	}
	printLeftovers(p, nil, r.NextCommands)
}

func (a *app) terminalList() *cobra.Command {
	var page client.Page
	var filter client.TerminalFilter
	cmd := mark(&cobra.Command{
		Use: "list", Short: "List terminals, newest first, those of workers too", Args: exactly(),
		Example: "wavehub terminal list\nwavehub terminal list --live",
	}, isProxied)
	pageFlags(cmd, &page)
	cmd.Flags().BoolVar(&filter.Live, "live", false, "only those whose end is not on record")
	cmd.Flags().StringVar(&filter.Worktree, "worktree", "", "only in this worktree: id or name")
	cmd.RunE = verb[client.TerminalPage]{
		call: func(ctx context.Context, s *session, _ []string, opts ...client.Option) (*client.TerminalPage, error) {
			return s.Terminals(ctx, filter, page, opts...)
		},
		human: func(p *printer, out *client.TerminalPage) {
			head := []string{"TERMINAL", "PROCESS", "ROLE", "AGENT", "DISPATCH", "NAME", "DIR"}
			list(p, head, out.Terminals, out.NextCursor, func(t client.Terminal) []string {
				return []string{t.TerminalId, string(t.Process), string(t.Role), or(t.Agent, "-"), owner(t), or(t.Name, "-"), t.Dir}
			})
		},
	}.runE(a)
	return cmd
}

// owner is the live Dispatch that has the terminal.
func owner(t client.Terminal) string {
	if !t.Busy {
		return "-"
	}
	return or(t.DispatchId, "-")
}

func (a *app) terminalShow() *cobra.Command {
	return mark(&cobra.Command{
		Use: "show TERM", Short: "Show one terminal and what can be said of its process now", Args: exactly("TERM"),
		Example: "wavehub terminal show " + exampleTerminal,
		RunE: verb[client.TerminalDetail]{
			call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.TerminalDetail, error) {
				return s.Terminal(ctx, args[0], opts...)
			},
			human: printTerminal,
		}.runE(a),
	}, isProxied)
}

func printTerminal(p *printer, out *client.TerminalDetail) {
	t, o := out.Terminal, out.Observation
	p.line("%s  %s  %s", t.TerminalId, string(o.Process), or(t.Name, ""))
	p.line("  %s, agent %s, in %s", string(t.Role), or(t.Agent, "none"), t.Dir)
	code := "none"
	if o.ExitCode != nil {
		code = strconv.Itoa(*o.ExitCode)
	}
	p.line("  exit code %s, works for %s", code, owner(t))
	p.line("  size %s, title %s, activity %s", sizeText(t.Size), or(o.Title, "none"), or(o.Activity, "unknown"))
	p.line("  %d bytes of output, the last %s", o.OutputBytes, or(o.LastOutputAt, "never"))
}

func sizeText(s *client.TerminalSize) string {
	if s == nil {
		return "none (pipes)"
	}
	return fmt.Sprintf("%dx%d", s.Rows, s.Cols)
}

func (a *app) terminalClose() *cobra.Command {
	cmd := mark(&cobra.Command{
		Use: "close TERM", Short: "End exactly the terminal's process tree", Args: exactly("TERM"),
		Long: "Exit code 0 when the end is proven or was on record, 10 when it cannot be proven; the same\n" +
			"command looks again. A terminal that works for a live Dispatch is refused: stop that.",
		Example: "wavehub terminal close " + exampleTerminal,
	}, isMutation, isWait)
	cmd.RunE = verb[client.TerminalClosed]{
		call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.TerminalClosed, error) {
			return s.CloseTerminal(ctx, args[0], client.TerminalClose{TimeoutMs: a.waitMS()}, opts...)
		},
		human: printClosed,
		exit: func(r *client.TerminalClosed) error {
			if r.State != "outcome_unknown" {
				return nil
			}
			return unknownOutcome(r.Mutation.RequestId, "the end of %s is not proven: %s", r.TerminalId, or(r.LastError, "no proof either way"))
		},
		label: "closing",
	}.runE(a)
	return cmd
}

func printClosed(p *printer, r *client.TerminalClosed) {
	p.line("%s  %s", r.TerminalId, string(r.State))
	if r.AlreadyClosed {
		p.line("  it had ended before; nothing was changed")
	}
	if r.LastError != nil {
		p.line("  %s", *r.LastError)
	}
	printLeftovers(p, nil, r.NextCommands)
}
