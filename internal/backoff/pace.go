package backoff

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// Pace spaces the attempts of one loop. Each wait is between half and all of a
// time that doubles from one bound to the other. The loop's goroutine calls
// Rest; the other methods are safe for concurrent use and do not block.
type Pace struct {
	least, most time.Duration
	kick        chan struct{} // holds one

	mu      sync.Mutex
	wait    time.Duration // guarded by mu
	contact time.Time     // from when on a contact counts; guarded by mu
}

// New makes a Pace; most is at least least, which is above 0.
func New(least, most time.Duration) *Pace {
	return &Pace{least: least, most: max(least, most), kick: make(chan struct{}, 1), wait: least}
}

// Rest waits before the next attempt; it ends early with a kick or ctx.
func (p *Pace) Rest(ctx context.Context) {
	p.mu.Lock()
	wait := p.wait
	p.mu.Unlock()
	t := time.NewTimer(wait/2 + rand.N(wait/2+1))
	defer t.Stop()
	select {
	case <-t.C:
		p.set(min(2*wait, p.most))
	case <-p.kick:
		p.set(p.least)
	case <-ctx.Done():
	}
}

func (p *Pace) set(wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wait = wait
}

// Kick ends a Rest, this one or the next, and starts the waits over.
func (p *Pace) Kick() {
	select {
	case p.kick <- struct{}{}:
	default:
	}
}

// Contact is a kick by a sign of life of the other side. It counts once in the
// longest wait, and again after a Reset: where each side's attempt is the
// other's sign of life, two that cannot come together must not keep each other
// busy.
func (p *Pace) Contact() {
	now := time.Now()
	p.mu.Lock()
	counts := !now.Before(p.contact)
	if counts {
		p.contact = now.Add(p.most)
	}
	p.mu.Unlock()
	if counts {
		p.Kick()
	}
}

// Reset is a success: the waits start over, and kicks that have come by now
// have lost their reason.
func (p *Pace) Reset() {
	select {
	case <-p.kick:
	default:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wait, p.contact = p.least, time.Time{}
}
