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
	asking   map[hub.DispatchID]bool // live ones with a question that is open
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
		if l.gone, err = provenGone(rx, l.rows); err != nil {
			return err
		}
		l.asking, err = askingOf(rx, l.rows)
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
		tried, err := triesOf(rx, r)
		if err != nil {
			return nil, err
		}
		out[r.Task] = tried.failures
	}
	return out, nil
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

// askingOf are the live Dispatches whose worker waits for an answer.
func askingOf(rx store.QuestionReader, rows []hub.WaveRow) (map[hub.DispatchID]bool, error) {
	out := map[hub.DispatchID]bool{}
	for _, r := range rows {
		if !begun(r) || r.Dispatch.State != hub.Ready {
			continue
		}
		qs, err := rx.PendingQuestions(r.Dispatch.ID)
		if err != nil {
			return nil, err
		}
		out[r.Dispatch.ID] = len(qs) > 0
	}
	return out, nil
}

// inUse adds what the workers of live Dispatches say that they have used so far.
func (s *Service) inUse(rows []hub.WaveRow, by map[hub.TaskID]*Usage, all *Usage) {
	for _, r := range rows {
		if r.Dispatch == nil || r.Dispatch.State.Final() {
			continue
		}
		o, ok := s.Work.Known(*r.Dispatch)
		if !ok || o.Usage == nil {
			continue
		}
		used := usageOf(o.Usage)
		if used.Unmetered > 0 {
			continue
		}
		if by[r.Task] == nil {
			by[r.Task] = &Usage{Unmetered: r.Attempts}
		}
		used.Unmetered = -1 // it is metered now
		*by[r.Task], *all = by[r.Task].plus(used), all.plus(used)
	}
}

// snapshot says what follows from a look.
func (s *Service) snapshot(l look) Snapshot {
	by, all := metered(l.rows, l.usages)
	s.inUse(l.rows, by, &all)
	out := Snapshot{Wave: l.wave, Tasks: make([]TaskShown, len(l.rows)), Usage: all, Residuals: []Residual{}}
	for i, r := range l.rows {
		st := l.standing(i)
		t := TaskShown{WaveRow: r, Status: st.status, Reason: st.reason, Usage: by[r.Task]}
		if !st.status.Final() {
			if t.WaitingFor = s.waiting(l.wave, r); r.Dispatch != nil && l.asking[r.Dispatch.ID] {
				t.WaitingFor = waitAnswer
			}
		} else if left, ok := residualOf(r); ok && !l.gone[left.Dispatch] {
			out.Residuals = append(out.Residuals, left)
		}
		out.Tasks[i] = t
	}
	out.Summary = summed(l.wave, out.Tasks)
	return out
}
