package wave

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/signal"
	"github.com/wavehub/wavehub/internal/sqlite"
	"github.com/wavehub/wavehub/internal/store"
)

// eventLog is a store with a clock that the test sets, and a Service over it.
type eventLog struct {
	*testing.T
	*Service
	now atomic.Int64
}

var asSystem = hub.Principal{Kind: hub.SystemPrincipal}

func newEventLog(t *testing.T) *eventLog {
	t.Helper()
	bus, l := &signal.Bus{}, &eventLog{T: t}
	l.now.Store(int64(hub.MicrosOf(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))))
	st, err := sqlite.Open(t.Context(), sqlite.Config{
		Path: filepath.Join(t.TempDir(), "hub.db"), Now: func() hub.Micros { return hub.Micros(l.now.Load()) },
		Publish: func(ss []hub.Signal) {
			for _, s := range ss {
				bus.Publish(string(s.Topic), s.Key)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	l.Service = New(Config{Store: st, Bus: bus})
	return l
}

// add appends n events of the wave in one transaction.
func (l *eventLog) add(wave hub.WaveID, n int) {
	l.Helper()
	err := l.Store.Update(l.Context(), store.New, func(tx store.Tx) error {
		for range n {
			if _, err := tx.AppendEvent(hub.WaveEvent{Wave: wave, Type: hub.EventWarning}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		l.Fatal(err)
	}
}

// list is the whole log, by its sequences.
func (l *eventLog) list(t Tail) (seqs []int64, err error) {
	t.Once, t.Beat = true, time.Hour
	err = l.Follow(l.Context(), asSystem, t, func(es Events) error {
		for _, e := range es.List {
			seqs = append(seqs, e.Seq)
		}
		return nil
	})
	return seqs, err
}

func TestFollowReadsInBoundedBatches(t *testing.T) {
	l := newEventLog(t)
	l.add("w", 2*eventBatch+1)
	var sizes []int
	err := l.Follow(t.Context(), asSystem, Tail{Once: true, Beat: time.Hour}, func(es Events) error {
		sizes = append(sizes, len(es.List))
		return nil
	})
	if err != nil || !slices.Equal(sizes, []int{eventBatch, eventBatch, 1, 0}) {
		t.Errorf("batches of %v, %v", sizes, err)
	}
}

func TestFollowEndsWithItsReader(t *testing.T) {
	l := newEventLog(t)
	left := errors.New("left")
	if err := l.Follow(t.Context(), asSystem, Tail{Beat: time.Hour}, func(Events) error { return left }); err != left {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := l.Follow(ctx, asSystem, Tail{Beat: time.Hour}, func(Events) error { cancel(); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// A reader whose events are dropped before it comes to them is told so; it is not
// given the rest as if nothing were missing.
func TestFollowMissesNothingSilently(t *testing.T) {
	l := newEventLog(t)
	l.add("w", 2*eventBatch)
	calls := 0
	err := l.Follow(t.Context(), asSystem, Tail{Once: true, Beat: time.Hour}, func(Events) error {
		if calls++; calls == 1 {
			l.now.Add(time.Hour.Microseconds() * 24 * 31)
			if n, err := l.SweepEvents(t.Context()); n != 2*eventBatch-1 || err != nil {
				t.Errorf("%d swept, %v", n, err)
			}
		}
		return nil
	})
	if calls != 1 || !hub.IsCode(err, hub.CodeCursorExpired) {
		t.Errorf("after %d calls: %v", calls, err)
	}
}

// Events are kept 30 days, those of a wave that has not ended for as long as it has
// not; more than one transaction holds are dropped too.
func TestSweepEventsKeepsWhatMayBeWanted(t *testing.T) {
	l := newEventLog(t)
	for id, status := range map[hub.WaveID]hub.WaveStatus{"on": hub.WaveRunning, "new": hub.WavePending, "over": hub.WaveCancelled} {
		err := l.Store.Update(t.Context(), store.New, func(tx store.Tx) error {
			return tx.PutWave(hub.Wave{ID: id, UID: hub.WaveUID("wave_" + id), Run: "r", Status: status})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	l.add("on", 1)
	l.add("new", 1)
	l.add("over", sweptEvents+10)
	l.now.Add((29 * 24 * time.Hour).Microseconds())
	if n, err := l.SweepEvents(t.Context()); n != 0 || err != nil {
		t.Errorf("after 29 days %d are gone, %v", n, err)
	}
	l.add("over", 1)
	l.now.Add((25 * time.Hour).Microseconds())
	if n, err := l.SweepEvents(t.Context()); n != sweptEvents+10 || err != nil {
		t.Errorf("after 30 days %d are gone, %v", n, err)
	}
	if got, err := l.list(Tail{}); err != nil || !slices.Equal(got, []int64{1, 2, sweptEvents + 13}) {
		t.Errorf("kept are %v, %v", got, err)
	}
	zero := int64(0)
	if got, err := l.list(Tail{Filter: store.EventFilter{Wave: "new"}, After: &zero}); err != nil || len(got) != 1 {
		t.Errorf("of a pending wave: %v, %v", got, err)
	}
	if _, err := l.list(Tail{Filter: store.EventFilter{Wave: "over"}, After: &zero}); !hub.IsCode(err, hub.CodeCursorExpired) {
		t.Errorf("of an ended wave: %v", err)
	}
}
