//go:build unix

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/openapi/api"
)

// peakOf is how long an operation took, and how much anonymous memory the hub held
// at most meanwhile beyond what it held before.
func peakOf(b *testing.B, h *Hub, op func()) (took time.Duration, bytes int64) {
	b.Helper()
	before, pid := residentBytes(b, h.PID()), h.PID()
	ctx, stop := context.WithCancel(b.Context())
	peak := make(chan int64, 1)
	go func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for most := before; ; {
			select {
			case <-tick.C:
				most = max(most, residentBytes(b, pid))
			case <-ctx.Done():
				peak <- most
				return
			}
		}
	}()
	began := time.Now()
	op()
	took = time.Since(began)
	stop()
	return took, <-peak - before
}

// woven is a wave with three dependencies and two paths of its own for each task.
func woven(run string, workers []string, n int) api.WaveCreate {
	in := independent(run, workers, n)
	for i := range in.Tasks {
		t := &in.Tasks[i]
		t.WriteScope = []string{fmt.Sprintf("src/m%d/f%d.go", i%97, i), fmt.Sprintf("docs/m%d/p%d.md", i%97, i)}
		for k := range min(i, 3) {
			t.Dependencies = append(t.Dependencies, "t"+itoa(max(i-1-(i*7+k*131)%200, k)))
		}
	}
	return in
}

// BenchmarkWavePlan plans 10 000 tasks with 30 000 dependencies and 20 000 paths over
// HTTPS: in less than a second and 200 MiB.
func BenchmarkWavePlan(b *testing.B) {
	for b.Loop() {
		h := StartHub(b, "mac")
		workers := crew(b, h, "w", 1, oblige)
		in := woven("", workers, 10_000)
		took, bytes := peakOf(b, h, func() {
			plan, err := h.Client("").PlanWave(b.Context(), api.WavePlanRequest{Tasks: in.Tasks})
			must(b, err)
			if !plan.Valid {
				b.Fatalf("%d findings", len(plan.Findings))
			}
		})
		b.ReportMetric(float64(took.Milliseconds()), "plan-ms")
		b.ReportMetric(float64(bytes>>20), "peak-MiB")
	}
}

// BenchmarkWaveCreate stores a wave of the greatest size, and looks at what that
// costs the hub.
func BenchmarkWaveCreate(b *testing.B) {
	for b.Loop() {
		h := StartHub(b, "mac")
		workers, run := crew(b, h, "w", 1, oblige), h.NewRun("create")
		small := createdIn(b, h, independent(run.Run, workers, 2000))
		took, bytes := peakOf(b, h, func() { createdIn(b, h, independent(run.Run, workers, 20_000)) })
		b.ReportMetric(float64(took.Milliseconds()), "create20000-ms")
		b.ReportMetric(float64(took)/float64(small), "ratio-to-2000")
		b.ReportMetric(float64(bytes>>20), "peak-MiB")
	}
}

func createdIn(b *testing.B, h *Hub, in api.WaveCreate) time.Duration {
	b.Helper()
	began := time.Now()
	_, err := h.Client("").CreateWave(b.Context(), in)
	must(b, err)
	return time.Since(began)
}

// BenchmarkWaveStatus compares the status of a running wave of 10 000 tasks with that
// of one of 1000: both on one hub and looked at in turn, so that whatever else the
// machine does meets both. The target is 12 times at most.
func BenchmarkWaveStatus(b *testing.B) {
	h := StartHub(b, "mac")
	workers, c := crew(b, h, "w", benchAtOnce, linger), h.Client("")
	var ids []string
	for _, n := range []int{1000, 10_000} {
		in := independent(h.NewRun("status").Run, workers, n)
		in.Spawn = true
		made, err := c.CreateWave(b.Context(), in)
		must(b, err)
		ids = append(ids, made.Wave.WaveId)
	}
	for b.Loop() {
		var took [2]sample
		for range 41 {
			for i, id := range ids {
				one := measure(b, 1, 1, func(int) error {
					_, err := c.Wave(b.Context(), id)
					return err
				})
				took[i].each = append(took[i].each, one.each...)
			}
		}
		small, large := took[0].percentile(50), took[1].percentile(50)
		b.ReportMetric(float64(small.Microseconds())/1000, "status1000-ms")
		b.ReportMetric(float64(large.Microseconds())/1000, "status10000-ms")
		b.ReportMetric(float64(large)/float64(small), "status_ratio")
	}
}

