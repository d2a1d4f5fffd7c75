package wire

import (
	"errors"

	"github.com/wavehub/wavehub/internal/hub"
)

// Version is the version of the frame format.
const Version = 1

// Limits of one frame. A count beyond its limit is ErrMalformed.
const (
	MaxFrame    = 1<<20 - 8 // bytes: 1 MiB with its number
	MaxItems    = 4096
	MaxAcks     = 4096
	MaxVerdicts = 4096 // per Ack
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
	ErrDigest    = errors.New("wire: item digest does not match its payload")
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

const (
	headerSize = 2
	countSize  = 4
	// itemFixed is all of an item but its texts and payload.
	itemFixed = 8 + 8 + 3*2 + 4 + 32
	// workerFixed is all of a worker's presence but its texts and usage.
	workerFixed = 2*8 + 4*2 + 8
)

// ItemSize is the number of bytes that an item takes in a frame; credit is
// counted in it.
func ItemSize(it hub.Item) int {
	return itemFixed + len(it.Dispatch) + len(it.ID) + len(it.Kind) + len(it.Payload)
}

// PresenceSize is the number of bytes that one worker takes in a frame.
func PresenceSize(p hub.Presence) int {
	return workerFixed + len(p.Dispatch) + len(p.Process) + len(p.WaitingFor) + len(p.Usage)
}

// ItemsRoom is how many bytes of items, by ItemSize, one Items frame holds.
const ItemsRoom = MaxFrame - headerSize - countSize
