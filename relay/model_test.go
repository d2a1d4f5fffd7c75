package relay

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/testkit"
	"github.com/wavehub/wavehub/relay/wire"
)

// model is one hub in memory: source, importer and feed, with the rules of the
// design and a check of each that a breach would show.
type model struct {
	store string
	lossy bool // verdicts may be lost

	mu       sync.Mutex
	epoch    int64
	log      []hub.Item
	queues   map[hub.DispatchID][]hub.Item
	acked    map[hub.DispatchID]int64
	parked   map[hub.DispatchID]string
	verdicts map[hub.DispatchID]map[int64]hub.Verdict
	subs     map[chan struct{}]struct{}
	reached  int64 // position up to which the log was read

	begin int64 // where the present epoch's log began
	swept int64 // the newest position that is not kept

	refuse   map[hub.DispatchID]string // import parks these
	took     map[string]hub.MessageID  // cursor key and sequence
	conflict map[string]string         // cursor keys that take nothing more
	lost     map[hub.DispatchID]int64  // sequences passed over, or that the source has lost
	cursors  map[string]int64          // store/epoch/dispatch
	got      map[hub.DispatchID][]hub.Item
	seen     map[hub.MessageID]bool
	feed     hub.FeedState
	imports  int
	repeated int
}

func newModel(store string) *model {
	return &model{
		store: store, epoch: 1,
		queues: map[hub.DispatchID][]hub.Item{}, acked: map[hub.DispatchID]int64{}, parked: map[hub.DispatchID]string{},
		verdicts: map[hub.DispatchID]map[int64]hub.Verdict{}, subs: map[chan struct{}]struct{}{},
		refuse: map[hub.DispatchID]string{}, cursors: map[string]int64{},
		took: map[string]hub.MessageID{}, conflict: map[string]string{}, lost: map[hub.DispatchID]int64{},
		got: map[hub.DispatchID][]hub.Item{}, seen: map[hub.MessageID]bool{},
	}
}

func (m *model) enqueue(d hub.DispatchID, payload string) { m.enqueueAll(d, 1, payload) }

// enqueueAll commits n items together.
func (m *model) enqueueAll(d hub.DispatchID, n int, payload string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for range n {
		m.put(d, payload)
	}
	for c := range m.subs {
		poke(c)
	}
}

func (m *model) put(d hub.DispatchID, payload string) {
	it := hub.Item{Pos: m.end() + 1, Dispatch: d, Seq: m.last(d) + 1,
		ID: hub.NewMessageID(), Kind: hub.ItemMessage, Payload: []byte(payload)}
	m.log = append(m.log, it)
	m.queues[d] = append(m.queues[d], it)
}

func (m *model) After(_ context.Context, _ hub.PeerID, _ hub.Direction, pos int64, maxBytes int) ([]hub.Item, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []hub.Item
	for _, it := range m.log {
		if it.Pos <= pos || it.Seq <= m.acked[it.Dispatch] {
			continue
		}
		if maxBytes -= len(it.Payload); maxBytes < 0 && len(out) > 0 {
			break
		}
		out = append(out, it)
		m.reached = max(m.reached, it.Pos)
	}
	return out, nil
}

func (m *model) Queue(_ context.Context, _ hub.PeerID, _ hub.Direction, d hub.DispatchID, from int64, maxBytes int) ([]hub.Item, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []hub.Item
	for _, it := range m.queues[d] {
		if it.Seq < from {
			continue
		}
		if maxBytes -= len(it.Payload); maxBytes < 0 && len(out) > 0 {
			break
		}
		out = append(out, it)
	}
	return out, nil
}

func (m *model) Acked(_ context.Context, _ hub.PeerID, _ hub.Direction, acks []hub.Ack) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range acks {
		if last := m.last(a.Dispatch); a.Seq > last {
			return fmt.Errorf("ack of %d, queue of %d", a.Seq, last)
		}
		m.acked[a.Dispatch] = max(m.acked[a.Dispatch], a.Seq)
		m.parked[a.Dispatch] = a.Parked
		for _, v := range a.Verdicts {
			if m.verdicts[a.Dispatch] == nil {
				m.verdicts[a.Dispatch] = map[int64]hub.Verdict{}
			}
			m.verdicts[a.Dispatch][v.Seq] = v.Verdict
		}
	}
	return nil
}

