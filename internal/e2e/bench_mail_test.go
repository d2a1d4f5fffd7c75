//go:build unix

package e2e

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/openapi/api"
)

// BenchmarkCheckBatches compares full batches of 50 messages of 1 KiB, each
// acknowledged with the next check, with checks that are limited to one.
func BenchmarkCheckBatches(b *testing.B) {
	h := StartHub(b, "mac")
	for b.Loop() {
		full := drained(b, h, 4000, 50)
		single := drained(b, h, 200, 1)
		b.ReportMetric(full, "batches-msgs/s")
		b.ReportMetric(single, "single-msgs/s")
		b.ReportMetric(full/single, "ratio")
	}
}

// drained fills a mailbox, then empties it by checks of a limit, and returns
// the messages per second of the emptying.
func drained(b *testing.B, h *Hub, n, limit int) float64 {
	b.Helper()
	run := h.NewRun("drain")
	sender := h.Client("")
	measure(b, 4, n/4, func(int) error {
		return patiently(b.Context(), func() error {
			_, err := sender.Send(b.Context(), api.MessageSend{To: run.Box(), Type: "status", Body: kilobyte})
			return err
		})
	})
	consumer := h.Client(run.Token)
	began, got, ack := time.Now(), 0, ""
	for got < n {
		out, err := consumer.Check(b.Context(), run.Box(), client.CheckOptions{Ack: ack, Limit: limit})
		must(b, err)
		if out.DeliveryId == nil {
			b.Fatalf("%d of %d messages came", got, n)
		}
		got, ack = got+out.Count, *out.DeliveryId
	}
	return float64(n) / time.Since(began).Seconds()
}

// patiently repeats what the hub's rate limit refuses.
func patiently(ctx context.Context, op func() error) error {
	for {
		err := op()
		e, ok := errors.AsType[*client.Error](err)
		if !ok || e.Code != client.CodeRateLimited {
			return err
		}
		select {
		case <-time.After(time.Duration(max(e.AfterMS, 10)) * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// BenchmarkThousandWaiters compares the wake of one mailbox among a thousand
// that are waited on with that of a mailbox alone, and weighs a waiter with its
// connection.
func BenchmarkThousandWaiters(b *testing.B) {
	h := StartHub(b, "mac")
	for b.Loop() {
		alone := wakes(b, h, []Coordinator{h.NewRun("alone")}, 50)
		before := residentBytes(b, h.PID())
		runs := make([]Coordinator, 1000)
		for i := range runs {
			runs[i] = h.NewRun("many")
		}
		ctx, stop := context.WithCancel(b.Context())
		var all sync.WaitGroup
		for _, run := range runs[50:] {
			consumer := h.Client(run.Token)
			all.Go(func() { _, _ = consumer.Check(ctx, run.Box(), client.CheckOptions{Wait: 5 * time.Minute}) }) // cut at the end
		}
		many := wakes(b, h, runs[:50], 2)
		after := residentBytes(b, h.PID())
		stop()
		all.Wait()
		b.ReportMetric(float64(alone[len(alone)/2].Microseconds()), "alone-p50-us")
		b.ReportMetric(float64(many[len(many)*99/100].Microseconds()), "many-p99-us")
		b.ReportMetric(float64(many[len(many)*99/100])/float64(alone[len(alone)/2]), "ratio")
		b.ReportMetric(float64(after-before)/1000/1024, "KiB/waiter")
	}
}

// wakes sends to each mailbox in turn while it is waited on, and returns how
// long the waits took from the send's acceptance, sorted.
func wakes(b *testing.B, h *Hub, runs []Coordinator, each int) (took []time.Duration) {
	b.Helper()
	sender := h.Client("")
	acks := make([]string, len(runs))
	for range each {
		for i, run := range runs {
			consumer := h.Client(run.Token)
			waiting := begin(b, func() (*api.CheckResult, error) {
				return consumer.Check(b.Context(), run.Box(), client.CheckOptions{Ack: acks[i], Wait: 30 * time.Second})
			})
			<-time.After(10 * time.Millisecond) // the check is waiting
			must(b, patiently(b.Context(), func() error {
				_, err := sender.Send(b.Context(), api.MessageSend{To: run.Box(), Type: "status", Body: "wake"})
				return err
			}))
			accepted := time.Now()
			got := waiting.get(b, 30*time.Second)
			took = append(took, time.Since(accepted))
			must(b, got.err)
			acks[i] = *got.value.DeliveryId
		}
	}
	slices.Sort(took)
	return took
}
