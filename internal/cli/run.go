package cli

import (
	"context"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

func (a *app) runCommand() *cobra.Command {
	return group("run", "Create and use Runs: one goal, its Tasks and its inbox",
		"wavehub run create --objective \"Audit both platforms\"",
		a.runCreate(), a.runUse(), a.runCurrent(), a.runList(), a.runShow())
}

type runCreateFlags struct {
	parent                  string
	objective, consumerFile string
	bind, noBind            bool
}

func (a *app) runCreate() *cobra.Command {
	var f runCreateFlags
	cmd := mark(&cobra.Command{
		Use:   "create --objective TEXT",
		Short: "Create a Run and bind this terminal to it",
		Long: "Creates a Run with its inbox. The terminal that calls becomes its consumer, unless it is\n" +
			"bound to another Run: then nothing is created, except with --bind (take the terminal\nover) or --no-bind (no consumer yet).\n\n" +
			"Inside a worker that was started with --may-coordinate it creates the one Run that the\n" +
			"worker coordinates, bound to the worker's own terminal.\n\n" +
			"Scripts have no terminal: --consumer-file writes the token that WAVEHUB_CONSUMER_FILE names later;\n" +
			"the file that the variable names is written without the flag while it does not exist.",
		Example: "wavehub run create --objective \"Audit both platforms\"\nwavehub run create --objective \"Nightly\" --no-bind",
		Args:    exactly(),
	}, isMutation)
	cmd.PreRun = func(*cobra.Command, []string) { a.makesConsumer = true }
	cmd.Flags().StringVar(&f.objective, "objective", "", "what the Run is for")
	cmd.Flags().StringVar(&f.parent, "parent", "", "the Run that this one serves (at most 3 deep)")
	cmd.Flags().BoolVar(&f.bind, "bind", false, "bind this terminal even if it is bound to another Run")
	cmd.Flags().BoolVar(&f.noBind, "no-bind", false, "create the Run without a consumer")
	cmd.Flags().StringVar(&f.consumerFile, "consumer-file", "", "write the consumer token to this file (mode 0600)")
	var kept bool
	cmd.RunE = verb[client.RunBound]{
		call:  a.createRun(cmd, &f, &kept),
		human: func(p *printer, out *client.RunBound) { printBound(p, out, kept) },
	}.runE(a)
	return cmd
}

func (a *app) createRun(cmd *cobra.Command, f *runCreateFlags, kept *bool) func(context.Context, *session, []string, ...client.Option) (*client.RunBound, error) {
	return func(ctx context.Context, s *session, _ []string, opts ...client.Option) (*client.RunBound, error) {
		in := client.RunCreate{Objective: f.objective, ParentRunId: f.parent}
		switch {
		case f.objective == "":
			return nil, misused(cmd, "needs --objective")
		case f.bind && f.noBind:
			return nil, misused(cmd, "takes --bind or --no-bind, not both")
		case f.noBind && f.consumerFile != "":
			return nil, misused(cmd, "--no-bind makes no consumer to write to --consumer-file")
		case s.dispatch != nil && f.consumerFile != "":
			return nil, misused(cmd, "takes no --consumer-file inside a Dispatch: the Run is bound to its terminal")
		case s.contextErr != nil && f.consumerFile == "" && !f.noBind:
			return nil, s.contextErr
		case f.bind:
			in.Bind = client.RunCreateBind("rebind")
		case f.noBind:
			in.Bind = client.RunCreateBind("none")
		}
		if f.consumerFile == "" && !f.noBind {
			f.consumerFile = s.unmade
		}
		*kept = s.context || s.dispatch != nil || f.consumerFile != ""
		file, err := reserveConsumer(f.consumerFile)
		if err != nil {
			return nil, err
		}
		out, err := s.CreateRun(ctx, in, opts...)
		return out, file.settle(a, out, err)
	}
}

func (a *app) runUse() *cobra.Command {
	var file string
	var kept, latest bool
	cmd := mark(&cobra.Command{
		Use:     "use (RUN | --latest)",
		Short:   "Become the Run's consumer, and fence the former one",
		Long:    "Binds this terminal to the Run, or writes the new token to --consumer-file, else to the file\nthat WAVEHUB_CONSUMER_FILE names. The former consumer is refused from then on.",
		Example: "wavehub run use run_01j8zq4h5n6p7r8s9t0v1w2x3y\nwavehub run use run_01j8zq4h5n6p7r8s9t0v1w2x3y --consumer-file consumer\nwavehub run use --latest",
		Args: func(cmd *cobra.Command, args []string) error {
			if latest {
				return exactly()(cmd, args)
			}
			return exactly("RUN")(cmd, args)
		},
	}, isMutation)
	cmd.PreRun = func(*cobra.Command, []string) { a.makesConsumer = true }
	cmd.Flags().StringVar(&file, "consumer-file", "", "write the consumer token to this file (mode 0600)")
	cmd.Flags().BoolVar(&latest, "latest", false, "the newest Run of this hub")
	cmd.RunE = verb[client.RunBound]{
		call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.RunBound, error) {
			if file == "" {
				file = os.Getenv(envConsumerFile) // so that what is printed works when pasted
			}
			if s.contextErr != nil && file == "" {
				return nil, s.contextErr
			}
			kept = s.context || file != ""
			run, err := a.named(ctx, s, args)
			if err != nil {
				return nil, err
			}
			place, err := reserveConsumer(file)
			if err != nil {
				return nil, err
			}
			out, err := s.BindRun(ctx, run, opts...)
			return out, place.settle(a, out, err)
		},
		human: func(p *printer, out *client.RunBound) { printBound(p, out, kept) },
	}.runE(a)
	return cmd
}

