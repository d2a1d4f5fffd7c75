package dispatch_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
)

// consumerModel is who may consume which Run: page "contract", 3.3.
type consumerModel struct {
	w     *world
	runs  []hub.RunID
	of    map[hub.RunID]*consumed
	bound map[string]hub.ConsumerProof // by context: what it was bound to last
	// terminals are the contexts; "" is a caller that has none.
	terminals []string
}

// consumed is one Run.
type consumed struct {
	generation int64
	released   bool // its terminal was bound to another Run
	audits     int
	waiting    int64 // messages not acknowledged
	last       hub.MessageID
	batch      hub.DeliveryID
	size       int64
}

// newConsumerModel has terminals of its own in a world that many cases share.
func newConsumerModel(w *world) *consumerModel {
	m := &consumerModel{w: w, of: map[hub.RunID]*consumed{}, bound: map[string]hub.ConsumerProof{}, terminals: []string{""}}
	for range 3 {
		m.terminals = append(m.terminals, "tty:"+string(hub.NewMessageID()))
	}
	return m
}

func (m *consumerModel) drawRun(t *rapid.T) (hub.RunID, *consumed) {
	if len(m.runs) == 0 {
		t.Skip("there is no Run")
	}
	recent := m.runs[max(0, len(m.runs)-3):] // so that much happens to each
	id := rapid.SampledFrom(recent).Draw(t, "run")
	return id, m.of[id]
}

// drawCaller draws the Run's consumer, or an operator with or without a context,
// and with or without a token of a generation that there is or was.
func (m *consumerModel) drawCaller(t *rapid.T, id hub.RunID) hub.Principal {
	p := operator()
	if r := m.of[id]; r.generation > 0 && rapid.Bool().Draw(t, "the consumer") {
		p.Consumer = hub.ConsumerProof{Run: id, Generation: r.generation}
		return p
	}
	p.Context = rapid.SampledFrom(m.terminals).Draw(t, "context")
	if rapid.Bool().Draw(t, "token") {
		id, r := m.drawRun(t)
		if r.generation > 0 {
			p.Consumer = hub.ConsumerProof{Run: id, Generation: rapid.Int64Range(1, r.generation).Draw(t, "generation")}
		}
	}
	return p
}

// holds says that the context's binding is the present one of its Run.
func (m *consumerModel) holds(context string) (hub.RunID, bool) {
	b, ok := m.bound[context]
	return b.Run, ok && m.of[b.Run].generation == b.Generation
}

// proof is what the caller proves, invalid_argument if it contradicts itself.
func (m *consumerModel) proof(p hub.Principal) (hub.ConsumerProof, hub.Code) {
	b, ok := m.bound[p.Context]
	switch {
	case !ok:
		return p.Consumer, ""
	case p.Consumer.Run != "" && p.Consumer != b:
		return b, hub.CodeInvalidArgument
	}
	return b, ""
}

// refusal is what the caller gets that wants to consume the Run, "" for nothing.
func (m *consumerModel) refusal(p hub.Principal, id hub.RunID) hub.Code {
	proof, code := m.proof(p)
	switch {
	case code != "":
		return code
	case proof.Run != id:
		return hub.CodeConsumerRequired
	case proof.Generation != m.of[id].generation:
		return hub.CodeConsumerFenced
	case m.of[id].released:
		return hub.CodeConsumerRequired
	}
	return ""
}

// invariants hold after every step: a refused caller has changed nothing.
func (m *consumerModel) invariants(t *rapid.T) {
	for _, id := range m.runs {
		m.compare(t, id, *m.of[id])
	}
}

func (m *consumerModel) compare(t *rapid.T, id hub.RunID, want consumed) {
	var d run.Detail
	var holder hub.Binding
	var held bool
	err := m.w.store.View(t.Context(), func(rx store.Rx) (err error) {
		if d, err = run.Show(rx, id); err != nil {
			return err
		}
		if d.Audit, err = rx.Audits(id, 1000); err != nil {
			return err
		}
		holder, held, err = rx.Holder(id)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	mb := d.Mailbox
	if d.Run.Generation != want.generation || len(d.Audit) != want.audits || mb.Outstanding != want.batch || mb.Live-mb.Done != want.waiting {
		t.Fatalf("%s: generation %d, %d audit rows, %s, %d waiting; want %+v", id, d.Run.Generation, len(d.Audit), mb.Outstanding, mb.Live-mb.Done, want)
	}
	at := slices.IndexFunc(m.terminals, func(c string) bool { return m.bound[c] == hub.ConsumerProof{Run: id, Generation: want.generation} })
	if held != (at >= 0) || held && holder.Context != m.terminals[at] {
		t.Fatalf("%s is held by %+v (%v), want the one at %d of %q", id, holder, held, at, m.terminals)
	}
}

// TestModel_Consumer: whatever terminals and scripts create, take over and
// release, exactly the holder of the present generation consumes and replies;
// everybody else is told why not and changes nothing.
func TestModel_Consumer(t *testing.T) {
	w := newWorld(t)
	rapid.Check(t, func(t *rapid.T) {
		m := newConsumerModel(w)
		t.Repeat(map[string]func(*rapid.T){
			"create": m.create, "use": m.use, "send": m.send, "check": m.check, "reply": m.reply, "current": m.current,
			"": m.invariants,
		})
	})
}
