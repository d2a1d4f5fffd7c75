package cli

import (
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

func livenessFlag(cmd *cobra.Command, d *time.Duration) {
	cmd.Flags().DurationVar(d, "liveness", 0, "after so much silence the worker is called lost, which changes no state (0: never)")
}

// livenessSecs is the flag in whole seconds.
func livenessSecs(cmd *cobra.Command, d time.Duration) (int64, error) {
	if d < 0 || d%time.Second != 0 {
		return 0, misused(cmd, "--liveness takes whole seconds, such as 90s, or 0")
	}
	return int64(d / time.Second), nil
}

// printObservation prints four separate facts, each with its time: the link, the
// process, its output, its report.
func printObservation(p *printer, o client.Observation) {
	p.line("  link     %s", with(string(o.Link), "since", o.LinkAt))
	p.line("  process  %s", processFact(o))
	p.line("  output   %s", or(o.LastOutputAt, "never"))
	p.line("  report   %s", or(o.LastReportAt, "never"))
	p.line("  waiting for %s, attachment %s", or(o.WaitingFor, "nothing"), string(o.Attachment))
	if o.Lost {
		p.line("  lost: it was silent for longer than its liveness; it may still run")
	}
}

func with(fact, word string, at *string) string {
	if at == nil {
		return fact
	}
	return fact + " " + word + " " + *at
}

// processFact tells a process that is unverifiable now from what was known of it.
func processFact(o client.Observation) string {
	fact := with(string(o.Process), "as of", o.ProcessAt)
	if o.LastProcess != "" && o.LastProcess != o.Process {
		fact += ", then " + string(o.LastProcess)
	}
	if o.ExitCode != nil {
		fact += ", exit code " + strconv.Itoa(*o.ExitCode)
	}
	return fact
}

// inList are the four facts as columns; a Dispatch that is not live has none.
func inList(o *client.Observation) []string {
	if o == nil {
		return []string{"-", "-", "-", "-"}
	}
	process := with(string(o.Process), "as of", o.ProcessAt)
	if o.Lost {
		process += " (lost)"
	}
	return []string{with(string(o.Link), "since", o.LinkAt), process, or(o.LastOutputAt, "never"), or(o.LastReportAt, "never")}
}
