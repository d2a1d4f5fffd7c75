package sqlite

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// BenchmarkScale compares what a coordinator asks for in a store that has seen
// years of use (50 000 Runs, 100 000 Tasks, 1 000 000 messages) with the same in
// one that holds a page of each. "×" is the quotient of the medians.
func BenchmarkScale(b *testing.B) {
	small, large := filledStore(b, 60, 120, 1200), filledStore(b, 50_000, 100_000, 1_000_000)
	for name, ask := range map[string]func(store.Rx) error{
		"list":      func(rx store.Rx) error { _, _, err := rx.RunList(store.Page{Limit: 50}); return err },
		"show":      func(rx store.Rx) error { _, err := rx.Run("run_5"); return err },
		"current":   func(rx store.Rx) error { _, _, err := rx.Binding("tty:5"); return err },
		"task-list": func(rx store.Rx) error { _, _, err := rx.TaskList("run_5", "", store.Page{Limit: 50}); return err },
		"check":     func(rx store.Rx) error { _, err := rx.Deliverable("run:run_5", 0, 50, 1<<20); return err },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				few, many := medianView(b, small, ask), medianView(b, large, ask)
				b.ReportMetric(float64(few.Nanoseconds())/1000, "empty-us")
				b.ReportMetric(float64(many.Nanoseconds())/1000, "full-us")
				b.ReportMetric(float64(many)/float64(few), "×")
			}
		})
	}
}

func medianView(b *testing.B, s *Store, ask func(store.Rx) error) time.Duration {
	b.Helper()
	took := make([]time.Duration, 301)
	for i := range took {
		began := time.Now()
		if err := s.View(context.Background(), ask); err != nil {
			b.Fatal(err)
		}
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// filledStore spreads Tasks and messages evenly over the Runs.
func filledStore(b *testing.B, runs, tasks, messages int) *Store {
	b.Helper()
	s := openTest(b, Config{}, builtin)
	inChunks(b, s, runs, func(tx store.Tx, i int) error {
		id := hub.RunID(fmt.Sprintf("run_%d", i))
		if err := tx.PutRun(hub.Run{ID: id, Objective: "o", Generation: 1}); err != nil {
			return err
		}
		if err := tx.SetBinding(hub.Binding{Run: id, Generation: 1, Context: fmt.Sprintf("tty:%d", i)}); err != nil {
			return err
		}
		return tx.PutMailbox(store.Mailbox{Box: id.Box()})
	})
	inChunks(b, s, tasks, func(tx store.Tx, i int) error {
		return tx.PutTask(hub.Task{ID: hub.TaskID(fmt.Sprintf("task_%d", i)), Run: hub.RunID(fmt.Sprintf("run_%d", i%runs)), Spec: "spec", State: hub.TaskReady})
	})
	body := strings.Repeat("x", 64)
	inChunks(b, s, messages, func(tx store.Tx, i int) error {
		box := hub.RunID(fmt.Sprintf("run_%d", i%runs)).Box()
		_, err := tx.Append(hub.Message{ID: hub.MessageID(fmt.Sprintf("msg_%d", i)), To: box, Type: hub.TypeStatus, Body: body})
		return err
	})
	return s
}

func inChunks(b *testing.B, s *Store, n int, put func(store.Tx, int) error) {
	b.Helper()
	const chunk = 5000
	for from := 0; from < n; from += chunk {
		err := s.Update(context.Background(), store.New, func(tx store.Tx) error {
			for i := from; i < min(from+chunk, n); i++ {
				if err := put(tx, i); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
