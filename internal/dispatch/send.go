package dispatch

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/mail"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
)

// Service is the Dispatches' use-cases that need no effect.
type Service struct {
	Store store.Store
	// Tokens are needed by the use-cases of identities only.
	Tokens Tokens
	// LinkUp reports whether items of a direction flow to the peer: only then does
	// a backlog slow what is accepted. nil is never. It must not block.
	LinkUp func(peer hub.PeerID, dir hub.Direction) bool
}

// SendInput is a message as its sender gives it. From is never among it.
type SendInput struct {
	To      hub.Box         `json:"to"`
	Type    hub.MessageType `json:"type"`
	Subject string          `json:"subject"`
	Body    string          `json:"body"`
	// Payload is free-form JSON; reports and questions make their own.
	Payload   json.RawMessage `json:"payload,omitempty"`
	Thread    hub.MessageID   `json:"thread_id"`
	Options   []string        `json:"options,omitempty"`
	Milestone string          `json:"milestone,omitempty"`
	Report    hub.Report      `json:"report"`
}

// Results of accepting a message.
const (
	SentAccepted = "accepted" // it is in its mailbox
	SentQueued   = "queued"   // it is durable here and on its way to another hub
)

// Sent is the answer to a send. Seq is 0 while the message is on its way.
type Sent struct {
	Run hub.RunID `json:"run_id"`
	// Generation is the consumer's, of a reply; else 0.
	Generation int64         `json:"generation,omitempty"`
	Message    hub.MessageID `json:"message_id"`
	Seq        int64         `json:"seq"`
	State      string        `json:"state"`
	Verdict    hub.Verdict   `json:"verdict"`
	Reason     string        `json:"reason"`
	Thread     hub.MessageID `json:"thread_id"`
	Pending    hub.MessageID `json:"pending_question"`
	Mutation   hub.Mutation  `json:"mutation"`

	via store.QueueKey // the queue that it was put into now, if the backlog counts
}

// Mut returns the mutation, for the receipt gate.
func (s *Sent) Mut() *hub.Mutation { return &s.Mutation }

// Subject is the message.
func (s *Sent) Subject() (hub.RunID, string) { return s.Run, string(s.Message) }

// sentOf is the answer for m while its sequence is not known.
func sentOf(m hub.Message) Sent {
	return Sent{Run: m.Run, Message: m.ID, State: SentAccepted, Thread: m.Thread}
}

// sentBefore is the answer for a message that an equal one was before; here
// says that its mailbox is one of this hub.
func sentBefore(tx store.MailReader, id hub.MessageID, here bool) (Sent, error) {
	m, err := tx.Message(id)
	out := sentOf(m)
	out.Seq = m.Seq
	if !here {
		out.State = SentQueued
	}
	return out, err
}

// Send accepts one message: after it returns, no crash loses it.
func (s *Service) Send(ctx context.Context, r receipt.Request, in SendInput) (Sent, error) {
	in, err := in.checked()
	if err != nil {
		return Sent{}, err
	}
	return receipt.Do(ctx, s.Store, in.class(), r, func(tx store.Tx) (Sent, error) {
		out, err := Accept(tx, r.Principal, in)
		if err == nil {
			err = s.pace(tx, out)
		}
		return out, err
	})
}

// class lets a report be taken also when the disk is too full for new work.
func (in SendInput) class() store.Class {
	if in.Type == hub.TypeWorkerDone {
		return store.Settle
	}
	return store.New
}

// checked is the message as it is kept, with its JSON written plainly.
func (in SendInput) checked() (SendInput, error) {
	for name, raw := range map[string]*json.RawMessage{"payload": &in.Payload, "result": &in.Report.Result, "usage": &in.Report.Usage} {
		short, err := hub.PlainJSON(*raw)
		if err != nil {
			return in, hub.Invalid(name, "is no JSON document")
		}
		*raw = short
	}
	return in, in.check()
}

