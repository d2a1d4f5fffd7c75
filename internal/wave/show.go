package wave

import (
	"context"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// look is what one read transaction gives of a wave.
type look struct {
	wave     hub.Wave
	rows     []hub.WaveRow
	failures map[hub.TaskID]int // of this iteration, where a retry may be due
	usages   []hub.DispatchUsage
	gone     map[hub.DispatchID]bool // abandoned ones whose worker is proven gone
}

// Show is a wave as it is at one moment.
func (s *Service) Show(ctx context.Context, id hub.WaveID) (Snapshot, error) {
	var l look
	err := s.Store.View(ctx, func(rx store.Rx) (err error) {
		if l, err = lookAt(rx, id); err != nil {
			return err
		}
		if l.usages, err = rx.WaveUsages(id); err != nil {
			return err
		}
		l.gone, err = provenGone(rx, l.rows)
		return err
	})
	if err != nil {
		return Snapshot{}, err
	}
	return s.snapshot(l), nil
}

// lookAt reads a wave with what the status of its tasks follows from.
func lookAt(rx store.Rx, id hub.WaveID) (l look, err error) {
	if l.wave, err = rx.Wave(id); err != nil {
		return l, err
	}
	if l.rows, err = rx.WaveRows(id); err != nil {
		return l, err
	}
	l.failures, err = failuresOf(rx, l.wave, l.rows)
	return l, err
}

func (l look) standing(i int) standing {
	return standingOf(l.wave, l.rows[i], l.failures[l.rows[i].Task])
}

// failuresOf counts the failed attempts of the tasks that a retry may be due for;
// nobody asks for those of others.
func failuresOf(rx store.DispatchReader, w hub.Wave, rows []hub.WaveRow) (map[hub.TaskID]int, error) {
	out := map[hub.TaskID]int{}
	for _, r := range rows {
		if w.Policy.Retry == 0 || !begun(r) || r.Dispatch.State != hub.Failed {
			continue
		}
		n, err := failures(rx, r, w.Policy.Retry+1)
		if err != nil {
			return nil, err
		}
		out[r.Task] = n
	}
	return out, nil
}

// failures counts the attempts of this iteration that count as failed, up to enough.
func failures(rx store.DispatchReader, r hub.WaveRow, enough int) (int, error) {
	n, p := 0, store.Page{Limit: 16}
	for {
		ds, next, err := rx.DispatchList(store.DispatchFilter{Task: r.Task}, p)
		if err != nil {
			return n, err
		}
		for _, d := range ds {
			if d.ID == r.Base || n >= enough {
				return n, nil
			}
			if d.State == hub.Failed && !uncounted(d) {
				n++
			}
		}
		if p.Before = next; next == 0 {
			return n, nil
		}
	}
}

// provenGone are the abandoned Dispatches of this hub whose process was seen to its
// end after all. What a peer saw after that, it does not say.
func provenGone(rx store.AttachmentReader, rows []hub.WaveRow) (map[hub.DispatchID]bool, error) {
	out := map[hub.DispatchID]bool{}
	for _, r := range rows {
		if r.Dispatch == nil || r.Dispatch.State != hub.Abandoned || !r.Dispatch.Local() {
			continue
		}
		a, ok, err := rx.Attachment("", r.Dispatch.ID)
		if err != nil {
			return nil, err
		}
		out[r.Dispatch.ID] = ok && a.ExitDone
	}
	return out, nil
}

// snapshot says what follows from a look.
func (s *Service) snapshot(l look) Snapshot {
	by, all := metered(l.rows, l.usages)
	out := Snapshot{Wave: l.wave, Tasks: make([]TaskShown, len(l.rows)), Usage: all, Residuals: []Residual{}}
	for i, r := range l.rows {
		st := l.standing(i)
		t := TaskShown{WaveRow: r, Status: st.status, Reason: st.reason, Usage: by[r.Task]}
		if !st.status.Final() {
			t.WaitingFor = s.waiting(l.wave, r)
		} else if left, ok := residualOf(r); ok && !l.gone[left.Dispatch] {
			out.Residuals = append(out.Residuals, left)
		}
		out.Tasks[i] = t
	}
	out.Summary = summed(l.wave, out.Tasks)
	return out
}
