package cli

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

func (a *app) waveCommand() *cobra.Command {
	return group("wave", "Run a set of dependent tasks, each by a worker of its own",
		"wavehub wave plan tasks.json\nwavehub wave create --goal \"Port to v2\" --tasks tasks.json --id w1 --spawn",
		a.wavePlan(), a.waveCreate(), a.waveRun(), a.waveSpawn(), a.waveStatus(), a.waveWatch(), a.waveList(), a.waveCancel(), a.waveRetry(),
		a.waveTaskCommand(), a.waveGraph())
}

func (a *app) waveSpawn() *cobra.Command {
	var limit secondsFlag
	cmd := mark(&cobra.Command{
		Use: "spawn WAVE", Short: "Start a wave and answer at once; a running one stays as it is", Args: exactly("WAVE"),
		Example: "wavehub wave spawn w1\nwavehub wave spawn w1 --timeout 3600s",
	}, isMutation)
	limit.register(cmd, "timeout", waveTimeoutHelp)
	cmd.RunE = verb[client.WaveSnapshot]{
		call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.WaveSnapshot, error) {
			secs, err := limit.read()
			if err != nil {
				return nil, err
			}
			return s.SpawnWave(ctx, args[0], client.WaveSpawn{TimeoutSecs: secs}, opts...)
		},
		human: printWave,
	}.runE(a)
	return cmd
}

func (a *app) waveStatus() *cobra.Command {
	var strict bool
	cmd := &cobra.Command{
		Use: "status WAVE", Short: "Show a wave, its tasks and what each of them waits for", Args: exactly("WAVE"),
		Example: "wavehub wave status w1\nwavehub wave status w1 --exit-status --json",
	}
	exitStatusFlag(cmd, &strict)
	cmd.RunE = verb[client.WaveSnapshot]{
		call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.WaveSnapshot, error) {
			return s.Wave(ctx, args[0], opts...)
		},
		human: printWave,
		exit:  func(out *client.WaveSnapshot) error { return waveExit(strict, out.Wave.Status) },
	}.runE(a)
	return cmd
}

func exitStatusFlag(cmd *cobra.Command, strict *bool) {
	cmd.Flags().BoolVar(strict, "exit-status", false, "exit code 1 when the wave has failed or was cancelled")
}

func waveExit(strict bool, status client.WaveStatus) error {
	if strict && (status == client.WaveFailed || status == client.WaveCancelled) {
		return exitCode(1)
	}
	return nil
}

func (a *app) waveList() *cobra.Command {
	var page client.Page
	var status string
	cmd := &cobra.Command{
		Use: "list", Short: "List waves, newest first", Args: exactly(),
		Long:    "Lists the waves of all Runs, or of the one given with --run.",
		Example: "wavehub wave list\nwavehub wave list --status running",
	}
	pageFlags(cmd, &page)
	cmd.Flags().StringVar(&status, "status", "", "pending, running, completed, failed or cancelled")
	cmd.RunE = verb[client.WavePage]{
		call: func(ctx context.Context, s *session, _ []string, opts ...client.Option) (*client.WavePage, error) {
			return s.Waves(ctx, client.WaveFilter{Status: client.WaveStatus(status), Run: a.flags.run}, page, opts...)
		},
		human: func(p *printer, out *client.WavePage) {
			list(p, []string{"WAVE", "STATUS", "TASKS", "ITERATION", "RUN", "CREATED", "GOAL"}, out.Waves, out.NextCursor, func(w client.Wave) []string {
				return []string{w.WaveId, string(w.Status), strconv.Itoa(w.Total), strconv.Itoa(w.Iteration), w.RunId, w.CreatedAt, w.Goal}
			})
		},
	}.runE(a)
	return cmd
}

// maxCancelWait is how long a hub waits for the end of a wave at most.
const maxCancelWait = 15 * time.Second

func (a *app) waveCancel() *cobra.Command {
	var reason string
	cmd := mark(&cobra.Command{
		Use: "cancel WAVE", Short: "End a wave: nothing more is started, and what runs is stopped", Args: exactly("WAVE"),
		Long:    "Waits up to --timeout (15s, which is the most) for the end and shows the wave as it is then.\nOne that is still running then ends by itself.",
		Example: "wavehub wave cancel w1\nwavehub wave cancel w1 --reason \"wrong branch\" --timeout 5s",
	}, isMutation, isWait)
	cmd.Flags().StringVar(&reason, "reason", "", "why, for those who read of it later")
	cmd.RunE = verb[client.WaveSnapshot]{
		call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.WaveSnapshot, error) {
			wait := a.wait(maxCancelWait)
			if wait > maxCancelWait {
				return nil, ofFlag(cmd, "timeout", "waits at most %s", maxCancelWait)
			}
			ms := wait.Milliseconds()
			return s.CancelWave(ctx, args[0], client.WaveCancel{Reason: reason, WaitMs: &ms}, opts...)
		},
		human: printWave, label: "cancelling",
	}.runE(a)
	return cmd
}

func (a *app) waveRetry() *cobra.Command {
	var in client.WaveRetry
	var limit secondsFlag
	var budget string
	cmd := mark(&cobra.Command{
		Use: "retry WAVE", Short: "Run again everything of a failed or cancelled wave that is not completed", Args: exactly("WAVE"),
		Example: "wavehub wave retry w1\nwavehub wave retry w1 --max-iterations 5 --reason \"the proxy was down\"\nwavehub wave retry w1 --budget cost_usd=10",
	}, isMutation)
	cmd.Flags().IntVar(&in.MaxIterations, "max-iterations", 0, "allow so many iterations from now on; needs --reason")
	cmd.Flags().StringVar(&in.Reason, "reason", "", "why more iterations are allowed")
	budgetFlag(cmd, &budget)
	limit.register(cmd, "timeout", waveTimeoutHelp)
	cmd.RunE = verb[client.WaveSnapshot]{
		call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.WaveSnapshot, error) {
			err := checkRaise(cmd, in)
			if err == nil {
				in.TimeoutSecs, err = limit.read()
			}
			if err == nil {
				in.Budget, err = parseBudget(cmd, budget)
			}
			if err != nil {
				return nil, err
			}
			return s.RetryWave(ctx, args[0], in, opts...)
		},
		human: printWave,
	}.runE(a)
	return cmd
}

func checkRaise(cmd *cobra.Command, in client.WaveRetry) error {
	raised := cmd.Flags().Changed("max-iterations")
	switch {
	case raised && in.MaxIterations < 1:
		return ofFlag(cmd, "max-iterations", "--max-iterations takes a whole number from 1")
	case raised && in.Reason == "":
		return ofFlag(cmd, "reason", "needs --reason with --max-iterations")
	case !raised && in.Reason != "":
		return ofFlag(cmd, "reason", "takes --reason with --max-iterations only")
	}
	return nil
}

func (a *app) waveGraph() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: "graph WAVE", Short: "Show the plan of a wave as a graph", Args: exactly("WAVE"),
		Example: "wavehub wave graph w1\nwavehub wave graph w1 --format mermaid",
	}
	cmd.Flags().StringVar(&format, "format", formatText, "text, mermaid, dot (of graphviz) or json")
	cmd.RunE = verb[client.WaveGraph]{
		call: func(ctx context.Context, s *session, args []string, opts ...client.Option) (*client.WaveGraph, error) {
			if err := a.checkRendering(cmd, format); err != nil {
				return nil, err
			}
			return s.WaveGraph(ctx, args[0], opts...)
		},
		human: func(p *printer, out *client.WaveGraph) { p.text(renderGraph(format, *out)) },
	}.runE(a)
	return cmd
}