func (in SendInput) check() error {
	if err := hub.CheckUsage(in.Report.Usage); err != nil {
		return err
	}
	if in.Type != hub.TypeQuestion && !slices.Contains(hub.Sendable, in.Type) {
		return hub.Invalid("type", "%q cannot be sent", in.Type)
	}
	if len(in.Options) > hub.MaxOptions {
		return hub.Invalid("options", "at most %d are taken", hub.MaxOptions)
	}
	for i, o := range in.Options {
		if slices.Contains(in.Options[:i], o) {
			return hub.Invalid("options", "%q is given twice", o)
		}
	}
	if in.Thread != "" && !hub.ValidID(hub.PrefixMessage, string(in.Thread)) {
		return hub.Invalid("thread_id", "%q is no id of a message", in.Thread)
	}
	if len(in.Options) > 0 && in.Type != hub.TypeQuestion {
		return hub.Invalid("options", "only a question has options")
	}
	if len(in.Payload) > hub.MaxPayloadBytes {
		return &hub.Error{Code: hub.CodeTooLarge, Field: "payload", Message: "payload: at most 64 KiB are taken"}
	}
	return hub.CheckMessage(hub.Message{Subject: in.Subject, Body: in.Body})
}

// Accept routes a message by its sender's credential.
func Accept(tx store.Tx, p hub.Principal, in SendInput) (Sent, error) {
	switch p.Kind {
	case hub.DispatchCap, hub.AttachedWorker:
		return acceptFromWorker(tx, p, in)
	case hub.Operator:
		return acceptFromOperator(tx, p, in)
	case hub.Reader, hub.PeerKey, hub.Engine, hub.SystemPrincipal:
	}
	return Sent{}, hub.Errorf(hub.CodeOutOfScope, "a %s sends no messages", p.Kind)
}

func acceptFromOperator(tx store.Tx, p hub.Principal, in SendInput) (Sent, error) {
	if in.Type == hub.TypeWorkerDone || in.Type == hub.TypeQuestion {
		return Sent{}, hub.Errorf(hub.CodeOutOfScope, "only a Dispatch's own worker sends a %s", in.Type)
	}
	payload, err := in.payload()
	if err != nil {
		return Sent{}, err
	}
	from, err := operatorName(tx, p)
	if err != nil {
		return Sent{}, err
	}
	m := hub.Message{
		ID: hub.NewMessageID(), From: from, To: in.To, Type: in.Type, Subject: in.Subject, Body: in.Body,
		Payload: payload, Thread: in.Thread, CreatedAt: tx.Now(),
	}
	if id, ok := in.To.Run(); ok {
		m.Run = id
		if _, err := tx.Run(id); err != nil {
			return Sent{}, err
		}
		if err := run.Operates(tx, p, id); err != nil {
			return Sent{}, err
		}
		out := sentOf(m)
		out.Seq, err = tx.Append(m)
		return out, err
	}
	id, ok := in.To.Dispatch()
	if !ok {
		return Sent{}, hub.Invalid("to", "must be run:<id> or dispatch:<id>")
	}
	d, err := tx.Dispatch(id)
	if err != nil {
		return Sent{}, err
	}
	if err := run.Operates(tx, p, d.Run); err != nil {
		return Sent{}, err
	}
	return sendToWorker(tx, d, m)
}

// operatorName is "run:<id>" for a Run's consumer, else "operator", or the
// Dispatch whose worker coordinates.
func operatorName(tx store.RunReader, p hub.Principal) (string, error) {
	name := string(hub.Operator)
	if p.Kind == hub.DispatchCap {
		name = string(hub.DispatchID(p.ID).Box())
	}
	proof, err := run.Proof(tx, p)
	if err != nil || proof.Run == "" {
		return name, err
	}
	r, err := tx.Run(proof.Run)
	if err != nil || r.Generation != proof.Generation {
		return name, err
	}
	return string(r.ID.Box()), nil
}

