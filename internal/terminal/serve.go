package terminal

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

const (
	sendLimit  = 5 * time.Second // for a client that does not read
	maxClients = 64
	maxTail    = 8 << 20 // bytes of one tail answer
)

// server tells clients of one process. Connections end when the client
// detaches or the process has ended; the process does not end with them.
type server struct {
	listener net.Listener
	hello    Hello
	outputs  string
	ender    *ender
	live     *live          // nil for pipes
	group    sync.WaitGroup // accept loop, connections, kills
	busy     sync.WaitGroup // inputs that are being written
	total    atomic.Int64   // bytes of output ever written
	watches  atomic.Int64   // how many there are

	mu      sync.Mutex // guards the rest
	clients map[*peer]bool
	watched map[*peer]int64 // what they wait for: more output than this
	over    bool
}

// peer is a client; sends are whole frames.
type peer struct {
	net.Conn
	mu sync.Mutex
}

func newServer(l net.Listener, inc hub.Incarnation, outputs string, e *ender) *server {
	hello := Hello{Version: ProtocolVersion, PID: inc.PID, Nonce: inc.Nonce, BootID: inc.BootID, StartedAt: inc.StartedAt}
	return &server{listener: l, hello: hello, outputs: outputs, ender: e, clients: map[*peer]bool{}, watched: map[*peer]int64{}}
}

// start serves until finish.
func (s *server) start(ctx context.Context) {
	s.group.Go(func() { s.accept(ctx) })
}

// finish closes the endpoint, tells every client and waits for all goroutines.
// Clients that come too late find the exit record. With failed set there is no
// record, and they are told that.
func (s *server) finish(record Exit, failed error) {
	s.mu.Lock()
	s.over = true
	_ = s.listener.Close() // it is over either way
	clients := s.clients
	s.clients, s.watched = nil, nil
	s.mu.Unlock()
	s.busy.Wait() // they are answered before the end is told
	event := Event{Op: evExited, Exit: &record}
	if failed != nil {
		event = Event{Op: evError, Error: failed.Error()}
	}
	for c := range clients {
		s.group.Go(func() { _ = c.control(event); _ = c.Close() }) // a client that left is not told
	}
	s.group.Wait()
}

func (s *server) accept(ctx context.Context) {
	for {
		conn, err := s.listener.Accept()
		if s.isOver() {
			if err == nil {
				_ = conn.Close()
			}
			return
		}
		if err != nil {
			time.Sleep(50 * time.Millisecond) // a want of descriptors passes
			continue
		}
		c := &peer{Conn: conn}
		s.group.Go(func() { s.serve(ctx, c) })
	}
}

func (s *server) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

func (s *server) serve(ctx context.Context, c *peer) {
	defer c.Close()
	if c.control(s.hello) != nil || !s.join(c) {
		return
	}
	defer s.leave(c)
	for {
		var cmd Command
		if err := readControl(c, &cmd); err != nil || cmd.Op == opDetach {
			return
		}
		if s.do(ctx, c, cmd) != nil {
			return
		}
	}
}

func (s *server) join(c *peer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over || len(s.clients) >= maxClients {
		return false
	}
	s.clients[c] = true
	return true
}

func (s *server) leave(c *peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, c)
	s.unwatch(c)
}

// do runs a command; an error is one of the connection.
func (s *server) do(ctx context.Context, c *peer, cmd Command) error {
	switch cmd.Op {
	case opKill:
		s.group.Go(func() {
			if err := s.ender.kill(ctx, time.Duration(cmd.GraceMS)*time.Millisecond); err != nil {
				_ = c.control(Event{Op: evError, Error: err.Error()}) // a client that left is not told
			}
		})
		return nil
	case opTail:
		return s.tail(c, cmd.Bytes)
	case opState:
		return s.state(c)
	case opInput:
		return s.input(ctx, c, cmd)
	case opResize:
		return s.resize(c, cmd.Size)
	case opWatch:
		return s.watch(c, cmd.After)
	}
	return c.control(Event{Op: evError, Error: "unknown operation " + cmd.Op})
}

func (s *server) state(c *peer) error {
	tail, err := readTail(s.outputs, 0)
	if err != nil {
		return c.control(Event{Op: evError, Error: err.Error()})
	}
	at, err := lastOutputAt(s.outputs)
	if err != nil {
		return c.control(Event{Op: evError, Error: err.Error()})
	}
	ev := Event{Op: opState, Total: tail.Total, LastOutputAt: at}
	if s.live != nil {
		s.live.describe(&ev)
	}
	return c.control(ev)
}

func (s *server) tail(c *peer, limit int) error {
	tail, err := readTail(s.outputs, min(limit, maxTail))
	if err != nil {
		return c.control(Event{Op: evError, Error: err.Error()})
	}
	offset := tail.Total - int64(len(tail.Data))
	for data := tail.Data; len(data) > 0; {
		n := min(len(data), outputChunk)
		if err := c.frame(kindOutput, binary.BigEndian.AppendUint64(nil, uint64(offset)), data[:n]); err != nil {
			return err
		}
		data, offset = data[n:], offset+int64(n)
	}
	return c.control(Event{Op: opTail, Total: tail.Total})
}

func (c *peer) control(v any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.SetWriteDeadline(time.Now().Add(sendLimit)); err != nil {
		return err
	}
	return writeControl(c.Conn, v)
}

func (c *peer) frame(kind byte, payload ...[]byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.SetWriteDeadline(time.Now().Add(sendLimit)); err != nil {
		return err
	}
	return writeFrame(c.Conn, kind, payload...)
}
