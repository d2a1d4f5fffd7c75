package cli

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

func (a *app) sessionCommand() *cobra.Command {
	return group("session", "What a worker keeps between the Dispatches of one piece of work",
		"wavehub session get "+exampleDispatch, a.sessionGet(), a.sessionSet())
}

func (a *app) sessionGet() *cobra.Command {
	return &cobra.Command{
		Use: "get SESSION", Short: "Show a session of this hub's workers", Args: exactly("SESSION"),
		Long:    "The session of a Dispatch has its id, unless its wave gave it another one.",
		Example: "wavehub session get " + exampleDispatch + "\nwavehub session get w1--t1",
		RunE: verb[client.SessionOnly]{
			call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.SessionOnly, error) {
				return s.Session(ctx, args[0], opts...)
			},
			human: func(p *printer, out *client.SessionOnly) { printSession(p, out.Session) },
		}.runE(a),
	}
}

func (a *app) sessionSet() *cobra.Command {
	cmd := mark(&cobra.Command{
		Use: "set-backend-ctx SESSION JSON", Short: "Replace what the worker keeps with its session, and nothing else", Args: exactly("SESSION", "JSON"),
		Long:    "Takes any JSON up to 64 KiB, such as '{\"id\":\"abc\"}'; null clears. A new Dispatch of the session starts with it cleared.",
		Example: "wavehub session set-backend-ctx " + exampleDispatch + " \"{}\"",
	}, isMutation)
	cmd.RunE = verb[client.SessionResult]{
		call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.SessionResult, error) {
			if !json.Valid([]byte(args[1])) {
				return nil, usage("backend_ctx", "the second argument is not valid JSON")
			}
			return s.SetBackendCtx(ctx, args[0], json.RawMessage(args[1]), opts...)
		},
		human: func(p *printer, out *client.SessionResult) { printSession(p, out.Session) },
	}.runE(a)
	return cmd
}

func printSession(p *printer, s client.Session) {
	p.line("%s  %s", s.SessionId, string(s.Status))
	p.line("  worker %s, reports to %s", or(s.Worker, "started by the hub"), s.Orchestrator)
	p.line("  dispatch %s, updated %s", s.DispatchId, s.UpdatedAt)
	p.text("  backend_ctx: " + string(s.BackendCtx))
}
