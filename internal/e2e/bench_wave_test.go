//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/openapi/api"
)

// The size of the waves that are compared with Dispatches by hand.
const (
	benchTasks  = 1000
	benchAtOnce = 16
	benchRounds = 5
)

// turnOf is what an attached worker does with a message of its mailbox.
type turnOf func(context.Context, *client.Client, api.Message) error

// crew registers attached workers that do one thing with whatever comes. They end
// with the benchmark.
func crew(b *testing.B, h *Hub, name string, n int, do turnOf) (names []string) {
	b.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	b.Cleanup(func() {
		stop()
		all.Wait()
	})
	e, operator := h.Endpoint(), h.Client("")
	for i := range n {
		out, err := operator.RegisterWorker(b.Context(), name+"-"+itoa(i))
		must(b, err)
		c := h.newClient(client.Config{URL: e.URL, Fingerprint: e.Fingerprint, Token: client.Secret(*out.Worker.Token)})
		_, err = c.Present(b.Context(), api.Presence{})
		must(b, err)
		names = append(names, out.Worker.Name)
		all.Go(func() {
			if err := attend(ctx, c, "worker:"+out.Worker.WorkerId, do); ctx.Err() == nil {
				b.Errorf("a worker ended: %v", err)
			}
		})
	}
	return names
}

// attend does something with each message of a worker's mailbox, and says now and
// then that the worker lives.
func attend(ctx context.Context, c *client.Client, box string, do turnOf) error {
	for ack := ""; ; {
		out, err := c.Check(ctx, box, client.CheckOptions{Ack: ack, Wait: 30 * time.Second})
		if err != nil {
			return err
		}
		if ack = ""; out.DeliveryId != nil {
			ack = *out.DeliveryId
		} else if _, err := c.Present(ctx, api.Presence{}); err != nil {
			return err
		}
		for _, m := range out.Messages {
			if err := do(ctx, c, m); err != nil {
				return err
			}
		}
	}
}

// oblige reports success on whatever the worker is given, at once.
func oblige(ctx context.Context, c *client.Client, m api.Message) error {
	if m.Type != "session_start" {
		return nil
	}
	return end(ctx, c, m, "succeeded")
}

// linger begins whatever the worker is given, and ends it when it is told to.
func linger(ctx context.Context, c *client.Client, m api.Message) error {
	if m.Type != "control" {
		return nil
	}
	return end(ctx, c, m, "cancelled")
}

// end reports the end of the Dispatch that a message is about.
func end(ctx context.Context, c *client.Client, m api.Message, outcome string) error {
	var about struct {
		Task     string `json:"task_id"`
		Dispatch string `json:"dispatch_id"`
	}
	if err := json.Unmarshal(m.Payload, &about); err != nil {
		return err
	}
	return patiently(ctx, func() error {
		_, err := c.Send(ctx, api.MessageSend{
			Type: "worker_done", Subject: outcome, Body: "nothing was to be done", Outcome: outcome, TaskId: about.Task, DispatchId: about.Dispatch,
		})
		return err
	})
}

// cost is the time of the processor that a hub took to make Tasks, and for the rest.
type cost struct{ create, run time.Duration }

func (c cost) all() time.Duration { return c.create + c.run }

// median is that of one part of some costs.
func median(cs []cost, part func(cost) time.Duration) time.Duration {
	var s sample
	for _, c := range cs {
		s.each = append(s.each, part(c))
	}
	return s.percentile(50)
}

// BenchmarkWaveOverhead compares the time of the processor that a hub takes for a
// wave of attached workers with what it takes for the same Tasks and Dispatches by
// the hand of a coordinator: create_ratio is of making the Tasks, run_ratio of all
// that follows, cpu_ratio of both.
func BenchmarkWaveOverhead(b *testing.B) {
	h := StartHub(b, "mac")
	names := crew(b, h, "hand", benchAtOnce, oblige)
	for b.Loop() {
		var hand, wave []cost
		for range benchRounds {
			hand, wave = append(hand, byHand(b, h, names)), append(wave, byWave(b, h, names, benchTasks))
		}
		for name, part := range map[string]func(cost) time.Duration{
			"create": func(c cost) time.Duration { return c.create }, "run": func(c cost) time.Duration { return c.run }, "cpu": cost.all,
		} {
			one, other := median(hand, part), median(wave, part)
			b.ReportMetric(float64(one.Milliseconds()), name+"-hand-ms")
			b.ReportMetric(float64(other.Milliseconds()), name+"-wave-ms")
			b.ReportMetric(float64(other)/float64(one), name+"_ratio")
		}
	}
}