func (in SendInput) payload() (json.RawMessage, error) {
	if in.Milestone == "" {
		return in.Payload, nil
	}
	if len(in.Payload) > 0 {
		return nil, hub.Invalid("milestone", "give it or a payload, not both")
	}
	return json.Marshal(map[string]string{"milestone": in.Milestone})
}

// sendToWorker delivers to a Dispatch's mailbox, here or at its owner.
func sendToWorker(tx store.Tx, d hub.Dispatch, m hub.Message) (Sent, error) {
	if !d.State.TakesMail() {
		return Sent{}, inactive(d.ID, "is "+string(d.State)+" and takes no more messages")
	}
	if err := Reachable(tx, d); err != nil {
		return Sent{}, err
	}
	m.Run, m.To = d.Run, d.ID.Box()
	out := sentOf(m)
	qs, err := tx.PendingQuestions(d.ID)
	if err != nil {
		return out, err
	}
	if len(qs) > 0 {
		out.Pending = qs[0].Message
	}
	if d.Local() {
		out.Seq, err = appendLocal(tx, d.ID, m)
		return out, err
	}
	out.State, out.via = SentQueued, toWorker(d)
	if err := enqueueMessage(tx, out.via, m, 0); err != nil {
		return out, err
	}
	return out, tx.Record(m)
}

func acceptFromWorker(tx store.Tx, p hub.Principal, in SendInput) (Sent, error) {
	a, err := senderOf(tx, p, in)
	if err != nil {
		return Sent{}, err
	}
	tx.Signal(hub.Signal{Topic: hub.TopicHeard, Key: a.Speaker()})
	if in.To != "" && a.Child != "" {
		return acceptFromOperator(tx, p, in) // to what it coordinates
	}
	if in.To != "" {
		e := hub.Invalid("to", "a Dispatch's only recipient is its own Run; leave it away")
		return Sent{}, e
	}
	m := hub.Message{
		ID: hub.NewMessageID(), Run: a.Run, From: string(a.Dispatch.Box()), To: a.Run.Box(), Type: in.Type,
		Subject: in.Subject, Body: in.Body, Thread: in.Thread, CreatedAt: tx.Now(),
	}
	switch in.Type {
	case hub.TypeWorkerDone:
		return acceptReport(tx, a, in, m)
	case hub.TypeQuestion:
		return acceptQuestion(tx, a, in, m)
	default:
		if a.Capability.Ended() {
			return Sent{}, inactive(a.Dispatch, "has ended")
		}
		if err := noteUsage(tx, a, in.Report.Usage); err != nil {
			return Sent{}, err
		}
		if m.Payload, err = in.payload(); err != nil {
			return Sent{}, err
		}
		return deliver(tx, a, m, 0)
	}
}

// deliver brings a worker's message that is no report home.
func deliver(tx store.Tx, a hub.Attachment, m hub.Message, reserve int64) (Sent, error) {
	if err := hub.CheckMessage(m); err != nil {
		return Sent{}, err
	}
	out := sentOf(m)
	if a.Home == "" {
		seq, err := takeIn(tx, a.Task, a.Dispatch, m)
		out.Seq = seq
		return out, err
	}
	out.State = SentQueued
	if m.Type != hub.TypeWorkerDone {
		out.via = toHome(a)
	}
	if err := enqueueMessage(tx, toHome(a), m, reserve); err != nil {
		return out, err
	}
	return out, tx.Record(m)
}

func toHome(a hub.Attachment) store.QueueKey {
	return store.QueueKey{Peer: a.Home, Dispatch: a.Dispatch, Direction: hub.ToHome}
}

// acceptReport takes a worker_done, which its home judges.
func acceptReport(tx store.Tx, a hub.Attachment, in SendInput, m hub.Message) (Sent, error) {
	r := in.Report
	r.Task = a.Spec.TaskNamed(r.Task, a.Task)
	if err := r.Check(a.Task, a.Dispatch); err != nil {
		return Sent{}, err
	}
	if strings.TrimSpace(m.Body) == "" {
		e := hub.Errorf(hub.CodeLifecycleInvalid, "body is missing: say what was done, or why not")
		e.Field = "body"
		return Sent{}, e
	}
	r.Evidence = hub.EvidenceReport
	r = r.Claimed()
	return commitReport(tx, a, r, m, tx.Now())
}

