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
}

// Conn carries frames whole and in order. Reading and writing may overlap;
// Close ends both at once. A cancelled context may close the connection. One
// that has a method Transport() string says what it runs over.
type Conn = interface {
	ReadFrame(ctx context.Context) ([]byte, error)
	WriteFrame(ctx context.Context, frame []byte) error
	Close() error
}

// Links opens an authenticated connection to a peer. Its errors say with a
// method Stage() string how far they came.
type Links interface {
	Open(ctx context.Context, peer hub.PeerID) (Conn, error)
}

// Feed wakes a sender. The channel holds at least one wake-up, so that one
// that comes while nobody listens is not lost, and is never closed; the
// function ends the subscription.
type Feed interface {
	Subscribe(peer hub.PeerID) (<-chan struct{}, func())
}
