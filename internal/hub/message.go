package hub

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// MessageType says what a message is for.
type MessageType string

// The types of messages. Notices are written by the home only.
const (
	TypeWorkerDone   MessageType = "worker_done"
	TypeQuestion     MessageType = "question"
	TypeAnswer       MessageType = "answer"
	TypeGuidance     MessageType = "guidance"
	TypeStatus       MessageType = "status"
	TypeEscalation   MessageType = "escalation"
	TypeHandoff      MessageType = "handoff"
	TypeSessionStart MessageType = "session_start"
	TypeControl      MessageType = "control"
	TypeSessionClose MessageType = "session_close"
	TypeNotice       MessageType = "notice"
)

// MessageTypes lists all types, for filters.
var MessageTypes = []MessageType{TypeWorkerDone, TypeQuestion, TypeAnswer, TypeGuidance, TypeStatus, TypeEscalation, TypeHandoff, TypeSessionStart, TypeControl, TypeSessionClose, TypeNotice}

// Valid reports whether t is a type of message.
func (t MessageType) Valid() bool { return slices.Contains(MessageTypes, t) }

// Sendable lists the types that send accepts from a Dispatch or an operator.
var Sendable = []MessageType{TypeWorkerDone, TypeGuidance, TypeStatus, TypeEscalation, TypeHandoff}

// Message is durable mail. Seq is its place in its mailbox, assigned by the
// hub that owns the mailbox, at commit. No check delivers what is Stale, which
// came too late, or History, which was asked to be kept as that.
type Message struct {
	ID        MessageID       `json:"message_id"`
	Seq       int64           `json:"seq"`
	Run       RunID           `json:"run_id"`
	From      string          `json:"from"`
	To        Box             `json:"to"`
	Type      MessageType     `json:"type"`
	Subject   string          `json:"subject"`
	Body      string          `json:"body"`
	Payload   json.RawMessage `json:"payload"`
	Thread    MessageID       `json:"thread_id"`
	ReplyTo   MessageID       `json:"reply_to"`
	Stale     bool            `json:"stale"`
	History   bool            `json:"-"`
	CreatedAt Micros          `json:"created_at"`
}

// Live reports whether a check may deliver m.
func (m Message) Live() bool { return !m.Stale && !m.History }

// Limits of a message, in decoded bytes.
const (
	MaxSubjectBytes = 512
	MaxBodyBytes    = 64 << 10
	MaxPayloadBytes = 64 << 10
	MaxResultBytes  = 64 << 10
	MaxMessageBytes = 224 << 10
	MaxOptions      = 64
)

// Bytes is what m counts against the limits of a batch.
func (m Message) Bytes() int { return len(m.Subject) + len(m.Body) + len(m.Payload) }

// CheckText refuses text that is not valid UTF-8, holds a NUL or is longer
// than max bytes.
func CheckText(field, s string, max int) error {
	switch {
	case len(s) > max:
		e := Errorf(CodeTooLarge, "%s: %d bytes; at most %d are taken", field, len(s), max)
		e.Field = field
		return e
	case !utf8.ValidString(s):
		return Invalid(field, "must be valid UTF-8")
	case slices.Contains([]byte(s), 0):
		return Invalid(field, "must not hold a NUL character")
	}
	return nil
}

// PlainText makes any bytes text that a message may carry.
func PlainText(raw []byte) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(raw), "\uFFFD"), "\x00", "\uFFFD")
}

// Cut is text of at most max bytes, with a mark where something is left out. Its
// last character stays whole.
func Cut(text string, max int) string {
	const mark = " […]"
	if len(text) <= max {
		return text
	}
	end := max - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}

// CheckMessage refuses a complete message over the limits; the hub that accepts
// it and the one that imports it ask the same.
func CheckMessage(m Message) error {
	if err := CheckText("subject", m.Subject, MaxSubjectBytes); err != nil {
		return err
	}
	if err := CheckText("body", m.Body, MaxBodyBytes); err != nil {
		return err
	}
	if m.Bytes() > MaxMessageBytes {
		e := Errorf(CodeTooLarge, "the message has %d bytes with its payload; at most %d are taken", m.Bytes(), MaxMessageBytes)
		e.Field = "payload"
		return e
	}
	return nil
}

// Delivery is the outstanding batch of a mailbox.
type Delivery struct {
	ID         DeliveryID
	Box        Box
	Generation int64
	FirstSeq   int64
	LastSeq    int64
	Count      int
	State      DeliveryState
	At         Micros
}

// DeliveryState is where a Delivery is.
type DeliveryState string

// The states of a Delivery.
const (
	Outstanding  DeliveryState = "outstanding"
	Acknowledged DeliveryState = "acknowledged"
	FencedBatch  DeliveryState = "fenced"
)

// Limits of one batch.
const (
	MaxBatch      = 50
	MaxBatchBytes = 1 << 20
)

// Question is the durable state of a thread that waits for one answer.
type Question struct {
	Message  MessageID
	Run      RunID
	Dispatch DispatchID
	Sum      string // hash of text and options: a pending equal one is joined
	State    QuestionState
	Answer   string
	AnswerID MessageID
}

// QuestionState is where a question is.
type QuestionState string

// The states of a question.
const (
	QuestionPending  QuestionState = "pending"
	QuestionAnswered QuestionState = "answered"
	QuestionClosed   QuestionState = "closed"
)
