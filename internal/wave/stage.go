package wave

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// maxPart bounds what one transaction stages, in bytes of texts; a single task may
// be larger.
const maxPart = 4 << 20

// part is what one transaction stages of a wave: tasks, each with its Task, and
// orders.
type part struct {
	tasks  []hub.WaveTask
	work   []hub.Task
	orders []hub.WaveOrder
}

// parts divides a wave. There is always one: the last is stored with the wave.
func parts(tasks []hub.WaveTask, work []hub.Task, orders []hub.WaveOrder) ([]part, error) {
	out, size := []part{{}}, 0
	last := func(bytes int) *part {
		if size += bytes; size > maxPart && size > bytes {
			out, size = append(out, part{}), bytes
		}
		return &out[len(out)-1]
	}
	for i, x := range tasks {
		n, err := weight(x, work[i])
		if err != nil {
			return nil, err
		}
		p := last(n)
		p.tasks, p.work = append(p.tasks, x), append(p.work, work[i])
	}
	for _, o := range orders {
		p := last(len(o.Path) + rowWeight)
		p.orders = append(p.orders, o)
	}
	return out, nil
}

// rowWeight is what a row takes beside its texts.
const rowWeight = 64

// weight is about what a task and its Task take.
func weight(x hub.WaveTask, t hub.Task) (int, error) {
	entry, err := json.Marshal(x.Entry)
	if err != nil {
		return 0, err
	}
	scope, err := json.Marshal(t.WriteScope)
	if err != nil {
		return 0, err
	}
	deps := 3 * len(t.Dependencies) * len(x.Task)
	texts := len(t.Spec) + len(t.Title) + len(t.VerifyCmd) + len(t.HandoffPath) + len(t.Result) + len(t.ResultData)
	return len(entry) + len(scope) + deps + texts + 8*rowWeight, nil
}

// stage stores a part under the uid of a wave.
func (p part) stage(tx store.Tx, uid hub.WaveUID) error {
	work := slices.Clone(p.work)
	for i := range work {
		work[i].Version, work[i].CreatedAt, work[i].UpdatedAt = 1, tx.Now(), tx.Now()
	}
	if err := tx.StageWaveTasks(uid, p.tasks, work); err != nil {
		return err
	}
	return tx.StageWaveOrders(uid, p.orders)
}

// stageAll stages parts in transactions of their own; what it has staged of parts
// that cannot all be stored is dropped.
func (s *Service) stageAll(ctx context.Context, uid hub.WaveUID, ps []part) error {
	for i, p := range ps {
		err := s.Store.Update(ctx, store.New, func(tx store.Tx) error { return p.stage(tx, uid) })
		if err != nil {
			s.drop(ctx, uid, i > 0, err)
			return err
		}
	}
	return nil
}

// drop forgets what was staged for a uid, if anything was, after cause. After an
// outcome that is not known it may be the wave's: then it stays until the next
// start, as does what cannot be dropped now.
func (s *Service) drop(ctx context.Context, uid hub.WaveUID, staged bool, cause error) {
	if !staged || hub.IsCode(cause, hub.CodeOutcomeUnknown) {
		return
	}
	err := s.Store.Update(context.WithoutCancel(ctx), store.Settle, func(tx store.Tx) error { return tx.DropStaged(uid) })
	if err != nil {
		s.Log.Warn("dropping what was staged for a wave; the next start does it", "wave_uid", uid, "error", err)
	}
}

// Recover drops what was staged for waves that never came. It runs before anything
// is served: then nobody is staging.
func (s *Service) Recover(ctx context.Context) error {
	return s.Store.Update(ctx, store.Settle, func(tx store.Tx) error { return tx.DropLeftovers() })
}
