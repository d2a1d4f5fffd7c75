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
	// ItemsBetween is ItemsAfter for what was acknowledged, up to a position: a
	// receiver that lost it gets it again.
	ItemsBetween(peer hub.PeerID, dir hub.Direction, pos, until int64, maxBytes int) ([]hub.Item, error)
	// Log is what this hub says of its log for a peer.
	Log(peer hub.PeerID, dir hub.Direction) (hub.LogState, error)
	// Backlog is what waits for the peer in queues that are not parked.
	Backlog(peer hub.PeerID, dir hub.Direction) (items int, bytes int64, err error)
	// ParkedQueues are the parked queues for a peer, at most limit, and how many
	// there are.
	ParkedQueues(peer hub.PeerID, limit int) ([]ParkedQueue, int, error)
	// QueuesFrom returns queues behind a number, in order, whose acknowledged
	// items are kept: at most limit queues are looked at. Surplus is more than the
	// newest items and bytes. next is 0 at the end.
	QueuesFrom(after int64, limit, items int, bytes int64) (qs []KeptQueue, next int64, err error)
	// Cursor is this receiver's place in a Dispatch's queue, the zero Cursor
	// before its first item.
	Cursor(CursorKey) (Cursor, error)
	// CursorsFrom looks at most at limit cursors behind a number and returns
	// those of a source that have passed a position of its log. next is 0 at the
	// end.
	CursorsFrom(src SourceKey, pos, after int64, limit int) (cs []PlacedCursor, next int64, err error)
	// ParkedCursors are the queues of a source that cannot be taken here, at most
	// limit, and how many there are.
	ParkedCursors(lineage, storeID string, epoch int64, limit int) ([]PlacedCursor, int, error)
	// Mark is what was imported as a sequence, of what left no message.
	Mark(k CursorKey, seq int64) (Mark, bool, error)
	// Marked reports whether an item of the Dispatch left a mark, in any epoch.
	Marked(d hub.DispatchID, id hub.MessageID) (bool, error)
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

// SourceKey names the log of one source.
type SourceKey struct {
	Lineage string
	StoreID string
	Epoch   int64
}

// Cursor is a receiver's place in one queue.
type Cursor struct {
	Seq    int64  // imported up to here
	Known  int64  // of sequences up to here nothing was kept that tells what they were
	Pos    int64  // the source's log position of the last one
	Parked string // why the next item is not taken; "" if it is
}

// PlacedCursor is a Cursor and the Dispatch it belongs to.
type PlacedCursor struct {
	Dispatch hub.DispatchID
	Cursor
}

// Mark is an item that was imported and left no message.
type Mark struct {
	ID  hub.MessageID
	Sum [32]byte // of its kind and its payload
}

// ParkedQueue is a queue that its receiver, or this hub, has parked.
type ParkedQueue struct {
	QueueKey
	Pending int
	Reason  string
}

// KeptQueue is a queue as the sweep of acknowledged items sees it.
type KeptQueue struct {
	QueueKey
	LastSeq, AckedSeq int64
	SweptSeq          int64 // sequences up to here are gone
	Surplus           int64 // acknowledged sequences up to here are more than is kept
	EndedAt           hub.Micros
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
	// SaveCursor stores a place; its Seq never goes back.
	SaveCursor(CursorKey, Cursor) error
	// PutMark keeps what was imported as a sequence; a second one for the same
	// sequence changes nothing.
	PutMark(k CursorKey, seq int64, m Mark) error
	// SweepQueue drops acknowledged items up to seq, at most limit of them, but
	// never the newest item of the log. It returns how many are gone.
	SweepQueue(k QueueKey, seq int64, limit int) (int, error)
	// EndQueue notes when a queue was first seen to be of a settled Dispatch.
	EndQueue(k QueueKey, at hub.Micros) error
	// SeeEpoch notes an epoch of this store that a peer has seen: none that comes
	// is to be the same.
	SeeEpoch(epoch int64) error
	// RaiseEpoch begins a new epoch of this store, behind all that were seen: acknowledged items are dropped
	// and every queue counts what is left from 1. It returns the new epoch and how
	// many items are sent again.
	RaiseEpoch() (epoch, items int64, err error)
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
