package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/wavehub/wavehub/client"
)

// printWave shows a wave: the wave, its tasks level by level, what they come to, what
// was found out about their work and what is left over.
func printWave(p *printer, out *client.WaveSnapshot) {
	printWaveHead(p, out.Wave)
	printWaveTasks(p, out.Tasks)
	printSummary(p, out.Summary)
	for _, t := range out.Tasks {
		printTaskFindings(p, t)
	}
	for _, r := range out.Residuals {
		p.line("  left over: %s of %s on %s, %s", r.DispatchId, r.TaskId, orText(r.Server, "this hub"), r.State)
	}
	printLeftovers(p, nil, waveNext(out.Wave))
}

func printWaveHead(p *printer, w client.Wave) {
	p.line("%s  %s  iteration %d of %d  run %s", w.WaveId, string(w.Status), w.Iteration, w.Policy.MaxIterations, w.RunId)
	if w.Goal != "" {
		first, _, _ := strings.Cut(w.Goal, "\n")
		p.line("  %s", first)
	}
	if e := w.Ending; e != nil {
		p.line("  ended as %s: %s", e.As, e.Reason)
	}
	if u := w.Usage; u != nil && (u.CostUsd > 0 || u.Tokens > 0 || u.Unmetered > 0) {
		p.line("  used: %s USD, %s, %s unmetered", strconv.FormatFloat(u.CostUsd, 'f', -1, 64), counted(int(u.Tokens), "token"), counted(u.Unmetered, "attempt"))
	}
	if w.Exhausted {
		p.line("  no iteration is left: wave retry --max-iterations allows more")
	}
}

// printWaveTasks lists tasks level by level, as they were declared within each.
func printWaveTasks(p *printer, tasks []client.WaveTask) {
	rows := make([][]string, len(tasks))
	tasks = slices.Clone(tasks)
	slices.SortStableFunc(tasks, func(a, b client.WaveTask) int {
		return cmp.Or(cmp.Compare(a.Level, b.Level), cmp.Compare(len(a.Sub), len(b.Sub)), cmp.Compare(a.Sub, b.Sub))
	})
	for i, t := range tasks {
		rows[i] = []string{
			strconv.Itoa(t.Level) + t.Sub, t.TaskId, string(t.Status), placeOf(t), strconv.Itoa(t.Attempts), or(t.DispatchId, "-"),
			or(t.WaitingFor, "-"), or(t.Reason, "-"),
		}
	}
	p.table([]string{"LEVEL", "TASK", "STATUS", "WORKER", "ATTEMPTS", "DISPATCH", "WAITING FOR", "REASON"}, rows)
}

// printTaskFindings shows what speaks against a task's work.
func printTaskFindings(p *printer, t client.WaveTask) {
	if r := t.VerifyResult; r != nil && *r != "passed" {
		p.line("  %s: verification %s, by the %s", t.TaskId, *r, or(t.VerifiedBy, "hub"))
	}
	if len(t.ScopeViolations) > 0 {
		p.line("  %s: changed outside of its scope: %s", t.TaskId, shortened(t.ScopeViolations))
	}
}

// shortened is the beginning of a list of names.
func shortened(names []string) string {
	text := strings.Join(names[:min(len(names), namedTasks)], ", ")
	if more := len(names) - namedTasks; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// placeOf is who does a task: an attached worker, or an agent on a hub.
func placeOf(t client.WaveTask) string {
	if t.Start == nil {
		return orText(t.Worker, "-")
	}
	agent := orText(t.Start.Agent, t.Start.Terminal)
	if t.Start.On == "" {
		return agent
	}
	return agent + "@" + t.Start.On
}

func printSummary(p *printer, s client.WaveSummary) {
	parts := []string{fmt.Sprintf("%d of %d completed", s.Done, s.Total)}
	for _, status := range []client.WaveStatus{client.WaveRunning, client.WavePending, client.WaveFailed, client.WaveCancelled} {
		if n := s.ByStatus[string(status)]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, status))
		}
	}
	p.line("%s", strings.Join(parts, ", ")+"; "+counted(len(s.Levels), "level")+"; gate: "+string(s.MergeGate))
}

// printCreated shows a wave that was made or changed, beginning with its id.
func printCreated(p *printer, out *client.WaveResult) {
	w := out.Wave
	p.line("%s  %s  %s  run %s", w.WaveId, string(w.Status), counted(w.Total, "task"), w.RunId)
	for _, s := range out.Serialized {
		p.line("  serialized: %s before %s, which moves to %s: both write %s", s.First, s.Second, s.MovedTo, s.Path)
	}
	for _, f := range out.Warnings {
		p.line("  warning: %s", findingLine(f))
	}
	printLeftovers(p, nil, waveNext(w))
}

// waveNext is what can be done with a wave next.
func waveNext(w client.Wave) [][]string {
	switch w.Status {
	case client.WavePending:
		return [][]string{{"wavehub", "wave", "spawn", w.WaveId}}
	case client.WaveRunning:
		return [][]string{{"wavehub", "wave", "watch", w.WaveId}}
	}
	return nil
}
