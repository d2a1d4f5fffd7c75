package server

import (
	"fmt"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

func TestRates(t *testing.T) {
	now := time.Unix(1000, 0)
	l := newLimiter(func() time.Time { return now })
	for p, burst := range map[hub.Principal]int{
		{Kind: hub.DispatchCap, ID: "a"}: workerBurst, {Kind: hub.Operator}: operatorRate,
	} {
		for i := range burst {
			if err := l.take(p); err != nil {
				t.Fatalf("%s: mutation %d: %v", p.Name(), i, err)
			}
		}
		if err := l.take(p); !hub.IsCode(err, hub.CodeRateLimited) || err.(*hub.Error).AfterMS < 1 {
			t.Errorf("%s: over the burst: %v", p.Name(), err)
		}
	}
	if err := l.take(hub.Principal{Kind: hub.DispatchCap, ID: "b"}); err != nil {
		t.Errorf("another Dispatch pays for the first: %v", err)
	}
	now = now.Add(time.Second)
	for i := range workerRate {
		if err := l.take(hub.Principal{Kind: hub.DispatchCap, ID: "a"}); err != nil {
			t.Fatalf("a second later, mutation %d: %v", i, err)
		}
	}
}

func TestLimiterIsBounded(t *testing.T) {
	now := time.Unix(1000, 0)
	l := newLimiter(func() time.Time { return now })
	for i := range maxBuckets + 100 {
		now = now.Add(time.Microsecond)
		if err := l.take(hub.Principal{Kind: hub.DispatchCap, ID: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if len(l.buckets) != maxBuckets {
		t.Errorf("%d buckets", len(l.buckets))
	}
	now = now.Add(time.Hour)
	if err := l.take(hub.Principal{Kind: hub.Operator}); err != nil || len(l.buckets) != 1 {
		t.Errorf("idle buckets stay: %d, %v", len(l.buckets), err)
	}
}

func TestRateLimitedAnswers(t *testing.T) {
	w := newWorld(t)
	w.server.limiter.now = func() time.Time { return time.Unix(1000, 0) }
	q := request{method: "POST", path: "/v1/messages", body: `{"type":"status","body":"x"}`, token: w.capability}
	var got response
	for range workerBurst + 200 {
		if got = w.do(q); got.status == 429 {
			break
		}
	}
	if got.code() != "rate_limited" || got.header.Get("Retry-After") != "1" || got.text("retry") != "after_ms" {
		t.Errorf("%d %v %s", got.status, got.header, got.raw)
	}
}
