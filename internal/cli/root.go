package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/id"
)

func (a *app) root() *cobra.Command {
	root := group("wavehub", "Run coding agents and scripts as supervised workers on this and other hosts",
		"wavehub serve\nwavehub run create --objective \"Audit both platforms\"")
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(badFlag)
	root.PersistentPreRunE = a.checkGlobals
	a.globalFlags(root.PersistentFlags())
	root.AddCommand(
		a.serveCommand(), a.restoreCommand(), a.superviseCommand(), a.hookCommand(), a.versionCommand(), a.statusCommand(), a.configCommand(),
		a.runCommand(), a.taskCommand(), a.workerCommand(), a.agentCommand(), a.dispatchCommand(),
		a.workerIdentityCommand(), a.attachCommand(), a.sessionCommand(),
		a.sendCommand(), a.doneCommand(), a.progressCommand(), a.askCommand(), a.replyCommand(), a.checkCommand(),
		a.messageCommand(), a.questionCommand(), a.requestCommand(),
		a.waveCommand(), a.watchCommand(), a.eventsCommand(),
		a.peerCommand(), a.repoCommand(), a.worktreeCommand(), a.terminalCommand(),
	)
	completeBuiltin(root)
	return root
}

func (a *app) globalFlags(f *pflag.FlagSet) {
	f.BoolVar(&a.flags.json, "json", false, "print the hub's answer as one JSON document; errors as a problem document on stderr")
	f.StringVar(&a.flags.hub, "hub", "", "the paired hub to ask instead of this one, as far as it grants that")
	f.StringVar(&a.flags.run, "run", "", "the Run to act on instead of the bound one")
	f.StringVar(&a.flags.retryRequest, "retry-request", "", "repeat a mutation under its request id: at most one effect")
	f.DurationVar(&a.flags.timeout, "timeout", 0, "how long this verb waits for its effect, such as 60s")
	f.DurationVar(&a.flags.connectTimeout, "connect-timeout", 0, "how long connecting may take (default 5s)")
	f.BoolVar(&a.flags.quiet, "quiet", false, "no progress and no notices on stderr")
	f.BoolVar(&a.flags.noColor, "no-color", false, "no colours")
}

func (a *app) checkGlobals(cmd *cobra.Command, _ []string) error {
	if err := emptyFlag(cmd); err != nil {
		return err
	}
	if err := a.checkHub(cmd); err != nil {
		return err
	}
	a.flags.timed = cmd.Root().PersistentFlags().Changed("timeout") // not the time of a wave or task, which hides it
	switch {
	case a.flags.timeout < 0 || a.flags.connectTimeout < 0:
		return misused(cmd, "takes no negative time")
	case a.flags.timeout > client.MaxWait && marked(cmd, isWait) && !marked(cmd, isLongWait):
		return misused(cmd, "waits at most %s", client.MaxWait)
	case a.flags.retryRequest == "":
		return nil
	case !marked(cmd, isMutation):
		return misused(cmd, "changes nothing, so --retry-request has no meaning")
	case !id.Valid(requestPrefix, a.flags.retryRequest):
		return misused(cmd, "--retry-request: %q is not a request id (req_…)", a.flags.retryRequest)
	}
	return nil
}

// mayBeEmpty are the flags whose empty value says something: texts, and the
// cursor of a first page.
var mayBeEmpty = []string{"subject", "body", "display-name", "comment", "cursor"}

// emptyFlag refuses a flag with an empty value. It comes from a variable that
// was not set, and would silently take away the protection, or the filter, that
// was asked for.
func emptyFlag(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.Type() == "string" && f.Value.String() == "" && !slices.Contains(mayBeEmpty, f.Name) {
			err = misused(cmd, "--%s is empty: give it a value, or leave it out", f.Name)
		}
	})
	return err
}

// group is a command that only has verbs below it.
func group(use, short, example string, verbs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Example: example, Args: cobra.ArbitraryArgs, RunE: needsVerb, SuggestionsMinimumDistance: 2}
	cmd.AddCommand(verbs...)
	return cmd
}

func needsVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return misused(cmd, "needs one of: %s", strings.Join(verbNames(cmd), ", "))
	}
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return misused(cmd, "has no verb %q; did you mean %s?", args[0], strings.Join(near, " or "))
	}
	return misused(cmd, "has no verb %q; it has: %s", args[0], strings.Join(verbNames(cmd), ", "))
}

func verbNames(cmd *cobra.Command) []string {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

// completeBuiltin gives cobra's own commands what the others have.
func completeBuiltin(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Example = "wavehub help worker start"
		case "completion":
			cmd.Example = "wavehub completion bash"
			for _, shell := range cmd.Commands() {
				shell.Example = "wavehub completion " + shell.Name()
			}
		}
	}
}
