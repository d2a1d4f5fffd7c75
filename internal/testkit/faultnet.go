package testkit

import (
	"context"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Faults are probabilities per frame.
type Faults struct {
	Cut       float64 // the connection ends before the frame
	Truncate  float64 // a prefix of the frame arrives, then the connection ends
	Drop      float64 // the frame is lost, the connection lives
	Duplicate float64 // the frame arrives twice
	Reorder   float64 // the frame overtakes the one before it, if that still waits
	Delay     float64 // the frame, and what is behind it, waits for a few milliseconds
}

// FaultNet makes pairs of frame connections whose faults follow from a seed
// and the order of writes. It is safe for concurrent use.
type FaultNet struct {
	mu     sync.Mutex // guards what follows
	rng    *rand.Rand
	faults Faults
	open   map[*FrameConn]struct{}
	tally  Faults
	muteA  bool
	muteB  bool
	paused chan struct{} // closed by Resume; nil while running
}

// NewFaultNet makes a net; equal seeds draw equal faults.
func NewFaultNet(seed uint64, f Faults) *FaultNet {
	return &FaultNet{rng: rand.New(rand.NewPCG(seed, 0)), faults: f, open: map[*FrameConn]struct{}{}}
}

// Set replaces the faults from the next frame on.
func (n *FaultNet) Set(f Faults) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults = f
}

// Mute loses all that the first, or the second, end of every pair writes: a
// one-way network.
func (n *FaultNet) Mute(first, second bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.muteA, n.muteB = first, second
}

func (n *FaultNet) muted(first bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return first && n.muteA || !first && n.muteB
}

// Pause makes writes wait until Resume.
func (n *FaultNet) Pause() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.paused == nil {
		n.paused = make(chan struct{})
	}
}

// Resume ends a Pause.
func (n *FaultNet) Resume() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.paused != nil {
		close(n.paused)
		n.paused = nil
	}
}

