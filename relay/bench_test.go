package relay

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/testkit"
	"github.com/wavehub/wavehub/relay/wire"
)

var kilobyte = strings.Repeat("x", 1024)

// await polls the wall clock; benchmarks have no simulated time.
func await(b *testing.B, what string, ok func() bool) {
	b.Helper()
	tick, end := time.NewTicker(200*time.Microsecond), time.NewTimer(time.Minute)
	defer tick.Stop()
	defer end.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-end.C:
			b.Fatalf("not within a minute: %s", what)
		}
	}
}

// T8 of the performance targets: wire bytes : payload, in batches.
const (
	wireFloor = 1.08
	wireGoal  = 1.04
)

// BenchmarkWireBytes is T8: bytes on the wire : payload, for 1 KiB alone and in
// batches of 50, acks and grants included. "of-floor" and "of-goal" compare what
// batches have beside their payload with what the targets allow: 1 holds.
func BenchmarkWireBytes(b *testing.B) {
	for _, batch := range []int{1, 50} {
		b.Run(fmt.Sprintf("batch%d", batch), func(b *testing.B) {
			ratio := 0.0
			for b.Loop() {
				p := newPair(b, testkit.NewFaultNet(1, testkit.Faults{}))
				var crossed atomic.Int64
				p.wire = &crossed
				p.start()
				await(b, "the link is up", func() bool { return p.desk.Up(thePeer) })
				d, before := hub.NewDispatchID(), crossed.Load()
				for sent := 0; sent < 500; sent += batch {
					p.worker.enqueueAll(d, batch, kilobyte)
					await(b, "acknowledged", p.worker.settled)
				}
				ratio = float64(crossed.Load()-before) / (500 * 1024)
				p.close()
			}
			b.ReportMetric(ratio, "×payload")
			if batch > 1 {
				b.ReportMetric((ratio-1)/(wireFloor-1), "of-floor")
				b.ReportMetric((ratio-1)/(wireGoal-1), "of-goal")
			}
		})
	}
}

// BenchmarkIdleDispatches is what a session holds of each Dispatch that has said
// one thing in it, when 10 000 have.
func BenchmarkIdleDispatches(b *testing.B) {
	ds := dispatches(10_000)
	for b.Loop() {
		before := heap()
		l := newLedger()
		for i, d := range ds {
			l.mark([]hub.Item{{Dispatch: d, Seq: 1, Pos: int64(i + 1)}})
			l.acked(hub.Ack{Dispatch: d, Seq: 1})
		}
		b.ReportMetric(float64(heap()-before)/float64(len(ds)), "B/dispatch")
		runtime.KeepAlive(l)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// frameOf is an Items frame of n KiB, of ten Dispatches in turn.
func frameOf(n int) (f wire.Items) {
	ds := dispatches(min(n, 10))
	for i := range n {
		it := numbered(ds[i%len(ds)], int64(i+1), 1024)
		it.ID = hub.NewMessageID()
		f.Items = append(f.Items, it)
	}
	return f
}

// BenchmarkDecode compares frames of 50 items with frames of one: "×" is how many
// times as fast an item is.
func BenchmarkDecode(b *testing.B) {
	perItem(b, func(f wire.Items) func() error {
		raw, err := wire.Encode(nil, f)
		if err != nil {
			b.Fatal(err)
		}
		return func() error { _, err := wire.Decode(raw); return err }
	})
}

// BenchmarkEncode is the same of encoding.
func BenchmarkEncode(b *testing.B) {
	perItem(b, func(f wire.Items) func() error {
		return func() error { _, err := wire.Encode(make([]byte, numberSize), f); return err }
	})
}

// perItem reports what an item costs in a frame of 50, in time, allocations and
// bytes allotted.
func perItem(b *testing.B, prepare func(wire.Items) func() error) {
	const items = 2000
	measure := func(n int) (ns, allocs, bytes float64) {
		do := prepare(frameOf(n))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		for range items / n {
			if err := do(); err != nil {
				b.Fatal(err)
			}
		}
		took := time.Since(began)
		runtime.ReadMemStats(&after)
		return float64(took.Nanoseconds()) / items, float64(after.Mallocs-before.Mallocs) / items, float64(after.TotalAlloc-before.TotalAlloc) / items
	}
	for b.Loop() {
		one, _, _ := measure(1)
		ns, allocs, bytes := measure(50)
		b.ReportMetric(ns, "ns/item")
		b.ReportMetric(allocs, "allocs/item")
		b.ReportMetric(bytes, "B/item")
		b.ReportMetric(one/ns, "×")
	}
}