// BenchmarkWaveSize compares a wave of 10 000 tasks with one of 1000: from its spawn to the first session_start, and its cancellation while it runs; it
// says how fast its events are read.
func BenchmarkWaveSize(b *testing.B) {
	for b.Loop() {
		small, large := livesOf(b, 1000), livesOf(b, 10_000)
		for name, part := range map[string]func(life) time.Duration{
			"start": func(l life) time.Duration { return l.start }, "cancel": func(l life) time.Duration { return l.cancel },
		} {
			b.ReportMetric(float64(part(large).Microseconds())/1000, name+"10000-ms")
			b.ReportMetric(float64(part(large))/float64(part(small)), name+"_ratio")
		}
		b.ReportMetric(large.events, "events/s")
	}
}

// life is what the stations of a wave's life took.
type life struct {
	start, cancel time.Duration
	events        float64 // per second
}

func livesOf(b *testing.B, n int) (l life) {
	b.Helper()
	h := StartHub(b, "mac")
	begun := make(chan time.Time, n)
	workers := crew(b, h, "w", benchAtOnce, func(ctx context.Context, c *client.Client, m api.Message) error {
		if m.Type == "session_start" {
			begun <- time.Now()
		}
		return linger(ctx, c, m)
	})
	run, c := h.NewRun("life"), h.Client("")
	made, err := c.CreateWave(b.Context(), independent(run.Run, workers, n))
	must(b, err)
	id := made.Wave.WaveId
	spawned := time.Now()
	_, err = c.SpawnWave(b.Context(), id, api.WaveSpawn{})
	must(b, err)
	for i := range benchAtOnce {
		if at := <-begun; i == 0 {
			l.start = at.Sub(spawned)
		}
	}
	asked := time.Now()
	_, err = c.CancelWave(b.Context(), id, api.WaveCancel{Reason: "enough"})
	must(b, err)
	for now, err := c.Wave(b.Context(), id); now == nil || now.Wave.Status != "cancelled"; now, err = c.Wave(b.Context(), id) {
		must(b, err)
	}
	l.cancel = time.Since(asked)
	l.events = eventsPerSecond(b, c, id, n)
	return l
}

// eventsPerSecond reads all events of a wave by one stream.
func eventsPerSecond(b *testing.B, c *client.Client, wave string, least int) float64 {
	b.Helper()
	began, n := time.Now(), 0
	must(b, c.Events(b.Context(), client.EventFilter{Wave: wave}, client.EventOptions{Once: true}, func(client.Event) error {
		n++
		return nil
	}))
	if n < least {
		b.Fatalf("%d events came", n)
	}
	return float64(n) / time.Since(began).Seconds()
}

// BenchmarkWaveGrowth compares the time of the processor that a hub takes for a task
// of a wave of 5000 with that for one of a wave of 1000.
func BenchmarkWaveGrowth(b *testing.B) {
	h := StartHub(b, "mac")
	names := crew(b, h, "w", benchAtOnce, oblige)
	for b.Loop() {
		small := byWave(b, h, names, 1000).all() + byWave(b, h, names, 1000).all()
		large := byWave(b, h, names, 5000).all()
		b.ReportMetric(float64(small.Microseconds())/2000, "task-of-1000-us")
		b.ReportMetric(float64(large.Microseconds())/5000, "task-of-5000-us")
		b.ReportMetric(float64(large)/5000/(float64(small)/2000), "growth_ratio")
	}
}

// BenchmarkIdleWave measures what a running wave costs of which nothing moves: one
// task is at work, 1000 wait for it.
func BenchmarkIdleWave(b *testing.B) {
	h := StartHub(b, "mac")
	begun := make(chan struct{}, 1)
	workers := crew(b, h, "w", 1, func(_ context.Context, _ *client.Client, m api.Message) error {
		if m.Type == "session_start" {
			begun <- struct{}{}
		}
		return nil
	})
	run, window := h.NewRun("idle"), 20*time.Second
	if testing.Short() {
		window = 3 * time.Second
	}
	in := independent(run.Run, workers, benchTasks+1)
	in.Spawn = true
	createdIn(b, h, in)
	<-begun
	for b.Loop() {
		before := cpuTime(b, h.PID())
		ctx, cancel := context.WithTimeout(b.Context(), window)
		<-ctx.Done()
		cancel()
		b.ReportMetric(100*(cpuTime(b, h.PID())-before).Seconds()/window.Seconds(), "%core")
	}
}
