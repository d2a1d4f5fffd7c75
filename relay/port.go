package relay

import (
	"context"

	"github.com/wavehub/wavehub/internal/hub"
)

// Source is this hub's own queues for a peer. It is called concurrently.
type Source interface {
	// After returns committed, unacknowledged items for the peer in log order,
	// behind the position, up to maxBytes of payload but at least one if any.
	After(ctx context.Context, peer hub.PeerID, dir hub.Direction, pos int64, maxBytes int) ([]hub.Item, error)
	// Queue returns one queue's items from a sequence on, acknowledged or
	// not, under the same limit; none when the sequence is beyond the last.
	Queue(ctx context.Context, peer hub.PeerID, dir hub.Direction, dispatch hub.DispatchID, fromSeq int64, maxBytes int) ([]hub.Item, error)
	// Acked commits what the receiver says of our queues. A repeated or older
	// ack changes nothing but may carry verdicts; Parked with Seq 0 only parks.
	Acked(ctx context.Context, peer hub.PeerID, dir hub.Direction, acks []hub.Ack) error
	// Feed is how far this hub has come with the peer's log of a direction.
	Feed(ctx context.Context, peer hub.PeerID, dir hub.Direction) (hub.FeedState, error)
	// Between returns acknowledged items behind a position, up to another, under
	// the same limit: for a receiver that has lost what it acknowledged.
	Between(ctx context.Context, peer hub.PeerID, dir hub.Direction, pos, until int64, maxBytes int) ([]hub.Item, error)
	// Log is what this hub says of its log for the peer.
	Log(ctx context.Context, peer hub.PeerID, dir hub.Direction) (hub.LogState, error)
	// Store identifies the store that the queues are in.
	Store() (storeID string, epoch int64)
}

// Importer commits items of a peer, each queue contiguously, in one
// transaction; what it returns is durable. Items may repeat and may leave gaps.
// An item that cannot be imported parks its Dispatch alone. An error means that
// nothing was committed and ends the session.
type Importer interface {
	// Import takes items of a source. feed is the source's store and epoch and
	// the position behind the last item.
	Import(ctx context.Context, peer hub.PeerID, dir hub.Direction, feed hub.FeedState, items []hub.Item) (hub.ImportResult, error)
	// Begin judges, before anything is taken, what a source says of its log: one
	// that ends before what was imported of it has lost something. The acks park
	// what must not be taken from it; the feed is the one to go on from.
	Begin(ctx context.Context, peer hub.PeerID, dir hub.Direction, log hub.LogState) (hub.FeedState, []hub.Ack, error)
	// Skip goes on, with each queue, at the first item that its source still has.
	// Its acks are for this side, but for those that park.
	Skip(ctx context.Context, peer hub.PeerID, dir hub.Direction, feed hub.FeedState, from []hub.Want) ([]hub.Ack, error)
}

// Conn carries frames whole and in order. Reading and writing may overlap;
// Close ends both at once. A cancelled context may close the connection. One
// that has a method Transport() string says what it runs over, one that has a
// method Received() int64 how many bytes have come.
type Conn = interface {
	ReadFrame(ctx context.Context) ([]byte, error)
	WriteFrame(ctx context.Context, frame []byte) error
	Close() error
}

// Links opens an authenticated connection to a peer. Its errors say with a
// method Stage() string how far they came. One that is open has heard the peer.
type Links interface {
	Open(ctx context.Context, peer hub.PeerID) (Conn, error)
}

// Feed wakes a sender. The channel holds at least one wake-up, so that one
// that comes while nobody listens is not lost, and is never closed; the
// function ends the subscription.
type Feed interface {
	Subscribe(peer hub.PeerID) (<-chan struct{}, func())
}
