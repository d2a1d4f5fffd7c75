package testkit

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// Proxy forwards TCP connections on loopback to a target and can cut them.
type Proxy struct {
	target string
	ln     net.Listener
	wg     sync.WaitGroup

	mu      sync.Mutex // guards what follows
	conns   map[net.Conn]struct{}
	refuse  bool
	mute    bool
	budget  int64 // bytes until the next cut; below 0: no limit
	carried int64
}

// NewProxy listens on a free loopback port. Close ends it.
func NewProxy(target string) (*Proxy, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("proxy for %s: %w", target, err)
	}
	p := &Proxy{target: target, ln: ln, conns: map[net.Conn]struct{}{}, budget: -1}
	p.wg.Go(p.serve)
	return p, nil
}

// Addr is where the proxy listens.
func (p *Proxy) Addr() string { return p.ln.Addr().String() }

// Refuse makes new connections end at once, or not.
func (p *Proxy) Refuse(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = on
}

// Mute swallows all bytes from now on, or forwards them again: the connections
// stay open, as over a network that is gone.
func (p *Proxy) Mute(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mute = on
}

// CutAfter cuts all connections once n more bytes have passed, either way.
func (p *Proxy) CutAfter(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.budget = n
}

// Carried is the number of bytes that have passed.
func (p *Proxy) Carried() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.carried
}

// CutAll ends every connection.
func (p *Proxy) CutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutLocked()
}

func (p *Proxy) cutLocked() {
	for c := range p.conns {
		c.Close()
	}
	clear(p.conns)
}

// Close stops listening, cuts everything and waits for its goroutines.
func (p *Proxy) Close() error {
	err := p.ln.Close()
	p.CutAll()
	p.wg.Wait()
	return err
}

func (p *Proxy) serve() {
	for {
		in, err := p.ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		out, err := net.Dial("tcp", p.target)
		if err != nil || !p.admit(in, out) {
			in.Close()
			if out != nil {
				out.Close()
			}
			continue
		}
		p.wg.Go(func() { p.copy(in, out) })
		p.wg.Go(func() { p.copy(out, in) })
	}
}

func (p *Proxy) admit(in, out net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse {
		return false
	}
	p.conns[in], p.conns[out] = struct{}{}, struct{}{}
	return true
}

func (p *Proxy) copy(dst, src net.Conn) {
	defer dst.Close()
	defer src.Close()
	buf := make([]byte, 16<<10)
	for {
		n, err := src.Read(buf)
		if n > 0 && !p.spend(dst, buf[:n]) {
			return
		}
		if err != nil {
			return
		}
	}
}

// spend forwards what the budget allows; false means that a cut is due.
func (p *Proxy) spend(dst io.Writer, b []byte) bool {
	p.mu.Lock()
	if p.mute {
		p.mu.Unlock()
		return true
	}
	cut := p.budget >= 0 && int64(len(b)) >= p.budget
	if cut {
		b = b[:p.budget]
		p.budget = -1
	} else if p.budget >= 0 {
		p.budget -= int64(len(b))
	}
	p.carried += int64(len(b))
	p.mu.Unlock()
	_, err := dst.Write(b)
	if cut {
		p.CutAll()
	}
	return err == nil && !cut
}
