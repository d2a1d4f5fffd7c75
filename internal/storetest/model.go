package storetest

import (
	"context"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// mailModel compares a mailbox with a slice under random operations.
func mailModel(f *fixture) {
	rapid.Check(f, func(t *rapid.T) {
		box := hub.NewRunID().Box()
		m := &mailbox{f: f, box: box}
		m.run(t, func(tx store.Tx) error { return tx.PutMailbox(store.Mailbox{Box: box}) })
		t.Repeat(map[string]func(*rapid.T){"append": m.append, "fail": m.fail, "read": m.read, "ack": m.ack, "": m.check})
	})
}

type mailbox struct {
	f     *fixture
	box   hub.Box
	all   []hub.Message
	live  int64
	done  int64
	acked int64
}

func (m *mailbox) run(t *rapid.T, fn func(store.Tx) error) {
	if err := m.f.s.Update(context.Background(), store.New, fn); err != nil {
		t.Fatal(err)
	}
}

func draw(t *rapid.T, box hub.Box) hub.Message {
	return hub.Message{ID: hub.NewMessageID(), To: box, Stale: rapid.Bool().Draw(t, "stale"),
		Type: rapid.SampledFrom(hub.MessageTypes).Draw(t, "type"),
		Body: rapid.StringN(0, 20, -1).Draw(t, "body")}
}

func (m *mailbox) append(t *rapid.T) {
	msg := draw(t, m.box)
	m.run(t, func(tx store.Tx) (err error) { msg.Seq, err = tx.Append(msg); return err })
	if msg.Seq != int64(len(m.all))+1 {
		t.Fatalf("seq %d after %d messages", msg.Seq, len(m.all))
	}
	if !msg.Stale {
		m.live++
	}
	m.all = append(m.all, msg)
}

func (m *mailbox) fail(t *rapid.T) {
	msg := draw(t, m.box)
	err := m.f.s.Update(context.Background(), store.New, func(tx store.Tx) error {
		_, err := tx.Append(msg)
		return first(err, errTest)
	})
	if err != errTest {
		t.Fatal(err)
	}
}

// want is Deliverable by definition.
func (m *mailbox) want(after int64, limit, maxBytes int) (out []hub.Message) {
	sum := 0
	for _, x := range m.all {
		if x.Stale || x.Seq <= after || len(out) == limit {
			continue
		}
		if sum += x.Bytes(); sum > maxBytes && len(out) > 0 {
			return out
		}
		out = append(out, x)
	}
	return out
}

func (m *mailbox) read(t *rapid.T) {
	after := rapid.Int64Range(0, int64(len(m.all))).Draw(t, "after")
	limit, bytes := rapid.IntRange(1, 6).Draw(t, "limit"), rapid.IntRange(0, 100).Draw(t, "bytes")
	types := rapid.SliceOfN(rapid.SampledFrom(hub.MessageTypes), 0, 3).Draw(t, "types")
	wakes := false
	for _, x := range m.want(after, len(m.all), 1<<30) {
		wakes = wakes || len(types) == 0
		for _, ty := range types {
			wakes = wakes || x.Type == ty
		}
	}
	err := m.f.s.View(context.Background(), func(rx store.Rx) error {
		got, err := rx.Deliverable(m.box, after, limit, bytes)
		if d := cmp.Diff(m.want(after, limit, bytes), got); d != "" {
			t.Fatal(d)
		}
		woken, err2 := rx.Wakes(m.box, after, types)
		if woken != wakes {
			t.Fatalf("wakes: %v, want %v", woken, wakes)
		}
		return first(err, err2)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (m *mailbox) ack(t *rapid.T) {
	batch := m.want(m.acked, rapid.IntRange(1, 5).Draw(t, "limit"), 1<<20)
	if len(batch) == 0 {
		t.Skip("nothing to acknowledge")
	}
	m.acked = batch[len(batch)-1].Seq
	m.done += int64(len(batch))
	m.run(t, func(tx store.Tx) error {
		b, err := tx.Mailbox(m.box)
		b.AckedSeq, b.Done = m.acked, m.done
		return first(err, tx.SaveMailbox(b))
	})
}

func (m *mailbox) check(t *rapid.T) {
	err := m.f.s.View(context.Background(), func(rx store.Rx) error {
		got, err := rx.Mailbox(m.box)
		if d := cmp.Diff(store.Mailbox{Box: m.box, Seq: int64(len(m.all)), Live: m.live, Done: m.done, AckedSeq: m.acked}, got); d != "" {
			t.Fatal(d)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
