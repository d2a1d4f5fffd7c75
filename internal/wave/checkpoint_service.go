package wave

import (
	"context"
	"slices"
	"sync"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// checkpoints are the folders of the waves that are running. The zero value is
// ready for use.
type checkpoints struct {
	mu   sync.Mutex
	kept map[hub.WaveUID]*checkpoint // guarded by mu; each has one user at a time
}

// checkpoint is what is known of one wave and its folder.
type checkpoint struct {
	*projector
	orders   []hub.WaveOrder // they never change once a wave runs
	read     bool            // orders are there
	graph    graphMemo
	failures map[hub.DispatchID]int // attempts that failed, up to this one
}

// checkpoint writes what the folder of w lacks of its present state: rows are all
// its tasks, w.CheckpointDir is set. doneThrough is the last level up to which
// every one has its done.json on the disk, 0 for none; under barrier the next level
// waits for it. It counts after an error too, which is for the caller to report and
// to try again after. What was cut anywhere is put right by the next call, after a
// restart too. Calls for one wave exclude each other; those for several may go on
// at once.
func (s *Service) checkpoint(ctx context.Context, w hub.Wave, rows []hub.WaveRow) (doneThrough int, err error) {
	c := s.checkpoints.of(w, s.Files)
	if err := c.prepare(ctx, s.Store, w, rows); err != nil {
		return 0, err
	}
	files := projection(w, rows, c.orders, &c.graph, func(r hub.WaveRow) standing { return standingOf(w, r, c.failed(r)) })
	through, err := c.keep(ctx, files)
	if err == nil && w.Status.Final() {
		s.checkpoints.forget(w.UID)
	}
	return through, err
}

func (cs *checkpoints) of(w hub.Wave, files Files) *checkpoint {
	if files == nil {
		files = diskFiles{}
	}
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.kept == nil {
		cs.kept = map[hub.WaveUID]*checkpoint{}
	}
	c := cs.kept[w.UID]
	if c == nil {
		c = &checkpoint{projector: newProjector(files, waveFolder(w.CheckpointDir, w.ID)), failures: map[hub.DispatchID]int{}}
		cs.kept[w.UID] = c
	}
	return c
}

func (cs *checkpoints) forget(uid hub.WaveUID) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	delete(cs.kept, uid)
}

// prepare reads what the rows do not say: the orders, and how often those tasks
// failed in this iteration for which that decides whether a retry is due.
func (c *checkpoint) prepare(ctx context.Context, s store.Reader, w hub.Wave, rows []hub.WaveRow) error {
	if err := c.readOrders(ctx, s, w.ID); err != nil || w.Policy.Retry == 0 {
		return err
	}
	var asked []hub.WaveRow
	for _, r := range rows {
		if r.Dispatch != nil && r.Dispatch.State == hub.Failed && !c.counted(r.Dispatch.ID) {
			asked = append(asked, r)
		}
	}
	for some := range slices.Chunk(asked, countedAtOnce) {
		if err := s.View(ctx, func(rx store.Rx) error { return c.count(rx, some) }); err != nil {
			return err
		}
	}
	return nil
}

func (c *checkpoint) readOrders(ctx context.Context, s store.Reader, id hub.WaveID) error {
	if c.read {
		return nil
	}
	return s.View(ctx, func(rx store.Rx) (err error) {
		c.orders, err = rx.WaveOrders(id)
		c.read = err == nil
		return err
	})
}

func (c *checkpoint) counted(d hub.DispatchID) bool { _, ok := c.failures[d]; return ok }

func (c *checkpoint) count(rx store.DispatchReader, rows []hub.WaveRow) error {
	for _, r := range rows {
		n, err := failuresSince(rx, r)
		if err != nil {
			return err
		}
		c.failures[r.Dispatch.ID] = n
	}
	return nil
}

// failed is how many attempts of this iteration failed, up to the latest one.
func (c *checkpoint) failed(r hub.WaveRow) int {
	if r.Dispatch == nil {
		return 0
	}
	return c.failures[r.Dispatch.ID]
}

// countedAtOnce bounds one reading of the store; attemptsRead how many attempts of an
// iteration are counted: far more than retries there are.
const (
	countedAtOnce = 500
	attemptsRead  = 50
)

// failuresSince counts the attempts at a task that failed since its Base.
func failuresSince(rx store.DispatchReader, r hub.WaveRow) (int, error) {
	ds, _, err := rx.DispatchList(store.DispatchFilter{Task: r.Task}, store.Page{Limit: attemptsRead})
	failures := 0
	for _, d := range ds {
		if d.ID == r.Base {
			break
		}
		if d.State == hub.Failed && !uncounted(d) {
			failures++
		}
	}
	return failures, err
}