// commitReport holds a success that has to be looked into; else it settles at
// home, or queues the report for the home. at is when the worker was last heard
// of.
func commitReport(tx store.Tx, a hub.Attachment, r hub.Report, m hub.Message, at hub.Micros) (Sent, error) {
	r, err := withUsage(&a, r)
	if err != nil {
		return Sent{}, err
	}
	if m.Payload, err = encode(r); err != nil {
		return Sent{}, err
	}
	if err := hub.CheckMessage(m); err != nil {
		return Sent{}, err
	}
	first := a.Capability == hub.CapActive
	reserve, err := admitReport(&a, r.Sum(m.Body), m.Bytes())
	if err != nil {
		return Sent{}, err
	}
	a.LastReportAt = at
	if a.Attached() && a.Fence != nil && r.Outcome == hub.OutcomeCancelled {
		a.Fenced = true // its own word: it does not work on it
		tx.Signal(hub.Signal{Topic: hub.TopicDispatch, Key: string(a.Dispatch)})
	}
	if err := tx.SaveAttachment(a); err != nil {
		return Sent{}, err
	}
	if out, held, err := commitHeld(tx, a, r, m, first); err != nil || held {
		return out, err
	}
	if a.Home != "" {
		return deliver(tx, a, m, reserve)
	}
	d, err := tx.Dispatch(a.Dispatch)
	if err != nil {
		return Sent{}, err
	}
	out := sentOf(m)
	out.Verdict, out.Reason, out.Seq, err = settleReport(tx, d, r, m)
	return out, err
}

// admitReport notes the report on the attachment. That of an active capability
// has the queue's reserved room; one that repeats it costs nothing; any other is
// late, under the quota of history.
func admitReport(a *hub.Attachment, sum string, size int) (reserve int64, err error) {
	switch {
	case a.Capability == hub.CapActive:
		a.Capability, a.ReportSum = hub.CapReported, sum
		return hub.ReservedReportBytes, nil
	case sum == a.ReportSum:
		return 0, nil
	case a.Late == staleItems || a.LateBytes+size > staleBytes:
		e := hub.Errorf(hub.CodeRelayQuotaExceeded, "%s has sent %d reports (%d bytes) after its end and no more are kept", a.Dispatch, a.Late, a.LateBytes)
		e.Hint = "end here: what is reported now changes nothing any more"
		return 0, e
	}
	a.Late++
	a.LateBytes += size
	return 0, nil
}

// acceptQuestion stores a question, or joins the pending one that is equal.
func acceptQuestion(tx store.Tx, a hub.Attachment, in SendInput, m hub.Message) (Sent, error) {
	if a.Capability != hub.CapActive {
		return Sent{}, inactive(a.Dispatch, "has reported or ended; nobody would act on the answer")
	}
	if m.Body == "" {
		return Sent{}, hub.Invalid("body", "the question is missing")
	}
	sum, err := mail.QuestionSum(m.Body, in.Options)
	if err != nil {
		return Sent{}, err
	}
	q, pending, err := mail.Pending(tx, a.Dispatch, sum)
	if err != nil {
		return Sent{}, err
	}
	if pending {
		return sentBefore(tx, q.Message, a.Home == "")
	}
	if m.Payload, err = encode(map[string]any{"options": in.Options, "task_id": a.Task, "dispatch_id": a.Dispatch}); err != nil {
		return Sent{}, err
	}
	m.Thread = m.ID
	q = hub.Question{Message: m.ID, Run: a.Run, Dispatch: a.Dispatch, Sum: sum, State: hub.QuestionPending}
	if err := tx.PutQuestion(q); err != nil {
		return Sent{}, err
	}
	return deliver(tx, a, m, 0)
}