func (n *FaultNet) wait(ctx context.Context) error {
	n.mu.Lock()
	paused := n.paused
	n.mu.Unlock()
	if paused == nil {
		return nil
	}
	select {
	case <-paused:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Tally returns how often each fault has struck, so that a test can show that
// it tested something.
func (n *FaultNet) Tally() Faults {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.tally
}

// CutAll ends every open connection.
func (n *FaultNet) CutAll() {
	for _, c := range n.conns() {
		c.Close()
	}
}

// HalfOpen ends the first, or else the second, end of every open connection and
// tells the other end nothing: what that writes goes nowhere, and nothing comes.
func (n *FaultNet) HalfOpen(first bool) {
	for _, c := range n.conns() {
		if c.first == first {
			c.once.Do(func() { close(c.dead) })
		}
	}
}

func (n *FaultNet) conns() []*FrameConn {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Collect(maps.Keys(n.open))
}

// Pipe returns the two ends of a new connection.
func (n *FaultNet) Pipe() (a, b *FrameConn) {
	ab, ba := newWireHalf(), newWireHalf()
	a = &FrameConn{net: n, in: ba, out: ab, first: true, dead: make(chan struct{})}
	b = &FrameConn{net: n, in: ab, out: ba, dead: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open[a], n.open[b] = struct{}{}, struct{}{}
	return a, b
}

type fate struct {
	cut, drop, dup, reorder bool
	keep                    float64
	delay                   time.Duration
}

// maxDelay bounds a Delay.
const maxDelay = 5 * time.Millisecond

func (n *FaultNet) draw() fate {
	n.mu.Lock()
	defer n.mu.Unlock()
	f := fate{keep: 1}
	strike := func(p float64, count *float64) bool {
		if p == 0 || n.rng.Float64() >= p {
			return false
		}
		*count++
		return true
	}
	f.cut = strike(n.faults.Cut, &n.tally.Cut)
	if strike(n.faults.Truncate, &n.tally.Truncate) {
		f.keep = n.rng.Float64()
	}
	f.drop = strike(n.faults.Drop, &n.tally.Drop)
	f.dup = strike(n.faults.Duplicate, &n.tally.Duplicate)
	f.reorder = strike(n.faults.Reorder, &n.tally.Reorder)
	if strike(n.faults.Delay, &n.tally.Delay) {
		f.delay = time.Duration(n.rng.Int64N(int64(maxDelay)))
	}
	return f
}

// FrameConn is one end of a connection. Reads and writes may overlap.
type FrameConn struct {
	net     *FaultNet
	in, out *wireHalf
	first   bool          // of the pair
	dead    chan struct{} // closed when this end alone has ended
	once    sync.Once
}

// ReadFrame returns the next frame, io.EOF after the end of the connection.
func (c *FrameConn) ReadFrame(ctx context.Context) ([]byte, error) { return c.in.get(ctx, c.dead) }

// WriteFrame queues a copy of the frame, waiting while the peer is slow.
func (c *FrameConn) WriteFrame(ctx context.Context, frame []byte) error {
	if err := c.net.wait(ctx); err != nil {
		return err
	}
	f := c.net.draw()
	f.drop = f.drop || c.net.muted(c.first)
	if err := c.lag(ctx, f.delay); err != nil {
		return err
	}
	frame = append([]byte(nil), frame...)
	switch {
	case f.cut:
		c.Close()
		return io.ErrClosedPipe
	case f.keep < 1:
		err := c.out.put(ctx, c.dead, frame[:int(f.keep*float64(len(frame)))], false)
		c.Close()
		return err
	case f.drop:
		return nil
	}
	if f.dup {
		if err := c.out.put(ctx, c.dead, frame, false); err != nil {
			return err
		}
	}
	return c.out.put(ctx, c.dead, frame, f.reorder)
}

// Close ends both directions; frames that wait can still be read. The other end
// of one that HalfOpen has ended hears nothing.
func (c *FrameConn) Close() error {
	select {
	case <-c.dead:
	default:
		c.in.end()
		c.out.end()
	}
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	delete(c.net.open, c)
	return nil
}

func (c *FrameConn) lag(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

const halfDepth = 64

// wireHalf is one direction: a bounded queue.
type wireHalf struct {
	space, filled chan struct{} // hold one wake-up each
	done          chan struct{}
	once          sync.Once

	mu     sync.Mutex
	frames [][]byte // guarded by mu
}

func newWireHalf() *wireHalf {
	return &wireHalf{space: make(chan struct{}, 1), filled: make(chan struct{}, 1), done: make(chan struct{})}
}

func (h *wireHalf) end() { h.once.Do(func() { close(h.done) }) }

func (h *wireHalf) put(ctx context.Context, dead <-chan struct{}, frame []byte, overtake bool) error {
	for {
		select {
		case <-h.done:
			return io.ErrClosedPipe
		case <-dead:
			return io.ErrClosedPipe
		default:
		}
		if h.tryPut(frame, overtake) {
			return nil
		}
		select {
		case <-h.space:
		case <-h.done:
			return io.ErrClosedPipe
		case <-dead:
			return io.ErrClosedPipe
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (h *wireHalf) tryPut(frame []byte, overtake bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.frames)
	if n >= halfDepth {
		return false
	}
	h.frames = append(h.frames, frame)
	if overtake && n > 0 {
		h.frames[n], h.frames[n-1] = h.frames[n-1], h.frames[n]
	}
	signal(h.filled)
	return true
}

func (h *wireHalf) get(ctx context.Context, dead <-chan struct{}) ([]byte, error) {
	for {
		select {
		case <-dead:
			return nil, io.EOF
		default:
		}
		if f, ok := h.tryGet(); ok {
			return f, nil
		}
		select {
		case <-h.filled:
		case <-dead:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-h.done:
			if f, ok := h.tryGet(); ok {
				return f, nil
			}
			return nil, io.EOF
		}
	}
}

func (h *wireHalf) tryGet() ([]byte, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.frames) == 0 {
		return nil, false
	}
	f := h.frames[0]
	h.frames = h.frames[1:]
	signal(h.space)
	return f, true
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