func (m *model) Feed(context.Context, hub.PeerID, hub.Direction) (hub.FeedState, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.feed, nil
}

func (m *model) Store() (string, int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.store, m.epoch
}

func (m *model) Subscribe(hub.PeerID) (<-chan struct{}, func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := make(chan struct{}, 1)
	m.subs[c] = struct{}{}
	return c, func() { m.mu.Lock(); defer m.mu.Unlock(); delete(m.subs, c) }
}

// Import takes the next contiguous sequence only, refuses that one and not what
// follows it in a later import, dedupes by sequence and id,
// and gives each item the verdict accepted.
func (m *model) Import(_ context.Context, _ hub.PeerID, _ hub.Direction, feed hub.FeedState, items []hub.Item) (hub.ImportResult, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.imports++
	var res hub.ImportResult
	touched := map[hub.DispatchID][]hub.ItemVerdict{}
	parked := map[hub.DispatchID]string{} // in this import: the real one forgets too
	wants := map[hub.DispatchID]bool{}
	taken := int64(0)
	key := func(d hub.DispatchID) string { return fmt.Sprint(feed.StoreID, feed.Epoch, d) }
	for _, it := range items {
		next := m.cursors[key(it.Dispatch)] + 1
		place := fmt.Sprint(key(it.Dispatch), "#", it.Seq)
		if it.Seq < next && m.took[place] != it.ID {
			m.conflict[key(it.Dispatch)] = hub.ParkedConflict
		}
		switch {
		case m.conflict[key(it.Dispatch)] != "":
			parked[it.Dispatch] = hub.ParkedConflict
			touched[it.Dispatch] = nil
			continue
		case parked[it.Dispatch] != "":
			continue
		case it.Seq == next && m.refuse[it.Dispatch] != "":
			parked[it.Dispatch] = m.refuse[it.Dispatch]
			touched[it.Dispatch] = nil
			continue
		case it.Seq > next:
			wants[it.Dispatch] = true
			touched[it.Dispatch] = nil
			continue
		case it.Seq == next:
			m.cursors[key(it.Dispatch)], m.took[place] = next, it.ID
			taken++
			if !m.seen[it.ID] {
				m.seen[it.ID] = true
				m.got[it.Dispatch] = append(m.got[it.Dispatch], it)
			}
		default:
			m.repeated++
		}
		touched[it.Dispatch] = append(touched[it.Dispatch], hub.ItemVerdict{Seq: it.Seq, Verdict: "accepted"})
	}
	for d, vs := range touched {
		if m.conflict[key(d)] != "" {
			res.Acks = append(res.Acks, hub.Ack{Dispatch: d, Parked: parked[d]})
			continue
		}
		res.Acks = append(res.Acks, hub.Ack{Dispatch: d, Seq: m.cursors[key(d)], Verdicts: vs, Parked: parked[d]})
	}
	for d := range wants {
		if m.conflict[key(d)] != "" {
			continue
		}
		res.Wants = append(res.Wants, hub.Want{Dispatch: d, Seq: m.cursors[key(d)] + 1})
	}
	m.advance(feed, taken)
	res.Feed = feed.Position
	return res, nil
}

func (m *model) advance(feed hub.FeedState, taken int64) {
	feed.Items = taken
	if m.feed.StoreID == feed.StoreID && m.feed.Epoch == feed.Epoch {
		feed.Position, feed.Items = max(feed.Position, m.feed.Position), taken+m.feed.Items
	}
	m.feed = feed
}

func (m *model) end() int64 {
	if len(m.log) == 0 {
		return 0
	}
	return m.log[len(m.log)-1].Pos
}

func (m *model) last(d hub.DispatchID) int64 {
	if q := m.queues[d]; len(q) > 0 {
		return q[len(q)-1].Seq
	}
	return 0
}

