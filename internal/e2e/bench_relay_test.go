//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/signal"
	"github.com/wavehub/wavehub/internal/sqlite"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/testkit"
	"github.com/wavehub/wavehub/relay"
)

// benchHub is one end of a relay with a real store and no HTTP.
type benchHub struct {
	*dispatch.Service
	store *sqlite.Store
	bus   *signal.Bus
	id    string
	peer  hub.PeerID // the other
}

func (h *benchHub) Store() (string, int64) { return h.id, 1 }

func (h *benchHub) Subscribe(p hub.PeerID) (<-chan struct{}, func()) {
	return h.bus.Subscribe(string(hub.TopicRelay), string(p))
}

func newBenchHub(b *testing.B, name string) *benchHub {
	b.Helper()
	h := &benchHub{bus: &signal.Bus{}, peer: hub.NewPeerID()}
	st, err := sqlite.Open(b.Context(), sqlite.Config{Path: filepath.Join(b.TempDir(), name+".db"), Publish: func(ss []hub.Signal) {
		for _, s := range ss {
			h.bus.Publish(string(s.Topic), s.Key)
		}
	}})
	must(b, err)
	b.Cleanup(func() { must(b, st.Close()) })
	h.store, h.Service = st, &dispatch.Service{Store: st}
	h.update(b, func(tx store.Tx) (err error) { h.id, _, err = tx.StoreIdentity(); return err })
	return h
}

func (h *benchHub) update(b *testing.B, fn func(store.Tx) error) {
	b.Helper()
	must(b, h.store.Update(context.Background(), store.New, fn))
}

func (h *benchHub) knows(b *testing.B, other *benchHub, role hub.Role) {
	h.update(b, func(tx store.Tx) error {
		return tx.PutPeer(hub.Peer{ID: h.peer, Name: "other", Lineage: "hub_" + other.id, Fingerprint: "hub_" + other.id,
			Role: role, State: hub.PeerActive, StoreID: other.id, StoreEpoch: 1})
	})
}

// benchLink is a home and an owner joined in memory, with n live Dispatches.
type benchLink struct {
	home, owner *benchHub
	run         hub.RunID
	ids         []hub.DispatchID
	stop        func()
}

func newBenchLink(b *testing.B, n int) *benchLink {
	b.Helper()
	l := &benchLink{home: newBenchHub(b, "home"), owner: newBenchHub(b, "owner"), run: hub.NewRunID()}
	l.home.knows(b, l.owner, hub.RoleWorker)
	l.owner.knows(b, l.home, hub.RoleHome)
	l.home.update(b, func(tx store.Tx) error {
		must(b, tx.PutRun(hub.Run{ID: l.run, Objective: "bench", Generation: 1}))
		return tx.PutMailbox(store.Mailbox{Box: l.run.Box()})
	})
	for from := 0; from < n; from += 200 {
		l.begin(b, min(200, n-from))
	}
	l.connect(b)
	return l
}

func (l *benchLink) begin(b *testing.B, n int) {
	first := len(l.ids)
	for range n {
		l.ids = append(l.ids, hub.NewDispatchID())
	}
	l.home.update(b, func(tx store.Tx) error {
		for _, id := range l.ids[first:] {
			task := hub.NewTaskID()
			must(b, tx.PutTask(hub.Task{ID: task, Run: l.run, Spec: "x", State: hub.TaskReady}))
			_, err := dispatch.Begin(tx, dispatch.Attempt{ID: id, Task: task, Server: hub.Server{PeerID: l.home.peer, Name: "other"},
				Pin: hub.Pin{Lineage: "hub_" + l.owner.id, StoreID: l.owner.id, Epoch: 1}, PeerRequest: []byte("{}")})
			must(b, err)
			_, err = dispatch.EndStart(tx, id, dispatch.Start{Event: hub.EvStarted})
			must(b, err)
		}
		return nil
	})
}

func (l *benchLink) connect(b *testing.B) {
	a, c := testkit.NewFaultNet(1, testkit.Faults{}).Pipe()
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for h, conn := range map[*benchHub]relay.Conn{l.home: a, l.owner: c} {
		s, err := relay.NewSession(relay.Config{Source: h, Importer: h, Feed: h, Nonce: "n"})
		must(b, err)
		role := hub.RoleWorker
		if h == l.home {
			role = hub.RoleHome
		}
		wg.Go(func() { _ = s.Run(ctx, conn, role, h.peer) })
	}
	l.stop = func() { stop(); wg.Wait() }
}

