package hub

// InviteState is where an invite is.
type InviteState string

// The states of an invite; all but open are final.
const (
	InviteOpen    InviteState = "open"
	InviteUsed    InviteState = "used"
	InviteBurned  InviteState = "burned" // by MaxWrongProofs
	InviteExpired InviteState = "expired"
	InviteRevoked InviteState = "revoked"
)

// State is where the invite is at an instant of the inviter's clock.
func (i Invite) State(now Micros) InviteState {
	switch {
	case i.UsedBy != "":
		return InviteUsed
	case i.Used && i.Wrong >= MaxWrongProofs:
		return InviteBurned
	case i.Used:
		return InviteRevoked
	case i.ExpiresAt <= now:
		return InviteExpired
	}
	return InviteOpen
}

// MaxAddresses is how many addresses a peer has at most.
const MaxAddresses = 8

// Fits reports why the peer is not the hub, or not the store, that was pinned:
// peer_changed, peer_store_changed or "". A new epoch of the store fits.
func (p Pin) Fits(is Peer) Code {
	switch {
	case p.Lineage != is.Lineage:
		return CodePeerChanged
	case p.StoreID != is.StoreID:
		return CodePeerStoreChanged
	}
	return ""
}

// PeerHolds is what is left between this hub and a peer: Dispatches of ours
// there and Workers of the peer's here that have not ended. Stranded are those
// workers, MaxStranded at most, that nobody reaches since the pairing has ended.
type PeerHolds struct {
	Dispatches int
	Workers    int
	Stranded   []Stranded
}

// Empty reports whether nothing is left.
func (h PeerHolds) Empty() bool { return h.Dispatches == 0 && h.Workers == 0 }

// MaxStranded is how many stranded workers are shown of one peer.
const MaxStranded = 20

// Stranded is a worker here that its home cannot reach any more, and that cannot
// report. Terminal is "" for an attached worker.
type Stranded struct {
	Home     PeerID
	Dispatch DispatchID
	Task     TaskID
	Dir      string
	Terminal TerminalID
}
