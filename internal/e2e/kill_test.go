//go:build unix

package e2e

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/openapi/api"
)

// witness is a file, outside the hubs' databases, of the ids of the messages
// that a sender was told are accepted, in that order.
type witness struct{ file *os.File }

func newWitness(t testing.TB, dir, name string) witness {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, name))
	must(t, err)
	t.Cleanup(func() { f.Close() })
	return witness{f}
}

func (w witness) note(message string) error {
	_, err := w.file.WriteString(message + "\n")
	return err
}

func (w witness) read(t testing.TB) []string {
	t.Helper()
	f, err := os.Open(w.file.Name())
	must(t, err)
	defer f.Close()
	var out []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		out = append(out, lines.Text())
	}
	return out
}

// torture is two hubs that are killed at random while workers of both send.
type torture struct {
	Pairing
	run      Coordinator
	workers  []Worker
	files    []witness
	accepted atomic.Int64
	over     chan struct{} // closed after the last kill
}

func newTorture(t testing.TB, each int) *torture {
	t.Helper()
	x := &torture{Pairing: NewPair(t), over: make(chan struct{})}
	x.run = x.Home.NewRun("torture")
	dir := t.TempDir()
	for range each {
		x.workers = append(x.workers, x.run.heldWorker(t, x.Home), x.run.heldWorker(t, x.Worker, x.Place()...))
	}
	for i := range x.workers {
		x.files = append(x.files, newWitness(t, dir, itoa(i)))
	}
	return x
}

// send sends until the kills are over, then reports.
func (x *torture) send(ctx context.Context, i int, c *client.Client) error {
	w := x.workers[i]
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for n := 0; !closed(x.over); n++ {
		<-ticker.C
		if err := x.one(ctx, i, c, api.MessageSend{Type: "status", Subject: w.DispatchId, Body: fmt.Sprintf("%s/%d", w.DispatchId, n)}); err != nil {
			return err
		}
	}
	return x.one(ctx, i, c, api.MessageSend{Type: "worker_done", Subject: "end", Body: "end", TaskId: w.TaskId, DispatchId: w.DispatchId, Outcome: "succeeded"})
}

func (x *torture) one(ctx context.Context, i int, c *client.Client, in api.MessageSend) error {
	return insist(ctx, func(key client.Option) error {
		out, err := c.Send(ctx, in, key)
		if err != nil {
			return err
		}
		x.accepted.Add(1)
		return x.files[i].note(out.Message.MessageId)
	})
}

// kill kills one of the hubs after a random number of accepted messages.
func (x *torture) kill(ctx context.Context, rng *rand.Rand, n int) error {
	defer close(x.over)
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for range n {
		until := x.accepted.Load() + 1 + rng.Int64N(40)
		for patience := time.After(5 * time.Second); x.accepted.Load() < until; {
			select {
			case <-ticker.C:
				continue
			case <-patience: // all senders have sent what they may
			case <-ctx.Done():
				return ctx.Err()
			}
			break
		}
		victim := []*Hub{x.Home, x.Worker}[rng.IntN(2)]
		victim.Kill()
		if err := victim.start(); err != nil {
			return fmt.Errorf("%s does not start again: %w\n%s", victim.Name, err, victim.log)
		}
	}
	return nil
}

func TestKillHub(t *testing.T) {
	t.Parallel()
	kills := scaled(t, 3, 10, 100)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed: %d", seed)
	x := newTorture(t, 2)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(60+10*kills)*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := x.kill(ctx, rand.New(rand.NewPCG(seed, 9)), kills); err != nil {
			t.Error(err)
		}
	})
	for i, w := range x.workers {
		c := w.Client()
		wg.Go(func() {
			if err := x.send(ctx, i, c); err != nil {
				t.Error(err)
			}
		})
	}
	consumer := x.Home.Client(x.run.Token)
	drained := begin(t, func() ([]api.Message, error) { return collect(ctx, consumer, x.run.Box(), len(x.workers)) })
	wg.Wait()
	got := drained.get(t, 2*time.Minute)
	must(t, got.err)
	x.judge(t, kills, got.value)
}

// judge compares what was drained with the witnesses and prints one table.
func (x *torture) judge(t *testing.T, kills int, all []api.Message) {
	t.Helper()
	var lost, doubled, reordered, accepted int
	came := map[string][]string{}
	seen := map[string]bool{}
	for _, m := range all {
		if seen[m.MessageId] {
			doubled++
			continue
		}
		seen[m.MessageId] = true
		came[m.From] = append(came[m.From], m.MessageId)
	}
	for i, w := range x.workers {
		want, got := x.files[i].read(t), came["dispatch:"+w.DispatchId]
		accepted += len(want)
		position := map[string]int{}
		for at, m := range got {
			position[m] = at
		}
		last := -1
		for _, m := range want {
			at, ok := position[m]
			switch {
			case !ok:
				lost++
			case at < last:
				reordered++
			}
			last = max(last, at)
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d accepted, %d came", w.DispatchId, len(want), len(got))
		}
		if s := x.run.State(w.TaskId); s != "completed" {
			t.Errorf("the Task of %s is %s", w.DispatchId, s)
		}
	}
	t.Log(strings.Join([]string{
		"", fmt.Sprintf("kills      %6d", kills), fmt.Sprintf("accepted   %6d", accepted), fmt.Sprintf("delivered  %6d", len(all)),
		fmt.Sprintf("lost       %6d", lost), fmt.Sprintf("duplicated %6d", doubled), fmt.Sprintf("reordered  %6d", reordered),
	}, "\n"))
	if lost+doubled+reordered != 0 {
		t.Error("mail was lost, duplicated or reordered")
	}
}
