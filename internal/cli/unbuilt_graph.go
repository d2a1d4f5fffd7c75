package cli

import (
	"strings"

	"github.com/wavehub/wavehub/client"
)

// renderPlan is built by the piece intake.
func renderPlan(_ string, plan client.WavePlan) string {
	var b strings.Builder
	for _, f := range plan.Findings {
		b.WriteString(findingLine(f) + "\n")
	}
	for _, l := range plan.Levels {
		b.WriteString(l.Sub + ": " + strings.Join(l.Tasks, ", ") + "\n")
	}
	return b.String()
}

// renderGraph is built by the piece intake.
func renderGraph(_ string, g client.WaveGraph) string {
	return renderPlan("", client.WavePlan{Levels: g.Levels})
}
