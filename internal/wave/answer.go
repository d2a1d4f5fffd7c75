package wave

import (
	"context"
	"strconv"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// recalled completes an answer that is recorded by the wave's name with what there
// is of the wave now: an answer and its replay are equal as long as nobody has
// changed the wave.
func (s *Service) recalled(ctx context.Context, out Created) (Created, error) {
	err := s.Store.View(ctx, func(rx store.Rx) error {
		w, err := rx.Wave(out.Wave)
		if err != nil {
			return err
		}
		xs, orders, err := ordered(rx, out.Wave)
		out.Warnings, out.Serialized = append([]hub.Finding{}, w.Warnings...), serializedBy(xs, orders)
		return err
	})
	return out, err
}

// Limits of the warnings that are kept with a wave.
const (
	maxWarnings     = 200
	maxWarningTasks = 50
	maxWarningBytes = 1 << 10
)

// bounded is the beginning of what a plan warned of, with as much left out said.
func bounded(fs []hub.Finding) []hub.Finding {
	out := make([]hub.Finding, 0, min(len(fs), maxWarnings))
	for _, f := range fs[:min(len(fs), maxWarnings)] {
		f.Detail = hub.Cut(f.Detail, maxWarningBytes)
		if more := len(f.Tasks) - maxWarningTasks; more > 0 {
			f.Tasks, f.Detail = f.Tasks[:maxWarningTasks:maxWarningTasks], f.Detail+leftOut(more, "tasks")
		}
		out = append(out, f)
	}
	if more := len(fs) - maxWarnings; more > 0 {
		out[maxWarnings-1].Detail += leftOut(more, "warnings")
	}
	return out
}

func leftOut(n int, what string) string { return " (and " + strconv.Itoa(n) + " more " + what + ")" }
