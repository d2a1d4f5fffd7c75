package hub

import "slices"

// PeerState is where a pairing is.
type PeerState string

// The states of a peer. Removed keeps the pin as a routing tombstone.
const (
	PeerActive  PeerState = "active"
	PeerPending PeerState = "pending" // our last pairing message may be lost
	PeerRevoked PeerState = "revoked"
	PeerRemoved PeerState = "removed"
)

// Trusted reports whether the key of a peer in this state is served at all.
func (s PeerState) Trusted() bool { return s == PeerActive || s == PeerPending }

// Role says what a hub may be in a pair: the home of Runs, or the owner of
// their workers.
type Role string

// The roles; mutual is both directions.
const (
	RoleHome   Role = "home"
	RoleWorker Role = "worker"
	RoleMutual Role = "mutual"
)

// Opposite is the other side's role.
func (r Role) Opposite() Role {
	switch r {
	case RoleHome:
		return RoleWorker
	case RoleWorker:
		return RoleHome
	case RoleMutual:
		return RoleMutual
	}
	return ""
}

// CanBe reports whether r includes role.
func (r Role) CanBe(role Role) bool { return r == role || r == RoleMutual }

// Grants is what a worker hub lets a home do; it lives on the worker's side.
type Grants struct {
	Verbs      []string `json:"verbs"`       // start, read, proxy
	Repos      []string `json:"repos"`       // granted roots, absolute paths
	MaxWorkers int      `json:"max_workers"` // 0: no limit
}

// The verbs of a grant.
const (
	GrantStart = "start"
	GrantRead  = "read"
	GrantProxy = "proxy"
)

// Peer is another hub. Role is the peer's own role in the pair: worker means
// that it runs workers for us.
type Peer struct {
	ID          PeerID    `json:"peer_id"`
	Name        string    `json:"name"`
	Lineage     string    `json:"hub_id"`
	Fingerprint string    `json:"fingerprint"` // of the present key
	Addresses   []string  `json:"addresses"`
	Role        Role      `json:"role"`
	Grants      Grants    `json:"grants"`
	State       PeerState `json:"state"`
	StoreID     string    `json:"store_id"`
	StoreEpoch  int64     `json:"store_epoch"`
	CreatedAt   Micros    `json:"created_at"`

	// Proofs is the lineage as package keystore encodes it: that the present key
	// follows from the first. Empty while the peer has its first key.
	Proofs []byte `json:"-"`
	// Knows is the fingerprint of the key of this hub that the peer has pinned;
	// "" is this hub's first key.
	Knows string `json:"-"`
	// Contracts and Features are what the peer offered in its last hello; no
	// contracts: it has not said one yet.
	Contracts []string `json:"contracts,omitempty"`
	Features  []string `json:"features,omitempty"`
	// Reverse is this side's own choice: it serves the peer, and keeps streams
	// parked there over which the peer reaches it.
	Reverse bool `json:"reverse"`
	// Parks tells that the peer has parked streams here: a connection to it
	// waits for the next one.
	Parks bool `json:"-"`

	// Confirm is what an inviter still needs to complete a pairing whose
	// last message was lost: the expiry of that window, 0 when complete.
	ConfirmUntil Micros `json:"-"`
	// Condition is what holds the link that only a person can change:
	// peer_changed, peer_store_changed, peer_revoked, peer_duplicate or "".
	Condition Code `json:"condition,omitempty"`
}

// Invite is one open offer to pair. Key is the Argon2id result; the secret
// itself is derived again when the receipt is replayed, never stored.
type Invite struct {
	ID        InviteID
	Slot      string // 3 public characters
	Key       []byte
	Role      Role   // the role this side takes
	Grants    Grants // given when this side is the worker
	ExpiresAt Micros
	Wrong     int  // wrong proofs so far
	Used      bool // burned: used, revoked, or MaxWrongProofs reached
	// UsedBy and Joined let a lost message 4 be replayed for the same key.
	UsedBy string
	Joined PeerID
	// BoundTo is the fingerprint of the inviter's key that Key is bound to, ""
	// its first.
	BoundTo string
}

// Limits of invites.
const (
	MaxWrongProofs = 5
	MaxOpenInvites = 4
)

// Hello is what each side of a link says of itself before anything else.
type Hello struct {
	HubID      string   `json:"hub_id"`
	StoreID    string   `json:"store_id"`
	StoreEpoch int64    `json:"store_epoch"`
	Nonce      string   `json:"process_nonce"`
	Version    string   `json:"version"`
	Contracts  []string `json:"contracts"` // federation/1, ...
	Features   []string `json:"features"`
	// Proofs is the lineage as package keystore encodes it; empty for a hub that
	// has its first key.
	Proofs []byte `json:"proofs,omitempty"`
	// Rotated is the present key's signature over a connection that a former key
	// authenticates: whoever has pinned that one is to follow Proofs.
	Rotated []byte `json:"rotated,omitempty"`
}

// Rotation tells a peer, over a connection that a former key authenticates, that
// the key at the end of Proofs has taken its place.
type Rotation struct {
	Proofs    []byte `json:"proofs"`
	Signature []byte `json:"signature"` // by the present key, over that connection
}

// RotationTaken is the answer to a Rotation: the key that is pinned now.
type RotationTaken struct {
	Fingerprint string `json:"fingerprint"`
}

// ContractFederation is the one contract that both sides must offer.
const ContractFederation = "federation/1"

// Has reports whether h offers the feature.
func (h Hello) Has(feature string) bool { return slices.Contains(h.Features, feature) }

// Offers reports whether h offers the contract.
func (h Hello) Offers(contract string) bool { return slices.Contains(h.Contracts, contract) }
