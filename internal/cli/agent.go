package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

func (a *app) agentCommand() *cobra.Command {
	return group("agent", "See which agents this hub can start", "wavehub agent list", a.agentList(), a.agentTest())
}

func (a *app) agentList() *cobra.Command {
	cmd := mark(&cobra.Command{
		Use: "list", Short: "List the configured agents, and which of them can be used", Args: exactly(),
		Long:    "An agent is a launcher: how its program is started, given its task, watched and read.\nBuilt-in ones need no configuration; agents: in the configuration file adds and changes them.",
		Example: "wavehub agent list",
	}, isProxied)
	cmd.RunE = verb[client.AgentPage]{
		call: func(ctx context.Context, s *session, _ []string, opts ...client.Option) (*client.AgentPage, error) {
			return s.Agents(ctx, opts...)
		},
		human: func(p *printer, out *client.AgentPage) {
			list(p, []string{"AGENT", "MODES", "ENDS BY", "VERSION", "PROGRAM", "STATE"}, out.Agents, out.NextCursor, func(g client.Agent) []string {
				return []string{g.Name, strings.Join(g.Modes, ","), g.Completion, or(g.Version, "-"), or(g.Program, "-"), agentState(g)}
			})
		},
	}.runE(a)
	return cmd
}

func agentState(g client.Agent) string {
	switch {
	case g.Missing != nil:
		return *g.Missing
	case g.ClosedUntil != nil:
		return "closed until " + *g.ClosedUntil + " (" + or(g.ClosedBecause, "its provider refused") + ")"
	}
	return "found"
}

func (a *app) agentTest() *cobra.Command {
	cmd := mark(&cobra.Command{
		Use: "test NAME", Short: "Run an agent's version command and allow its starts again", Args: exactly("NAME"),
		Long:    "Starts of an agent are refused for a while after its provider has refused to work.\nA test that finds the program ends that.",
		Example: "wavehub agent test sh",
	}, isMutation)
	cmd.RunE = verb[client.AgentTested]{
		call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.AgentTested, error) {
			return s.TestAgent(ctx, args[0], opts...)
		},
		human: func(p *printer, out *client.AgentTested) {
			p.line("%s  %s  %s", out.Agent.Name, or(out.Agent.Version, "no version"), or(out.Agent.Program, ""))
		},
		label: "testing",
	}.runE(a)
	return cmd
}