// sweep drops acknowledged items up to a sequence.
func (m *model) sweep(d hub.DispatchID, seq int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	keep := func(its []hub.Item) (out []hub.Item) {
		for _, it := range its {
			if it.Dispatch == d && it.Seq <= min(seq, m.acked[d]) {
				m.swept = max(m.swept, it.Pos)
				continue
			}
			out = append(out, it)
		}
		return out
	}
	m.queues[d], m.log = keep(m.queues[d]), keep(m.log)
}

func (m *model) Between(_ context.Context, _ hub.PeerID, _ hub.Direction, pos, until int64, maxBytes int) ([]hub.Item, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []hub.Item
	for _, it := range m.log {
		if it.Pos <= pos || it.Pos > until || it.Seq > m.acked[it.Dispatch] {
			continue
		}
		if maxBytes -= len(it.Payload); maxBytes < 0 && len(out) > 0 {
			break
		}
		out = append(out, it)
	}
	return out, nil
}

func (m *model) Log(context.Context, hub.PeerID, hub.Direction) (hub.LogState, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := hub.LogState{StoreID: m.store, Epoch: m.epoch, Begin: m.begin, End: m.end(), Swept: m.swept, Acked: m.swept}
	for _, it := range m.log {
		if it.Seq <= m.acked[it.Dispatch] {
			l.Acked = max(l.Acked, it.Pos)
		}
	}
	for _, n := range m.acked {
		l.Items += n
	}
	return l, nil
}

// Begin parks what a source that is behind would use again; the model knows the
// positions of what it has by its items.
func (m *model) Begin(_ context.Context, _ hub.PeerID, _ hub.Direction, log hub.LogState) (hub.FeedState, []hub.Ack, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var acks []hub.Ack
	same := m.feed.StoreID == log.StoreID && m.feed.Epoch == log.Epoch
	switch {
	case same && log.End < m.feed.Position:
		for d, its := range m.got {
			if its[len(its)-1].Pos > log.End {
				m.conflict[fmt.Sprint(log.StoreID, log.Epoch, d)] = hub.ParkedConflict
				m.lost[d] = its[len(its)-1].Seq
				acks = append(acks, hub.Ack{Dispatch: d, Parked: hub.ParkedConflict})
			}
		}
		m.feed.Position = log.End
	case m.feed.StoreID == log.StoreID && log.Epoch > m.feed.Epoch:
		for d, its := range m.got {
			if its[len(its)-1].Pos > log.Begin {
				m.lost[d] = its[len(its)-1].Seq
			}
		}
		m.feed = hub.FeedState{StoreID: log.StoreID, Epoch: log.Epoch, Items: log.Items}
	case !same || log.Items > m.feed.Items || log.Swept > m.feed.Position:
		m.feed = hub.FeedState{StoreID: log.StoreID, Epoch: log.Epoch, Items: log.Items}
	}
	return m.feed, acks, nil
}

func (m *model) Skip(_ context.Context, _ hub.PeerID, _ hub.Direction, feed hub.FeedState, from []hub.Want) (acks []hub.Ack, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range from {
		key := fmt.Sprint(feed.StoreID, feed.Epoch, w.Dispatch)
		if n := w.Seq - 1 - m.cursors[key]; n > 0 {
			m.lost[w.Dispatch] += n
			m.cursors[key] += n
			m.advance(hub.FeedState{StoreID: feed.StoreID, Epoch: feed.Epoch}, n)
		}
		acks = append(acks, hub.Ack{Dispatch: w.Dispatch, Seq: m.cursors[key]})
	}
	return acks, nil
}

// settled reports whether everything that is not parked is acknowledged.
func (m *model) settled() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for d, q := range m.queues {
		if len(q) > 0 && m.acked[d] < m.last(d) && m.parked[d] == "" {
			return false
		}
	}
	return true
}

// sameAs fails unless to has imported exactly what from has queued.
func (from *model) sameAs(t *testing.T, to *model) {
	t.Helper()
	from.mu.Lock()
	defer from.mu.Unlock()
	to.mu.Lock()
	defer to.mu.Unlock()
	for d, q := range from.queues {
		if len(to.got[d]) != len(q) {
			t.Errorf("%s: %d of %d items arrived", d, len(to.got[d]), len(q))
			continue
		}
		for i, it := range q {
			if g := to.got[d][i]; g.ID != it.ID || !bytes.Equal(g.Payload, it.Payload) {
				t.Errorf("%s: place %d holds another item", d, i)
			}
			if !from.lossy && from.verdicts[d][it.Seq] != "accepted" {
				t.Errorf("%s: no verdict on item %d", d, it.Seq)
			}
		}
	}
}

