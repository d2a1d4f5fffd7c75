package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

type sendTerminalFlags struct {
	in   client.TerminalSend
	file string
}

func (a *app) terminalSend() *cobra.Command {
	var f sendTerminalFlags
	cmd := mark(&cobra.Command{
		Use: "send TERM", Short: "Write to a terminal as a keyboard would, at most once", Args: exactly("TERM"),
		Long: "Writes the text, then the keys, then Enter. Keys are ctrl-a to ctrl-z, enter, esc, tab,\n" +
			"shift-tab, space, backspace, delete, up, down, left, right, home, end, page-up, page-down.\n" +
			"With --paste the text arrives as one paste where the program can tell pastes from typing,\n" +
			"and Enter waits a moment.\n\n" +
			"Exit code 0 sent, 1 when nothing was written, 10 when it is unknown: it is never sent again.",
		Example: "wavehub terminal send " + exampleTerminal + " --text \"git status\" --enter\n" +
			"wavehub terminal send " + exampleTerminal + " --key ctrl-c",
	}, isMutation, isProxied)
	flags := cmd.Flags()
	flags.StringVar(&f.in.Text, "text", "", "text to type")
	flags.StringVar(&f.file, "file", "", "file to type the text of (- for stdin)")
	flags.BoolVar(&f.in.Paste, "paste", false, "paste the text instead of typing it")
	flags.StringSliceVar(&f.in.Keys, "key", nil, "keys to press after the text, such as ctrl-c,esc,up")
	flags.BoolVar(&f.in.Enter, "enter", false, "press Enter at the end")
	cmd.RunE = verb[client.TerminalSent]{
		call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.TerminalSent, error) {
			in, err := a.keystrokes(cmd, f)
			if err != nil {
				return nil, err
			}
			return s.SendTerminal(ctx, args[0], in, opts...)
		},
		human: func(p *printer, r *client.TerminalSent) {
			p.line("%s  %s  %d bytes", r.TerminalId, string(r.State), r.Bytes)
			if r.LastError != nil {
				p.line("  %s", *r.LastError)
			}
		},
		exit: sentExit,
	}.runE(a)
	return cmd
}

// keystrokes is what the flags ask to send.
func (a *app) keystrokes(cmd *cobra.Command, f sendTerminalFlags) (client.TerminalSend, error) {
	in := f.in
	if f.file != "" {
		if cmd.Flags().Changed("text") {
			return in, misused(cmd, "takes --text or --file, not both")
		}
		var err error
		if in.Text, err = a.readText("file", f.file); err != nil {
			return in, err
		}
	}
	if in.Text == "" && len(in.Keys) == 0 && !in.Enter {
		return in, misused(cmd, "needs something to send: --text, --file, --key or --enter")
	}
	return in, nil
}

func sentExit(r *client.TerminalSent) error {
	switch r.State {
	case "failed":
		return exitCode(1)
	case "outcome_unknown":
		e := client.Errorf(client.CodeOutcomeUnknown, "it is not known whether the input has arrived at %s", r.TerminalId)
		e.Hint = "read the terminal before you send anything again; the same request is never sent twice"
		e.RequestID = r.Mutation.RequestId
		return e
	}
	return nil
}

// defaultTerminalWait is how long terminal wait waits where nothing is said.
const defaultTerminalWait = time.Minute

func (a *app) terminalWait() *cobra.Command {
	var what string
	cmd := mark(&cobra.Command{
		Use: "wait TERM --for exit|output|idle|text:REGEX", Short: "Wait for a terminal", Args: exactly("TERM"),
		Long: "Waits for the end of the process, for output, for an agent that says it is idle (or output\n" +
			"that has come to rest, where it says nothing), or for a line of the screen that matches an\n" +
			"RE2 expression.\n\n" +
			"Exit code 0 when it is so, 7 when the time is over, 1 when the process ended first.",
		Example: "wavehub terminal wait " + exampleTerminal + " --for exit --timeout 5m\n" +
			"wavehub terminal wait " + exampleTerminal + " --for \"text:tests? passed\"",
	}, isWait, isProxied)
	cmd.Flags().StringVar(&what, "for", "", "exit, output, idle or text:REGEX")
	cmd.RunE = verb[client.TerminalWait]{
		call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.TerminalWait, error) {
			kind, pattern, isText := strings.Cut(what, ":")
			if what == "" || isText != (kind == "text") {
				return nil, misused(cmd, "needs --for exit, output, idle or text:REGEX")
			}
			return s.WaitTerminal(ctx, args[0], kind, pattern, a.wait(defaultTerminalWait), opts...)
		},
		human: printWaited,
		exit: func(out *client.TerminalWait) error {
			switch {
			case out.Met:
				return nil
			case out.TimedOut:
				return exitCode(exitTimedOut)
			}
			return exitCode(1)
		},
		label: "waiting",
	}.runE(a)
	return cmd
}

func printWaited(p *printer, out *client.TerminalWait) {
	switch {
	case out.Met && out.Line != nil:
		p.line("%s", *out.Line)
	case out.Met:
		p.line("%s  %s", out.TerminalId, string(out.Process))
	case out.TimedOut:
		p.line("not within the time")
	default:
		p.line("the process has ended first")
	}
}
