package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

// Renderings of plans and graphs.
const (
	formatText = "text"
	formatJSON = "json"
)

var renderings = []string{formatText, "mermaid", "dot", formatJSON}

// checkRendering refuses what there is not; json is --json by another name.
func (a *app) checkRendering(cmd *cobra.Command, format string) error {
	if !slices.Contains(renderings, format) {
		return ofFlag(cmd, "format", "--format takes %s, not %q", strings.Join(renderings, ", "), format)
	}
	a.flags.json = a.flags.json || format == formatJSON
	return nil
}

type planFlags struct {
	format, from string
	policy       policyFlags
	place        placing
}

func (a *app) wavePlan() *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "plan FILE",
		Short: "Validate and plan a file of tasks; nothing is stored",
		Long: "Shows everything that is wrong with the tasks of a file (- for stdin), and in which order they\n" +
			"would run. Exit code 0 when the plan is valid, 1 when it is not.",
		Example: "wavehub wave plan tasks.json\nwavehub wave plan tasks.json --conflicts serialize --format mermaid\n" +
			"wavehub wave plan specs/001/tasks.md --from-format spec-kit --agent codex --repo demo --worktree new-top-level",
		Args: exactly("FILE"),
	}
	cmd.Flags().StringVar(&f.format, "format", formatText, "how the plan is shown: text, mermaid, dot (of graphviz) or json")
	cmd.Flags().StringVar(&f.from, "from-format", sourceAuto, "how the file is written: "+strings.Join(sourceFormats, ", "))
	f.policy.register(cmd)
	f.place.register(cmd, false)
	cmd.RunE = verb[client.WavePlan]{
		call: a.planWave(cmd, &f), label: "planning",
		human: func(p *printer, out *client.WavePlan) { p.text(renderPlan(f.format, *out)) },
		exit: func(out *client.WavePlan) error {
			if !out.Valid {
				return exitCode(1)
			}
			return nil
		},
	}.runE(a)
	return cmd
}

func (a *app) planWave(cmd *cobra.Command, f *planFlags) func(context.Context, *session, []string, ...client.Option) (*client.WavePlan, error) {
	return func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.WavePlan, error) {
		if slices.Contains(sourceFormats, f.format) && f.from == sourceAuto {
			return nil, ofFlag(cmd, "format", "shows the plan as --format says; how the file is written says --from-format %s", f.format)
		}
		if err := a.checkRendering(cmd, f.format); err != nil {
			return nil, err
		}
		policy, err := f.policy.policy(a)
		if err != nil {
			return nil, err
		}
		worker, start, err := f.place.read()
		if err != nil {
			return nil, err
		}
		source, err := a.readSource("", args[0], f.from)
		if err != nil {
			return nil, err
		}
		in := client.WavePlanRequest{Source: source, Policy: policy}
		if worker != "" || start != nil {
			in.Defaults = &client.WaveDefaults{Worker: worker, Start: start}
		}
		return s.PlanWave(ctx, in, opts...)
	}
}
