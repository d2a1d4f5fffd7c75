package store

import "github.com/wavehub/wavehub/internal/hub"

// Mailbox is the state of one mailbox. Seq counts every message from 1;
// Live counts those that a check may deliver, Done those already consumed.
type Mailbox struct {
	Box      hub.Box
	Seq      int64 // last assigned
	Live     int64
	Done     int64
	AckedSeq int64 // everything up to it is consumed
	// Outstanding is the Delivery that waits for its ack, "" for none.
	Outstanding hub.DeliveryID
	// HandedSeq is the last sequence that any Delivery ever held: what is behind
	// it no consumer has seen.
	HandedSeq int64
}

// HistoryFilter selects messages of a mailbox, oldest first.
type HistoryFilter struct {
	After int64 // sequence to start behind
	Limit int
	Types []hub.MessageType
	// Unread leaves out what is acknowledged and what is history only.
	Unread bool
}

// MailReader reads mailboxes.
type MailReader interface {
	Mailbox(hub.Box) (Mailbox, error)
	Message(hub.MessageID) (hub.Message, error)
	HasMessage(hub.MessageID) (bool, error)
	// Deliverable is FIFO: the first messages after a sequence that a check
	// may deliver, at most limit and maxBytes, but at least one.
	Deliverable(box hub.Box, after int64, limit, maxBytes int) ([]hub.Message, error)
	// Between are the deliverable messages of a Delivery.
	Between(box hub.Box, first, last int64) ([]hub.Message, error)
	// Wakes reports whether a deliverable message of one of the types exists
	// after the sequence; no types means any.
	Wakes(box hub.Box, after int64, types []hub.MessageType) (bool, error)
	// History is one page, bounded by its limit and by 8 MiB; next is the After
	// of the page behind it, 0 at the end.
	History(hub.Box, HistoryFilter) (ms []hub.Message, next int64, err error)
	Delivery(hub.DeliveryID) (hub.Delivery, bool, error)
	// VerdictOf is the home's verdict on a report kept here, none if unknown.
	VerdictOf(hub.MessageID) (v hub.Verdict, reason string, err error)
	// StaleKept is how much stale history the home keeps of a Dispatch.
	StaleKept(hub.DispatchID) (items, bytes int, err error)
}

// Mail keeps mailboxes, messages and Deliveries.
type Mail interface {
	MailReader
	PutMailbox(Mailbox) error
	SaveMailbox(Mailbox) error
	// Append assigns the next sequence of m.To and stores m; a stale message
	// is history: it is never deliverable. It signals the mailbox.
	Append(m hub.Message) (seq int64, err error)
	// AppendTo is Append to another mailbox than m.To names: the mail of an
	// attached worker's Dispatch lies in the worker's.
	AppendTo(box hub.Box, m hub.Message) (seq int64, err error)
	// Withdraw makes a message that no Delivery has held history: it is never
	// deliverable any more.
	Withdraw(box hub.Box, id hub.MessageID) error
	// Record keeps a message that is in no mailbox here: a report queued for
	// its home.
	Record(m hub.Message) error
	// Post gives a recorded message of this hub its place in its mailbox, with
	// the sender, the payload and the kind of history that m has.
	Post(m hub.Message) (seq int64, err error)
	SetVerdict(id hub.MessageID, v hub.Verdict, reason string) error
	PutDelivery(hub.Delivery) error
	SaveDelivery(hub.Delivery) error
}

// QuestionFilter selects questions; empty fields select all.
type QuestionFilter struct {
	Run   hub.RunID
	State hub.QuestionState
}

// QuestionReader reads question threads.
type QuestionReader interface {
	Question(hub.MessageID) (hub.Question, error)
	// QuestionList is newest first.
	QuestionList(QuestionFilter, Page) (qs []hub.Question, next int64, err error)
	// PendingQuestions of a Dispatch; home as in AttachmentReader.
	PendingQuestions(hub.DispatchID) ([]hub.Question, error)
}

// Questions keeps question threads: at home the truth, at the owner a copy
// that wakes the asker.
type Questions interface {
	QuestionReader
	PutQuestion(hub.Question) error
	SaveQuestion(hub.Question) error
}
