package wave

import "github.com/wavehub/wavehub/internal/hub"

// plainly is standingOf in an iteration, for the two kinds that nearly all tasks of
// a large wave are of: nothing was begun with it, or it is completed. Each decision
// asks it of each task, so it copies neither the task nor the wave.
func (t *task) plainly(iteration int) (st standing, ok bool) {
	switch {
	case t.Dispatch == nil && t.EndedAs == "" && (t.State == hub.TaskReady || t.State == hub.TaskPending):
		return standing{status: hub.WavePending}, true
	case t.Iteration == iteration && t.EndedAs == hub.WaveCompleted && t.State == hub.TaskCompleted:
		return standing{status: hub.WaveCompleted, reason: t.EndedReason}, true
	}
	return standing{}, false
}
