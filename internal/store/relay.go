package store

import "github.com/wavehub/wavehub/internal/hub"

// QueueKey names one relay queue at its source.
type QueueKey struct {
	Peer      hub.PeerID
	Dispatch  hub.DispatchID
	Direction hub.Direction
}

// Queue is the state of a relay queue at its source.
type Queue struct {
	LastSeq      int64
	AckedSeq     int64
	PendingItems int   // not acknowledged
	PendingBytes int64 // not acknowledged
	Parked       string
}

// RelayReader reads relay queues and cursors.
type RelayReader interface {
	// Queue returns the zero Queue for one that has no items.
	Queue(QueueKey) (Queue, error)
	// ItemsAfter returns committed items for a peer and direction in log
	// order, behind a feed position, up to maxBytes but at least one; Pos of
	// the last one is the next position. Acknowledged items are left out.
	ItemsAfter(peer hub.PeerID, dir hub.Direction, pos int64, maxBytes int) ([]hub.Item, error)
	// QueueItems returns the items of one queue from a sequence on, acked or
	// not, for resends.
	QueueItems(k QueueKey, fromSeq int64, maxBytes int) ([]hub.Item, error)
	// Cursor is the last imported sequence of a Dispatch's queue, by the
	// source's lineage, store and epoch.
	Cursor(CursorKey) (int64, error)
	// Feed is how far this receiver has come with the peer's log.
	Feed(peer hub.PeerID, dir hub.Direction) (hub.FeedState, error)
}

// CursorKey names the receiver's place in one queue.
type CursorKey struct {
	Lineage  string
	StoreID  string
	Epoch    int64
	Dispatch hub.DispatchID
}

// Relay keeps relay queues (as source) and cursors (as receiver).
type Relay interface {
	RelayReader
	// Enqueue appends an item; it.Seq and it.Pos are assigned, it.ID is kept
	// or minted. It signals the peer. Quotas are the caller's business.
	Enqueue(k QueueKey, it hub.Item) (hub.Item, error)
	// AckQueue notes that everything up to seq is committed at the receiver;
	// an ack beyond LastSeq is an error, an older one changes nothing.
	AckQueue(k QueueKey, seq int64) error
	// ParkQueue notes why the receiver cannot import, "" clears it.
	ParkQueue(k QueueKey, reason string) error
	Advance(CursorKey, int64) error
	SetFeed(hub.PeerID, hub.Direction, hub.FeedState) error
}

// PeerReader reads pairings.
type PeerReader interface {
	Peer(hub.PeerID) (hub.Peer, error)
	// PeerByName finds a peer that is not removed.
	PeerByName(name string) (hub.Peer, error)
	// PeerByFingerprint finds the peer that has the key, else the newest of
	// the removed ones that had it.
	PeerByFingerprint(fp string) (hub.Peer, bool, error)
	// PeersOf are all pairings with one hub, removed ones too, the newest
	// first: it has one per store that it was paired with.
	PeersOf(lineage string) ([]hub.Peer, error)
	PeerList() ([]hub.Peer, error)
	Invite(hub.InviteID) (hub.Invite, error)
	InviteBySlot(slot string) (hub.Invite, bool, error)
	// OpenInvites are neither used nor expired at the instant.
	OpenInvites(now hub.Micros) ([]hub.Invite, error)
	// InviteList is the newest first.
	InviteList(Page) (is []hub.Invite, next int64, err error)
}

// Peers keeps pairings and invites. Names and fingerprints are unique among
// peers that are not removed.
type Peers interface {
	PeerReader
	PutPeer(hub.Peer) error
	SavePeer(hub.Peer) error
	PutInvite(hub.Invite) error
	SaveInvite(hub.Invite) error
}