func (m *model) config(nonce string) Config {
	return Config{Source: m, Importer: m, Feed: m, Nonce: nonce}
}

// pair is a home and a worker hub joined by a fault network.
type pair struct {
	t            testing.TB
	net          *testkit.FaultNet
	home, worker *model
	desk         *Desk
	puller       *Home
	wg           sync.WaitGroup
	ctx          context.Context // of the test's bubble, ends with stop
	stop         context.CancelFunc

	mu    sync.Mutex
	opens int
	down  error
	over  string           // the transport that connections name; "" for none
	tap   func(wire.Frame) // sees what the home reads; set before start
	wire  *atomic.Int64    // counts the bytes of both ways; set before start
}

// counted counts the bytes that one end reads and writes.
type counted struct {
	Conn
	n *atomic.Int64
}

func (c counted) ReadFrame(ctx context.Context) ([]byte, error) {
	raw, err := c.Conn.ReadFrame(ctx)
	c.n.Add(int64(len(raw)))
	return raw, err
}

func (c counted) WriteFrame(ctx context.Context, raw []byte) error {
	c.n.Add(int64(len(raw)))
	return c.Conn.WriteFrame(ctx, raw)
}

// tapped shows the frames that are read from a connection.
type tapped struct {
	Conn
	see func(wire.Frame)
}

func (c tapped) ReadFrame(ctx context.Context) ([]byte, error) {
	raw, err := c.Conn.ReadFrame(ctx)
	if err != nil {
		return raw, err
	}
	if f, bad := wire.Decode(raw[numberSize:]); bad == nil {
		c.see(f)
	}
	return raw, err
}

const thePeer = hub.PeerID("peer_of_the_test")

func newPair(t testing.TB, net *testkit.FaultNet) *pair {
	p := &pair{t: t, net: net, home: newModel("store-home"), worker: newModel("store-worker")}
	p.ctx, p.stop = context.WithCancel(t.Context())
	hs, err := NewSession(p.home.config("nonce-home"))
	if err != nil {
		t.Fatal(err)
	}
	ws, err := NewSession(p.worker.config("nonce-worker"))
	if err != nil {
		t.Fatal(err)
	}
	if p.desk, err = NewDesk(ws); err != nil {
		t.Fatal(err)
	}
	if p.puller, err = NewHome(HomeConfig{Session: hs, Links: p}); err != nil {
		t.Fatal(err)
	}
	return p
}

// serveBy has another desk answer from now on.
func (p *pair) serveBy(d *Desk) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.desk = d
}

// nonceOf is the process of the peer whose session is up.
func (d *Desk) nonceOf(peer hub.PeerID) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	for v := range d.live[peer] {
		if v.up {
			return v.nonce
		}
	}
	return ""
}

func (p *pair) Open(context.Context, hub.PeerID) (Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opens++
	if p.down != nil {
		return nil, p.down
	}
	a, b := p.net.Pipe()
	desk := p.desk
	p.wg.Go(func() { _ = desk.Serve(p.ctx, carrier{b, p.over}, thePeer) })
	if p.tap != nil {
		return tapped{a, p.tap}, nil
	}
	if p.wire != nil {
		return counted{a, p.wire}, nil
	}
	return carrier{a, p.over}, nil
}

func (p *pair) start() {
	p.wg.Go(func() { _ = p.puller.Run(p.ctx) })
	p.puller.Add(thePeer)
}

func (p *pair) close() { p.stop(); p.wg.Wait() }

// eventually waits in simulated time.
func eventually(t *testing.T, within time.Duration, what string, ok func() bool) {
	t.Helper()
	tick, end := time.NewTicker(20*time.Millisecond), time.NewTimer(within)
	defer tick.Stop()
	defer end.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-end.C:
			t.Fatalf("not within %v: %s", within, what)
		}
	}
}