// named is the Run of the arguments, without any the newest one. It then also
// takes the place of --latest in what is printed to be repeated: a newer one may
// exist by then.
func (a *app) named(ctx context.Context, s *session, args []string) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	runs, err := s.Runs(ctx, client.Page{Limit: 1})
	if err != nil {
		return "", err
	}
	if len(runs.Runs) == 0 {
		e := client.Errorf(client.CodeRunNotFound, "this hub has no Run yet")
		e.Status, e.Next = 0, [][]string{{"wavehub", "run", "create", "--objective", "Describe the goal"}}
		return "", e
	}
	run := runs.Runs[0].RunId
	for i, arg := range a.argv {
		if arg == "--latest" || strings.HasPrefix(arg, "--latest=") {
			a.argv[i] = run
		}
	}
	return run, nil
}

// printBound shows the token where nothing else keeps it: a consumer that nobody
// can be would only have fenced the former one.
func printBound(p *printer, out *client.RunBound, kept bool) {
	p.line("%s  %s", out.Run.RunId, out.Run.Objective)
	if out.Binding == nil {
		p.line("no consumer; become it with: wavehub run use %s", out.Run.RunId)
		return
	}
	p.line("consumer generation %s", strconv.FormatInt(out.Binding.Generation, 10))
	if !kept && out.Binding.ConsumerToken != nil {
		p.line("this command has no terminal to bind; the consumer is whoever sets WAVEHUB_CONSUMER=%s", *out.Binding.ConsumerToken)
	}
}

func (a *app) runCurrent() *cobra.Command {
	return &cobra.Command{
		Use:     "current",
		Short:   "Show the Run that this terminal or consumer token is bound to",
		Example: "wavehub run current",
		Args:    exactly(),
		RunE: verb[client.RunDetail]{
			call: func(ctx context.Context, s *session, _ []string, opts ...client.Option) (*client.RunDetail, error) {
				if !s.bound && s.dispatch == nil {
					return nil, s.runRequired(ctx)
				}
				return s.Binding(ctx, opts...)
			},
			human: printRun,
		}.runE(a),
	}
}

func (a *app) runShow() *cobra.Command {
	return &cobra.Command{
		Use:     "show RUN",
		Short:   "Show one Run, its inbox and its consumers",
		Example: "wavehub run show run_01j8zq4h5n6p7r8s9t0v1w2x3y",
		Args:    exactly("RUN"),
		RunE: verb[client.RunDetail]{
			call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.RunDetail, error) {
				return s.Run(ctx, args[0], opts...)
			},
			human: printRun,
		}.runE(a),
	}
}

func printRun(p *printer, out *client.RunDetail) {
	p.line("%s  %s", out.Run.RunId, out.Run.Objective)
	p.line("generation %d, created %s", out.Run.Generation, out.Run.CreatedAt)
	p.line("%d messages, %d not acknowledged, outstanding delivery: %s",
		out.Mailbox.Messages, out.Mailbox.Unacknowledged, or(out.Mailbox.DeliveryId, "none"))
	for _, row := range out.Audit {
		p.line("  %s %s by %s, generation %d", row.At, row.Action, row.Principal, row.Generation)
	}
}

func (a *app) runList() *cobra.Command {
	var page client.Page
	cmd := &cobra.Command{Use: "list", Short: "List Runs, newest first", Example: "wavehub run list", Args: exactly()}
	pageFlags(cmd, &page)
	cmd.RunE = verb[client.RunPage]{
		call: func(ctx context.Context, s *session, _ []string, opts ...client.Option) (*client.RunPage, error) {
			return s.Runs(ctx, page, opts...)
		},
		human: func(p *printer, out *client.RunPage) {
			list(p, []string{"RUN", "GENERATION", "CREATED", "OBJECTIVE"}, out.Runs, out.NextCursor, func(r client.Run) []string {
				return []string{r.RunId, strconv.FormatInt(r.Generation, 10), r.CreatedAt, r.Objective}
			})
		},
	}.runE(a)
	return cmd
}