// queue commits messages of the Dispatches in turn, 50 to a transaction.
func (l *benchLink) queue(b *testing.B, n int) {
	for done := 0; done < n; done += 50 {
		l.owner.update(b, func(tx store.Tx) error {
			for i := done; i < min(done+50, n); i++ {
				d, id := l.ids[i%len(l.ids)], hub.NewMessageID()
				raw, err := json.Marshal(hub.Message{ID: id, Type: hub.TypeStatus, Subject: "s", Body: kilobyte})
				if err != nil {
					return err
				}
				k := store.QueueKey{Peer: l.owner.peer, Dispatch: d, Direction: hub.ToHome}
				if _, err := tx.Enqueue(k, hub.Item{ID: id, Kind: hub.ItemMessage, Payload: raw}); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// arrived waits until nothing waits at the owner.
func (l *benchLink) arrived(b *testing.B) {
	b.Helper()
	tick, end := time.NewTicker(500*time.Microsecond), time.NewTimer(time.Minute)
	defer tick.Stop()
	defer end.Stop()
	for {
		items, err := l.owner.After(b.Context(), l.owner.peer, hub.ToHome, 0, 1)
		must(b, err)
		if len(items) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-end.C:
			b.Fatal("the items do not arrive")
		}
	}
}

// rawRows is how many rows per second the same disk takes, 50 to a transaction.
func rawRows(b *testing.B, n int) float64 {
	h := newBenchHub(b, "raw")
	h.update(b, func(tx store.Tx) error { return tx.PutMailbox(store.Mailbox{Box: "run:a"}) })
	began := time.Now()
	for done := 0; done < n; done += 50 {
		h.update(b, func(tx store.Tx) error {
			for range 50 {
				if _, err := tx.Append(hub.Message{ID: hub.NewMessageID(), To: "run:a", Body: kilobyte}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return float64(n) / time.Since(began).Seconds()
}

// BenchmarkRelayThroughput is T3: messages per second that are committed at the
// owner, carried, imported by the home and acknowledged, of 1 to 1000 Dispatches,
// compared with messages appended to one store on the same disk in the same run.
func BenchmarkRelayThroughput(b *testing.B) {
	const n = 5000
	for _, dispatches := range []int{1, 10, 100, 1000} {
		b.Run(fmt.Sprintf("dispatches%d", dispatches), func(b *testing.B) {
			for b.Loop() {
				l := newBenchLink(b, dispatches)
				began := time.Now()
				l.queue(b, n)
				l.arrived(b)
				rate := n / time.Since(began).Seconds()
				l.stop()
				raw := rawRows(b, n)
				b.ReportMetric(rate, "messages/s")
				b.ReportMetric(raw, "rows/s")
				b.ReportMetric(rate/raw, "ratio")
			}
		})
	}
}

// BenchmarkRelayIdle is T6 and F16 in one process: the wake (committed at the owner
// to acknowledged) and the reconnect of a link with 10 000 idle Dispatches, each
// compared with a link that has ten.
func BenchmarkRelayIdle(b *testing.B) {
	few, many := newBenchLink(b, 10), newBenchLink(b, 10_000)
	for _, l := range []*benchLink{few, many} {
		l.queue(b, len(l.ids)) // each has said something, once
		l.arrived(b)
	}
	one := func(l *benchLink, reconnect bool) time.Duration {
		took := make([]time.Duration, 31)
		for i := range took {
			if reconnect {
				l.stop()
			}
			l.queue(b, 1)
			began := time.Now()
			if reconnect {
				l.connect(b)
			}
			l.arrived(b)
			took[i] = time.Since(began)
		}
		return sample{each: took}.percentile(50)
	}
	for b.Loop() {
		for name, reconnect := range map[string]bool{"wake": false, "reconnect": true} {
			a, z := one(few, reconnect), one(many, reconnect)
			b.ReportMetric(float64(a.Microseconds()), name+"10-us")
			b.ReportMetric(float64(z.Microseconds()), name+"10000-us")
			b.ReportMetric(float64(z)/float64(a), name+"-×")
		}
	}
	few.stop()
	many.stop()
}
