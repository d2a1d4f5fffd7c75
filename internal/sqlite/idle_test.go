package sqlite

import (
	"context"
	"fmt"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// idleStore has a log in which so many Dispatches have said something that was
// acknowledged, and three have something that was not; as a receiver it has a
// cursor of each.
func idleStore(tb testing.TB, idle int) *Store {
	tb.Helper()
	s := openTest(tb, Config{}, builtin)
	for from := 0; from < idle+3; from += 1000 {
		err := s.Update(context.Background(), store.New, func(tx store.Tx) error {
			for i := from; i < min(from+1000, idle+3); i++ {
				if err := quietOne(tx, i, i < idle); err != nil {
					return err
				}
			}
			return tx.SetFeed("p", hub.ToHome, hub.FeedState{StoreID: "s", Epoch: 1, Position: int64(idle)})
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	return s
}

func quietOne(tx store.Tx, i int, acked bool) error {
	k := store.QueueKey{Peer: "p", Dispatch: hub.DispatchID(fmt.Sprintf("dispatch_%06d", i)), Direction: hub.ToWorker}
	if _, err := tx.Enqueue(k, hub.Item{Kind: hub.ItemMessage, Payload: []byte("{}")}); err != nil || !acked {
		return err
	}
	if err := tx.AckQueue(k, 1); err != nil {
		return err
	}
	return tx.SaveCursor(store.CursorKey{Lineage: "l", StoreID: "s", Epoch: 1, Dispatch: k.Dispatch}, store.Cursor{Seq: 1, Pos: int64(i + 1)})
}

// greeting asks for all that a session asks for before its first item, and for
// that.
func greeting(rx store.Rx) (rows int, err error) {
	feed, err1 := rx.Feed("p", hub.ToHome)
	log, err2 := rx.Log("p", hub.ToWorker)
	items, err3 := rx.ItemsAfter("p", hub.ToWorker, 0, 1<<20)
	n, _, err4 := rx.Backlog("p", hub.ToWorker)
	if n != len(items) || log.Items == 0 || feed.Position == 0 {
		return 0, fmt.Errorf("%d wait, %d were read; %+v %+v", n, len(items), log, feed)
	}
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			return 0, err
		}
	}
	return len(items), nil
}

// TestAcceptance_F16_IdleDispatchesCostNothing: with 10 000 idle Dispatches on a
// link, the beginning of a session reads the three that have something to say, and
// every statement of it is a search (TestPlans) that allocates as much as with ten.
func TestAcceptance_F16_IdleDispatchesCostNothing(t *testing.T) {
	few, many := idleStore(t, 10), idleStore(t, 10_000)
	cost := func(s *Store) float64 {
		return testing.AllocsPerRun(20, func() {
			err := s.View(context.Background(), func(rx store.Rx) error {
				rows, err := greeting(rx)
				if rows != 3 {
					t.Errorf("%d items are read", rows)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
	if a, b := cost(few), cost(many); b > a*1.1+5 {
		t.Errorf("a session begins with %v allocations at 10 idle Dispatches, %v at 10 000", a, b)
	}
}

// BenchmarkGreeting compares the beginning of a session at 10 000 idle Dispatches
// with that at ten: "×" is the quotient of the medians.
func BenchmarkGreeting(b *testing.B) {
	few, many := idleStore(b, 10), idleStore(b, 10_000)
	ask := func(rx store.Rx) error { _, err := greeting(rx); return err }
	for b.Loop() {
		a, z := medianView(b, few, ask), medianView(b, many, ask)
		b.ReportMetric(float64(a.Nanoseconds())/1000, "idle10-us")
		b.ReportMetric(float64(z.Nanoseconds())/1000, "idle10000-us")
		b.ReportMetric(float64(z)/float64(a), "×")
	}
}
