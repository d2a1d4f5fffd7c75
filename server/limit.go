package server

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/wavehub/wavehub/internal/hub"
)

// Rates of mutations, per second.
const (
	operatorRate = 2000
	workerRate   = 500
	workerBurst  = 1000
)

// maxBuckets bounds the limiter's memory; idleBucket is when a bucket has long
// been full again and can be forgotten.
const (
	maxBuckets = 4096
	idleBucket = 10 * time.Second
)

// limiter holds one token bucket per principal. It is safe for concurrent use.
type limiter struct {
	now     func() time.Time
	mu      sync.Mutex
	buckets map[string]*bucket // guarded by mu
}

type bucket struct {
	*rate.Limiter
	used time.Time
}

func newLimiter(now func() time.Time) *limiter {
	return &limiter{now: now, buckets: map[string]*bucket{}}
}

// take spends one mutation of p, or tells when there is one again.
func (l *limiter) take(p hub.Principal) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	b := l.bucket(p, now)
	b.used = now
	if b.AllowN(now, 1) {
		return nil
	}
	e := hub.Errorf(hub.CodeRateLimited, "at most %g mutations per second are taken from one %s", float64(b.Limit()), p.Kind)
	e.AfterMS = max(1, int64(1000/float64(b.Limit())))
	return e
}

func (l *limiter) bucket(p hub.Principal, now time.Time) *bucket {
	name := p.Name()
	if b, ok := l.buckets[name]; ok {
		return b
	}
	if len(l.buckets) >= maxBuckets {
		l.forget(now)
	}
	b := &bucket{Limiter: rate.NewLimiter(workerRate, workerBurst)}
	if p.Kind == hub.Operator {
		b = &bucket{Limiter: rate.NewLimiter(operatorRate, operatorRate)}
	}
	l.buckets[name] = b
	return b
}

// forget drops what is idle, and at least the bucket that was used longest ago.
func (l *limiter) forget(now time.Time) {
	oldest := ""
	for name, b := range l.buckets {
		if now.Sub(b.used) > idleBucket {
			delete(l.buckets, name)
			continue
		}
		if o, ok := l.buckets[oldest]; !ok || b.used.Before(o.used) {
			oldest = name
		}
	}
	if len(l.buckets) >= maxBuckets {
		delete(l.buckets, oldest)
	}
}
