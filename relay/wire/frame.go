package wire

import (
	"errors"
	"fmt"

	"github.com/wavehub/wavehub/internal/hub"
)

// Version is the version of the frame format.
const Version = 1

// Limits of one frame. A count beyond its limit is ErrMalformed.
const (
	MaxFrame    = 1<<20 - 8 // bytes: 1 MiB with its number
	MaxItems    = 4096
	MaxAcks     = 4096
	MaxVerdicts = 4096 // of all acks of a frame
	MaxWants    = 4096
	MaxText     = 4096 // bytes of one text
	MaxFeatures = 64
	MaxWorkers  = 4096 // per Presence
)

// Errors of Encode and Decode.
var (
	ErrVersion   = errors.New("wire: unknown frame version")
	ErrKind      = errors.New("wire: unknown frame kind")
	ErrTooLarge  = errors.New("wire: frame exceeds 1 MiB")
	ErrMalformed = errors.New("wire: malformed frame")
	// ErrDigest is an ErrMalformed: the bytes are not those that Encode wrote.
	ErrDigest = fmt.Errorf("%w: its digest does not match", ErrMalformed)
)

// Kind is the second byte of a frame.
type Kind byte

// The kinds of frames.
const (
	KindHello Kind = iota + 1
	KindItems
	KindAcks
	KindWants
	KindCredit
	KindPing
	KindPong
	KindGoodbye
	KindPresence
)

// KindKept has a number of its own, apart from the sequence above.
const KindKept Kind = 32

// Frame is one of the types of this package that Kind names.
type Frame interface {
	Kind() Kind
	put(*writer)
}

// Hello is the first frame of each side.
type Hello struct {
	StoreID  string
	Epoch    int64
	Nonce    string // of the process
	Contract string
	Feed     hub.FeedState // how far the sender has come with the receiver's log
	Next     []hub.Want    // where a Dispatch's next sequence is not what Feed implies
	Credit   int64         // bytes of items the sender of the hello takes
	Features []string      // what it can do beyond the contract; both must, to use one
	// Of the sender's own log: the positions at which its epoch began, of its
	// newest item, and up to which items for the receiver may be gone; and how
	// many items the receiver has acknowledged in this epoch.
	Begin, End, Swept, Acked int64
}

// Items carries committed items, of any Dispatches, in the order sent.
type Items struct{ Items []hub.Item }

// Acks carries cumulative acknowledgements after their commit.
type Acks struct{ Acks []hub.Ack }

// Wants asks for queues again.
type Wants struct{ Wants []hub.Want }

// Kept answers wants for items that are gone: Seq is the first that is kept.
type Kept struct{ From []hub.Want }

// Credit grants Bytes more of items, counted by ItemSize.
type Credit struct{ Bytes int64 }

// Ping says that its sender lives and when it pings next. PresenceSeq vouches
// that what the Presence frames up to this one said is so still, and that there
// are no more; 0 vouches for nothing.
type Ping struct{ IntervalMS, PresenceSeq int64 }

// Pong answers a Ping.
type Pong struct{ IntervalMS int64 }

// Presence says how workers are, each in its latest state. Seq counts the
// Presence frames of a session from 1. The first of a session replaces all that
// was said before it; each later one, what it names.
type Presence struct {
	Seq     int64
	Workers []hub.Presence
}

// Goodbye is the last frame of a session: an error code and a sentence.
type Goodbye struct{ Code, Text string }

// Kind names the frame's type.
func (Hello) Kind() Kind { return KindHello }

// Kind names the frame's type.
func (Items) Kind() Kind { return KindItems }

// Kind names the frame's type.
func (Acks) Kind() Kind { return KindAcks }

// Kind names the frame's type.
func (Wants) Kind() Kind { return KindWants }

// Kind names the frame's type.
func (Kept) Kind() Kind { return KindKept }

// Kind names the frame's type.
func (Credit) Kind() Kind { return KindCredit }

// Kind names the frame's type.
func (Ping) Kind() Kind { return KindPing }

// Kind names the frame's type.
func (Pong) Kind() Kind { return KindPong }

// Kind names the frame's type.
func (Goodbye) Kind() Kind { return KindGoodbye }

// Kind names the frame's type.
func (Presence) Kind() Kind { return KindPresence }

// Words that are one byte: their places, from 1. They are only ever added to.
var (
	kindWords = []hub.ItemKind{hub.ItemMessage, hub.ItemExit, hub.ItemStopped, hub.ItemAnswer,
		hub.ItemQuestionClosed, hub.ItemFence, hub.ItemWaiting, hub.ItemStarted}
	verdictWords = []hub.Verdict{hub.VerdictNone, hub.VerdictAccepted, hub.VerdictDuplicate, hub.VerdictStale, hub.VerdictRejected}
)

// flagReason says, in the first byte of a verdict, that a reason follows.
const flagReason = 0x80

// The flags of a presence.
const (
	flagLost = 1 << iota
	flagEnded
	flagsEnd
)
