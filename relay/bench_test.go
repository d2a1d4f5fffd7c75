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

// BenchmarkWireBytes is bytes on the wire : payload, for 1 KiB alone and in
// batches of 50, acks and grants included.
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

// BenchmarkDecode compares frames of 50 items with frames of one: "×" is how many
// times as fast an item is.
func BenchmarkDecode(b *testing.B) {
	frame := func(n int) []byte {
		var f wire.Items
		for i := range n {
			f.Items = append(f.Items, numbered(hub.NewDispatchID(), int64(i+1), 1024))
		}
		raw, err := wire.Encode(nil, f)
		if err != nil {
			b.Fatal(err)
		}
		return raw
	}
	perItem := func(raw []byte, n int) float64 {
		began := time.Now()
		for range 2000 / n {
			if _, err := wire.Decode(raw); err != nil {
				b.Fatal(err)
			}
		}
		return float64(time.Since(began).Nanoseconds()) / 2000
	}
	one, fifty := frame(1), frame(50)
	for b.Loop() {
		a, z := perItem(one, 1), perItem(fifty, 50)
		b.ReportMetric(z, "ns/item")
		b.ReportMetric(a/z, "×")
	}
}
