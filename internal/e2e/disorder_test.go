//go:build unix

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/id"
	"github.com/wavehub/wavehub/internal/testkit"
	"github.com/wavehub/wavehub/openapi/api"
)

// chaos cuts the proxy's connections at random bytes, n times, and calls after
// behind each cut; done is closed after the last one or with ctx.
func chaos(ctx context.Context, p *testkit.Proxy, rng *rand.Rand, n int, after func()) (done chan struct{}) {
	done = make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(2 * time.Millisecond)
		defer ticker.Stop()
		for range n {
			bytes := 1 + rng.Int64N(24<<10)
			until := p.Carried() + bytes
			p.CutAfter(bytes)
			for p.Carried() < until {
				select {
				case <-ticker.C:
				case <-ctx.Done():
					return
				}
			}
			after()
		}
	}()
	return done
}

// pace is the time between two messages of a sender that floods nobody.
const pace = 4 * time.Millisecond

// sendAll sends numbered status messages as the worker until over is closed,
// at least 50, each under one request id until it is answered, and returns how
// many there were.
func sendAll(ctx context.Context, c *client.Client, who string, over <-chan struct{}) (int, error) {
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for n := 0; ; n++ {
		if n >= 50 && closed(over) {
			return n, nil
		}
		<-ticker.C
		in := api.MessageSend{Type: "status", Subject: who, Body: fmt.Sprintf("%s/%d", who, n)}
		if err := insist(ctx, func(key client.Option) error {
			_, err := c.Send(ctx, in, key)
			return err
		}); err != nil {
			return n, fmt.Errorf("%s: message %d: %w", who, n, err)
		}
	}
}

// insist repeats a mutation under one request id while its answer is lost or
// its hub is away.
func insist(ctx context.Context, call func(key client.Option) error) error {
	key := client.WithRequestID(id.New("req_"))
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := call(key)
		if err == nil || !passing(err) {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func passing(err error) bool {
	for _, code := range []client.Code{client.CodeOutcomeUnknown, client.CodeHubUnreachable, client.CodeHubDraining,
		client.CodeRateLimited, client.CodeRelayQuotaExceeded} {
		if isCode(err, code) {
			return true
		}
	}
	return false
}

// ordered checks that each sender's messages came once and in order, and
// returns how many came of each.
func ordered(t testing.TB, all []api.Message) map[string]int {
	t.Helper()
	next, seen := map[string]int{}, map[string]bool{}
	for _, m := range all {
		if seen[m.MessageId] {
			t.Errorf("duplicated: %s %q", m.MessageId, m.Body)
			continue
		}
		seen[m.MessageId] = true
		if m.Type != "status" {
			continue
		}
		if want := fmt.Sprintf("%s/%d", m.Subject, next[m.Subject]); m.Body != want {
			t.Fatalf("%q came, want %q: lost or reordered", m.Body, want)
		}
		next[m.Subject]++
	}
	return next
}

func TestAcceptance_F03_F04_CutsLoseAndDoubleNothing(t *testing.T) {
	t.Parallel()
	p := Pairing{Home: StartHub(t, "home"), Worker: StartHub(t, "worker"), Root: t.TempDir()}
	proxy := newProxy(t, p.Worker)
	Pair(t, p.Home, p.Worker, p.Root, "https://"+proxy.Addr())
	run := p.Home.NewRun("cuts")
	workers := []Worker{run.heldWorker(t, p.Worker, p.Place()...), run.heldWorker(t, p.Worker, p.Place()...)}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed: %d", seed)
	cuts := scaled(t, 8, 30, 300)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(30+40*cuts)*time.Second)
	defer cancel()
	home := p.Home.Client("")
	over := chaos(ctx, proxy, rand.New(rand.NewPCG(seed, 3)), cuts, func() {
		// A call that names the peer makes its hub dial again at once.
		if _, err := home.Peer(ctx, p.Worker.Name); err != nil {
			t.Error(err)
		}
	})
	var wg sync.WaitGroup
	sent := make([]int, len(workers))
	for i, w := range workers {
		c := w.Client()
		wg.Go(func() {
			var err error
			sent[i], err = sendAll(ctx, c, w.DispatchId, over)
			if err != nil {
				t.Error(err)
			}
		})
	}
	consumer := p.Home.Client(run.Token)
	drained := begin(t, func() ([]api.Message, error) { return collect(ctx, consumer, run.Box(), len(workers)) })
	wg.Wait()
	must(t, ctx.Err())
	for _, w := range workers {
		get[api.SendResult](t, w.Caller(), append(w.report("succeeded", "all sent"), "--wait-verdict", "--timeout", "60s")...)
	}
	got := drained.get(t, 2*time.Minute)
	must(t, got.err)
	came := ordered(t, got.value)
	for i, w := range workers {
		if came[w.DispatchId] != sent[i] {
			t.Errorf("%s sent %d, %d came", w.DispatchId, sent[i], came[w.DispatchId])
		}
	}
	t.Logf("%d cuts, %v messages", cuts, sent)
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// collect consumes until n reports have come and nothing follows, over kills
// and lost answers. Each Delivery counts once, as for a coordinator that
// acknowledges what it has handled.
func collect(ctx context.Context, c *client.Client, box string, n int) ([]api.Message, error) {
	var all []api.Message
	for ack := ""; ; {
		var b *api.CheckResult
		err := insist(ctx, func(key client.Option) (err error) {
			b, err = c.Check(ctx, box, client.CheckOptions{Ack: ack, Wait: 500 * time.Millisecond}, key)
			return err
		})
		switch {
		case err != nil:
			return all, fmt.Errorf("after %d messages: %w", len(all), err)
		case b.DeliveryId == nil && n <= 0:
			return all, nil
		case b.DeliveryId == nil || *b.DeliveryId == ack:
			continue
		}
		ack = *b.DeliveryId
		all = append(all, b.Messages...)
		for _, m := range b.Messages {
			if m.Type == "worker_done" {
				n--
			}
		}
	}
}
