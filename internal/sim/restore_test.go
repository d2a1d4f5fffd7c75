package sim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/sqlite"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/relay"
)

// copied are the files of a host at one moment, and what its hub had accepted.
type copied struct {
	dir    string
	epoch  int64
	before map[hub.DispatchID]book
}

// copyFiles keeps the files of a worker hub while it is down.
func (w *world) copyFiles() (string, error) {
	h := w.hosts[w.rng.IntN(workers)]
	p := h.up()
	if p == nil || h.pending {
		return "nothing", nil
	}
	c := &copied{dir: h.dir + "-copy", epoch: p.epoch, before: map[hub.DispatchID]book{}}
	for _, b := range w.books {
		if w.hosts[b.at] == h {
			c.before[b.id] = *b
		}
	}
	h.copied = nil
	return h.name, errors.Join(h.crash(func() { w.cutOf(h) }), replace(c.dir, h.dir), h.boot(), func() error { h.copied = c; return nil }())
}

func replace(to, from string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return os.CopyFS(to, os.DirFS(from))
}

// putBack replaces the files of a worker hub by the older ones. What it accepted
// since then is gone there; what of it had come home stays.
func (w *world) putBack() (string, error) {
	h := w.hosts[w.rng.IntN(workers)]
	if h.copied == nil || h.pending || w.open(h) {
		return "nothing", nil
	}
	if err := errors.Join(h.crash(func() { w.cutOf(h) }), replace(h.dir, h.copied.dir)); err != nil {
		return h.name, err
	}
	for _, b := range w.books {
		if w.hosts[b.at] == h {
			b.regress(h.copied.before)
		}
	}
	w.tally.restores++
	h.pending = true
	return h.name, h.boot()
}

// open reports whether a call to the host has no answer yet: under its request id
// it would be made anew there.
func (w *world) open(h *host) bool {
	for _, b := range w.books {
		if b.pending != nil && b.pending.on == h {
			return true
		}
	}
	return false
}

// regress takes back what the Dispatch's owner does not know any more.
func (b *book) regress(before map[hub.DispatchID]book) {
	was, ok := before[b.id]
	if !ok {
		b.orphan, b.given = true, true
	}
	for _, id := range b.said[len(was.said):] {
		b.loose[b.texts[id]] = true
	}
	if len(was.reports) == 0 && len(b.reports) > 0 {
		b.given = true // it may have come home, and it may not
	}
	b.said, b.asked, b.reports = b.said[:len(was.said)], b.asked[:len(was.asked)], b.reports[:len(was.reports)]
	if b.exited && !was.exited {
		b.exited, b.given = false, true
	}
}

// adopt raises the epoch of a host whose files were put back, once its home has
// told it which epochs it knows.
func (w *world) adopt(i int) error {
	h, l := w.hosts[i], w.links[i]
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	met := func() bool {
		return w.home.up().home.State(l.atHome).State == relay.LinkUp && h.up().desk.Up(l.atWorker)
	}
	for deadline := time.Now().Add(patience); !met(); <-tick.C {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s, put back, gets no link: %+v", h.name, w.home.up().home.State(l.atHome))
		}
	}
	if err := h.crash(func() { w.cutOf(h) }); err != nil {
		return err
	}
	if err := raise(h); err != nil {
		return err
	}
	h.pending = false
	return h.boot()
}

func raise(h *host) error {
	st, err := sqlite.Open(context.Background(), sqlite.Config{Path: h.path()})
	if err != nil {
		return err
	}
	err = st.Update(context.Background(), store.Settle, func(tx store.Tx) error {
		_, _, err := tx.RaiseEpoch()
		return err
	})
	return errors.Join(err, st.Close())
}

// adoptAny adopts a host whose files were put back, in fair weather.
func (w *world) adoptAny() (string, error) {
	for i, h := range w.hosts {
		if h.pending && h.up() != nil && w.home.up() != nil {
			w.links[i].heal()
			w.home.up().home.Kick(w.links[i].atHome)
			return h.name, w.adopt(i)
		}
	}
	return "nothing", nil
}

// step of a clock: minutes or a day, either way.
func (w *world) clock() (string, error) {
	h := w.all()[w.rng.IntN(workers+1)]
	steps := []time.Duration{-24 * time.Hour, -10 * time.Minute, 10 * time.Minute, 24 * time.Hour}
	d := steps[w.rng.IntN(len(steps))]
	h.skew.Store(d.Microseconds())
	w.tally.clocks++
	return h.name + " " + d.String(), nil
}
