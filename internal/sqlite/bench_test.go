package sqlite

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

const benchCallers = 64

// BenchmarkGroupCommit compares 64 callers that share commits with the same
// callers one by one, on this disk and on one whose sync takes 3 ms longer.
// "ratio" is messages per second of groups over those of single commits.
func BenchmarkGroupCommit(b *testing.B) {
	for _, delay := range []time.Duration{0, 3 * time.Millisecond} {
		b.Run(fmt.Sprint("sync+", delay), func(b *testing.B) {
			var grouped, single float64
			for b.Loop() {
				grouped = rate(b, delay, &noLock{}, 300)
				single = rate(b, delay, &sync.Mutex{}, 10)
			}
			b.ReportMetric(grouped, "grouped/s")
			b.ReportMetric(single, "single/s")
			b.ReportMetric(grouped/single, "ratio")
		})
	}
}

type noLock struct{}

func (*noLock) Lock()   {}
func (*noLock) Unlock() {}

// rate is messages of 1 KiB per second; lock makes groups of one.
func rate(b *testing.B, delay time.Duration, lock sync.Locker, each int) float64 {
	slow := func(point string) {
		if point == "before_commit" && delay > 0 {
			<-time.After(delay)
		}
	}
	s := openTest(b, Config{Hook: slow}, builtin)
	body := strings.Repeat("x", 1024)
	if err := s.Update(context.Background(), store.New, func(tx store.Tx) error { return tx.PutMailbox(store.Mailbox{Box: "run:a"}) }); err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	var wg sync.WaitGroup
	for range benchCallers {
		wg.Go(func() {
			for range each {
				lock.Lock()
				err := s.Update(context.Background(), store.New, func(tx store.Tx) error {
					_, err := tx.Append(hub.Message{ID: hub.NewMessageID(), To: "run:a", Body: body})
					return err
				})
				lock.Unlock()
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	return float64(benchCallers*each) / time.Since(began).Seconds()
}