// independent is a wave of tasks for some workers in turn, as many at once as there
// are workers.
func independent(run string, workers []string, n int) api.WaveCreate {
	in := api.WaveCreate{RunId: run, Policy: api.WavePolicyInput{Concurrency: len(workers)}}
	for i := range n {
		in.Tasks = append(in.Tasks, api.WaveEntry{TaskId: "t" + itoa(i), Goal: "do nothing", Worker: workers[i%len(workers)], WriteScope: []string{}})
	}
	return in
}

// byWave has a wave do the Tasks, and waits for its notice.
func byWave(b *testing.B, h *Hub, names []string, n int) (c cost) {
	b.Helper()
	run := h.NewRun("by wave")
	in := independent(run.Run, names, n)
	operator, consumer := h.Client(""), h.Client(run.Token)
	began := cpuTime(b, h.PID())
	made, err := operator.CreateWave(b.Context(), in)
	must(b, err)
	created := cpuTime(b, h.PID())
	_, err = operator.SpawnWave(b.Context(), made.Wave.WaveId, api.WaveSpawn{})
	must(b, err)
	_, err = consumer.Check(b.Context(), run.Box(), client.CheckOptions{Wait: 5 * time.Minute})
	must(b, err)
	c = cost{created - began, cpuTime(b, h.PID()) - created}
	if now, err := operator.Wave(b.Context(), made.Wave.WaveId); err != nil || now.Summary.ByStatus["completed"] != n {
		b.Fatalf("the wave is %+v %v", now, err)
	}
	return c
}

// byHand does the same as a coordinator that makes good use of the hub: its calls
// go over connections that stay, as many at once as there are workers, and each
// batch of reports is acknowledged with the next check.
func byHand(b *testing.B, h *Hub, names []string) cost {
	b.Helper()
	run := h.NewRun("by hand")
	m := manual{b: b, operator: h.Client(""), run: run, live: map[string]string{}}
	began := cpuTime(b, h.PID())
	m.create(benchTasks)
	created := cpuTime(b, h.PID())
	m.dispatch(names)
	m.untilDone(h.Client(run.Token))
	return cost{created - began, cpuTime(b, h.PID()) - created}
}

// manual is a coordinator at work.
type manual struct {
	b        *testing.B
	operator *client.Client
	run      Coordinator
	mu       sync.Mutex
	tasks    []string          // not given away yet; guarded by mu
	live     map[string]string // the worker of each sender that is at work; guarded by mu
}

func (m *manual) create(n int) {
	m.b.Helper()
	measure(m.b, benchAtOnce, n/benchAtOnce, func(int) error { return m.createOne() })
	for range n % benchAtOnce {
		must(m.b, m.createOne())
	}
}

func (m *manual) createOne() error {
	return patiently(m.b.Context(), func() error {
		out, err := m.operator.CreateTask(m.b.Context(), m.run.Run, api.TaskCreate{Spec: "do nothing"})
		if err == nil {
			m.mu.Lock()
			m.tasks = append(m.tasks, out.Task.TaskId)
			m.mu.Unlock()
		}
		return err
	})
}

// dispatch gives one Task to each of the workers, all at once, as long as there are
// Tasks.
func (m *manual) dispatch(workers []string) {
	m.b.Helper()
	n := min(len(workers), len(m.tasks))
	now := m.tasks[:n]
	m.tasks = m.tasks[n:]
	if n == 0 {
		return
	}
	measure(m.b, n, 1, func(i int) error {
		return patiently(m.b.Context(), func() error {
			out, err := m.operator.CreateDispatch(m.b.Context(), now[i], api.DispatchCreate{To: "worker:" + workers[i], NoWait: true, LivenessSecs: 90})
			if err == nil {
				m.mu.Lock()
				m.live["dispatch:"+out.DispatchId] = workers[i]
				m.mu.Unlock()
			}
			return err
		})
	})
}

// untilDone takes reports and gives whoever has reported its next Task, until
// nobody is at work.
func (m *manual) untilDone(consumer *client.Client) {
	m.b.Helper()
	for ack := ""; len(m.live) > 0; {
		out, err := consumer.Check(m.b.Context(), m.run.Box(), client.CheckOptions{Ack: ack, Wait: 30 * time.Second})
		must(m.b, err)
		if out.DeliveryId == nil {
			m.b.Fatalf("%d workers do not report", len(m.live))
		}
		ack = *out.DeliveryId
		var free []string
		for _, r := range out.Messages {
			if w, ok := m.live[r.From]; ok && r.Type == "worker_done" {
				free = append(free, w)
				delete(m.live, r.From)
			}
		}
		m.dispatch(free)
	}
}
