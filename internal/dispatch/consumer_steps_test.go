package dispatch_test

import (
	"strings"

	"pgregory.net/rapid"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/mail"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
)

// bind is what create and use have in common.
func (m *consumerModel) bind(t *rapid.T, b run.Bound, context string) {
	id, r := b.Run.ID, m.of[b.Run.ID]
	if former, ok := m.holds(context); ok && former != id {
		m.of[former].audits++
		m.of[former].released = true
	}
	r.released = false
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
	b, err := m.w.runs.Create(t.Context(), m.w.request(operator(), "run.create", hub.NewRequestID()), in)
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
		r.released = false
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
	p, in := m.drawCaller(t, id), mail.CheckInput{Box: id.Box()}
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
	p, in := m.drawCaller(t, id), dispatch.ReplyInput{Message: r.last, Body: "x"}
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
	id, _ := m.drawRun(t)
	p := m.drawCaller(t, id)
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
