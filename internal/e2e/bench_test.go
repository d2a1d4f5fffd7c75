//go:build unix

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/sqlite"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/openapi/api"
)

const benchClients = 64

var kilobyte = strings.Repeat("x", 1024)

// sample is the durations of equal operations, and how long all took together.
type sample struct {
	each []time.Duration
	all  time.Duration
}

func (s sample) rate() float64 { return float64(len(s.each)) / s.all.Seconds() }

func (s sample) percentile(p int) time.Duration {
	slices.Sort(s.each)
	return s.each[min(len(s.each)*p/100, len(s.each)-1)]
}

// measure runs op each times in each of the callers.
func measure(b *testing.B, callers, each int, op func(caller int) error) sample {
	b.Helper()
	parts := make([][]time.Duration, callers)
	began := time.Now()
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for range each {
				start := time.Now()
				if err := op(i); err != nil {
					b.Error(err)
					return
				}
				parts[i] = append(parts[i], time.Since(start))
			}
		})
	}
	wg.Wait()
	s := sample{each: slices.Concat(parts...), all: time.Since(began)}
	if len(s.each) == 0 {
		b.Fatal("nothing was measured")
	}
	return s
}

// benchWorkers shares the clients out: the hub limits what one Dispatch and
// one operator may send per second.
const benchWorkers = 16

// BenchmarkDurableSend compares accepted messages per second of 64 clients
// over HTTPS with one commit per message on the same disk in the same run.
func BenchmarkDurableSend(b *testing.B) {
	h := StartHub(b, "mac")
	run := h.NewRun("bench")
	var clients []*client.Client
	for range benchWorkers {
		w := run.heldWorker(b, h)
		for range benchClients / benchWorkers {
			clients = append(clients, w.Client())
		}
	}
	for b.Loop() {
		https := measure(b, benchClients, 100, func(i int) error {
			_, err := clients[i].Send(b.Context(), api.MessageSend{Type: "status", Body: kilobyte})
			return err
		})
		single := storeRate(b, 0, &sync.Mutex{}, 20)
		b.ReportMetric(https.rate(), "https/s")
		b.ReportMetric(single.rate(), "single-commits/s")
		b.ReportMetric(https.rate()/single.rate(), "ratio")
		b.ReportMetric(float64(https.percentile(99).Microseconds()), "p99-us")
	}
}

// BenchmarkGroupCommit compares the store's groups with one commit per message,
// on this disk and on one whose sync takes 3 ms longer.
func BenchmarkGroupCommit(b *testing.B) {
	for _, delay := range []time.Duration{0, 3 * time.Millisecond} {
		b.Run(fmt.Sprintf("sync+%s", delay), func(b *testing.B) {
			for b.Loop() {
				group, single := storeRate(b, delay, noLock{}, 200), storeRate(b, delay, &sync.Mutex{}, 10)
				b.ReportMetric(group.rate(), "grouped/s")
				b.ReportMetric(single.rate(), "single/s")
				b.ReportMetric(group.rate()/single.rate(), "ratio")
				b.ReportMetric(float64(group.percentile(99).Microseconds()), "grouped-p99-us")
				b.ReportMetric(float64(single.percentile(99).Microseconds()), "single-p99-us")
				b.ReportMetric(float64(group.percentile(99))/float64(single.percentile(99)), "p99-ratio")
			}
		})
	}
}

type noLock struct{}

func (noLock) Lock()   {}
func (noLock) Unlock() {}

func storeRate(b *testing.B, delay time.Duration, lock sync.Locker, each int) sample {
	b.Helper()
	slow := func(point string) {
		if point == "before_commit" && delay > 0 {
			<-time.After(delay)
		}
	}
	s, err := sqlite.Open(b.Context(), sqlite.Config{Path: filepath.Join(b.TempDir(), "bench.db"), Hook: slow})
	must(b, err)
	defer s.Close()
	must(b, s.Update(b.Context(), store.New, func(tx store.Tx) error { return tx.PutMailbox(store.Mailbox{Box: "run:a"}) }))
	return measure(b, benchClients, each, func(int) error {
		lock.Lock()
		defer lock.Unlock()
		return s.Update(b.Context(), store.New, func(tx store.Tx) error {
			_, err := tx.Append(hub.Message{ID: hub.NewMessageID(), To: "run:a", Body: kilobyte})
			return err
		})
	})
}

// BenchmarkRemoteWake measures, on idle hubs, from the worker hub's acceptance
// of a message to the return of the coordinator's waiting check, and compares
// it with an append and sync of the same disk.
func BenchmarkRemoteWake(b *testing.B) {
	p := NewPair(b)
	run := p.Home.NewRun("wake")
	w := run.heldWorker(b, p.Worker, p.Place()...)
	sender, consumer := w.Client(), p.Home.Client(run.Token)
	ack := ""
	var wakes []time.Duration
	one := func() {
		waiting := begin(b, func() (*api.CheckResult, error) {
			return consumer.Check(b.Context(), run.Box(), client.CheckOptions{Ack: ack, Wait: 30 * time.Second})
		})
		<-time.After(15 * time.Millisecond) // idle: the check is waiting, and nothing else is under way
		_, err := sender.Send(b.Context(), api.MessageSend{Type: "status", Body: kilobyte})
		accepted := time.Now()
		must(b, err)
		got := waiting.get(b, 30*time.Second)
		wakes = append(wakes, time.Since(accepted))
		must(b, got.err)
		if got.value.DeliveryId == nil {
			b.Fatal("the wait ended without mail")
		}
		ack = *got.value.DeliveryId
	}
	for b.Loop() {
		one()
	}
	for len(wakes) < 50 {
		one()
	}
	wake, disk := sample{each: wakes}, syncs(b, 200)
	b.ReportMetric(float64(wake.percentile(50).Microseconds()), "wake-p50-us")
	b.ReportMetric(float64(wake.percentile(99).Microseconds()), "wake-p99-us")
	b.ReportMetric(float64(disk.percentile(50).Microseconds()), "sync-p50-us")
	b.ReportMetric(float64(wake.percentile(50))/float64(disk.percentile(50)), "ratio")
}

// syncs measures append and sync of 1 KiB.
func syncs(b *testing.B, n int) sample {
	b.Helper()
	f, err := os.Create(filepath.Join(b.TempDir(), "sync"))
	must(b, err)
	defer f.Close()
	return measure(b, 1, n, func(int) error {
		if _, err := f.WriteString(kilobyte); err != nil {
			return err
		}
		return dataSync(f)
	})
}

// BenchmarkIdlePair measures what two linked hubs and a quiet worker use while
// nothing happens.
func BenchmarkIdlePair(b *testing.B) {
	p := NewPair(b)
	run := p.Home.NewRun("idle")
	run.heldWorker(b, p.Worker, p.Place()...)
	window := 20 * time.Second
	if testing.Short() {
		window = 3 * time.Second
	}
	for b.Loop() {
		before := cpuTime(b, p.Home.PID()) + cpuTime(b, p.Worker.PID())
		ctx, cancel := context.WithTimeout(b.Context(), window)
		<-ctx.Done()
		cancel()
		used := cpuTime(b, p.Home.PID()) + cpuTime(b, p.Worker.PID()) - before
		b.ReportMetric(100*used.Seconds()/window.Seconds(), "%core")
	}
}
