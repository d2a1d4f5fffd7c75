package cli

import (
	"strconv"
	"strings"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/safetext"
)

// maxNamed is how many tasks of a finding are named.
const maxNamed = 20

// findingLine is a finding for people, in one line.
func findingLine(f client.PlanFinding) string {
	text := f.Code
	if f.Line > 0 {
		text = "line " + strconv.Itoa(f.Line) + ": " + text
	}
	named := f.Tasks[:min(len(f.Tasks), maxNamed)]
	if len(named) > 0 {
		text += " [" + strings.Join(named, ", ")
		if more := len(f.Tasks) - len(named); more > 0 {
			text += " and " + strconv.Itoa(more) + " more"
		}
		text += "]"
	}
	return safetext.Line(text+": "+f.Detail, 2000)
}
