package dispatch_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/mail"
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
	id := rapid.SampledFrom(m.runs).Draw(t, "run")
	return id, m.of[id]
}

// drawCaller draws an operator with or without a context, and with or without a
// token of a generation that there is or was.
func (m *consumerModel) drawCaller(t *rapid.T) hub.Principal {
	p := operator()
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
	}
	return ""
}

// bind is what create and use have in common.
func (m *consumerModel) bind(t *rapid.T, b run.Bound, context string) {
	id, r := b.Run.ID, m.of[b.Run.ID]
	if former, ok := m.holds(context); ok && former != id {
		m.of[former].audits++ // released
	}
	r.generation++
	r.audits++
	r.batch, r.size = "", 0
	if context != "" {
		m.bound[context] = hub.ConsumerProof{Run: id, Generation: r.generation}
	}
	if b.Binding == nil || b.Binding.Generation != r.generation || b.Binding.Token != (testTokens{}).Consumer(id, r.generation) {
		t.Fatalf("the binding is %+v, want generation %d", b.Binding, r.generation)
	}
}

func (m *consumerModel) create(t *rapid.T) {
	in := run.CreateInput{
		Objective: "model", Context: rapid.SampledFrom(m.terminals).Draw(t, "context"),
		Bind: rapid.SampledFrom([]string{"", run.BindAuto, run.BindRebind, run.BindNone}).Draw(t, "bind"),
	}
	b, err := m.w.runs.Create(context.Background(), m.w.request(operator(), "run.create", hub.NewRequestID()), in)
	if former, ok := m.holds(in.Context); ok && in.Bind != run.BindRebind && in.Bind != run.BindNone {
		if !hub.IsCode(err, hub.CodeAlreadyBound) || !strings.Contains(err.Error(), string(former)) {
			t.Fatalf("a create in a terminal bound to %s: %v", former, err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	m.runs, m.of[b.Run.ID] = append(m.runs, b.Run.ID), &consumed{audits: 1}
	if in.Bind != run.BindNone {
		m.bind(t, b, in.Context)
	} else if b.Binding != nil {
		t.Fatalf("a Run without a consumer has the binding %+v", b.Binding)
	}
}

// use takes a Run over. Asked again after that, it says the same, and shows the
// token as long as nobody else has taken over.
func (m *consumerModel) use(t *rapid.T) {
	id, r := m.drawRun(t)
	context := rapid.SampledFrom(m.terminals).Draw(t, "context")
	req := m.w.request(operator(), "run.use", hub.NewRequestID())
	b, err := m.w.runs.Use(t.Context(), req, id, context)
	if err != nil {
		t.Fatal(err)
	}
	m.bind(t, b, context)
	if rapid.Bool().Draw(t, "taken over again") {
		m.w.use(id)
		r.generation++
		r.audits++
	}
	again, err := m.w.runs.Use(t.Context(), req, id, context)
	shown := again.Binding != nil && again.Binding.Token != ""
	if err != nil || !again.Mutation.Replayed || again.Run != b.Run || shown != (r.generation == b.Run.Generation) {
		t.Fatalf("%+v, replayed %+v %v", b, again, err)
	}
}

func (m *consumerModel) send(t *rapid.T) {
	id, r := m.drawRun(t)
	sent, err := m.w.send(operator(), dispatch.SendInput{To: id.Box(), Type: hub.TypeStatus, Body: "x"})
	if err != nil {
		t.Fatal(err)
	}
	r.waiting, r.last = r.waiting+1, sent.Message
}

func (m *consumerModel) check(t *rapid.T) {
	id, r := m.drawRun(t)
	p, in := m.drawCaller(t), mail.CheckInput{Box: id.Box()}
	if rapid.Bool().Draw(t, "ack") {
		in.Ack = r.batch
	}
	got, err := m.w.check(p, in)
	if code := m.refusal(p, id); code != "" {
		if !hub.IsCode(err, code) {
			t.Fatalf("a check by %+v: %v, want %s", p, err, code)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if in.Ack != "" {
		r.waiting, r.batch = r.waiting-r.size, ""
	}
	if r.batch == "" {
		r.batch, r.size = got.Delivery, min(r.waiting, hub.MaxBatch)
	}
	if got.Delivery != r.batch || int64(len(got.Messages)) != r.size || got.Run != id {
		t.Fatalf("%d messages in %q of %s, want %d in %q", len(got.Messages), got.Delivery, got.Run, r.size, r.batch)
	}
}

// reply is refused like a check; the consumer learns that nobody asked.
func (m *consumerModel) reply(t *rapid.T) {
	id, r := m.drawRun(t)
	if r.last == "" {
		t.Skip("nothing was sent")
	}
	p, in := m.drawCaller(t), dispatch.ReplyInput{Message: r.last, Body: "x"}
	_, err := m.w.dispatch.Reply(t.Context(), m.w.request(p, "message.reply", in), in)
	want := m.refusal(p, id)
	if want == "" {
		want = hub.CodeInvalidArgument
	}
	if !hub.IsCode(err, want) {
		t.Fatalf("a reply by %+v: %v, want %s", p, err, want)
	}
}

func (m *consumerModel) current(t *rapid.T) {
	p := m.drawCaller(t)
	proof, code := m.proof(p)
	if code == "" && proof.Run == "" {
		code = hub.CodeRunRequired
	}
	var got run.Detail
	err := m.w.store.View(t.Context(), func(rx store.Rx) (err error) {
		got, err = run.Current(rx, p)
		return err
	})
	switch {
	case code != "" && !hub.IsCode(err, code):
		t.Fatalf("current for %+v: %v, want %s", p, err, code)
	case code == "" && (err != nil || got.Run.ID != proof.Run || got.Fenced != (m.of[proof.Run].generation != proof.Generation)):
		t.Fatalf("current for %+v: %+v %v", p, got, err)
	}
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
