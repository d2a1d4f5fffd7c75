package hub

import "strings"

// PrincipalKind says which credential a caller proved.
type PrincipalKind string

// The kinds of principals of page "contract", 3.2.
const (
	Operator        PrincipalKind = "operator"
	Reader          PrincipalKind = "reader"
	DispatchCap     PrincipalKind = "dispatch"
	AttachedWorker  PrincipalKind = "worker"
	PeerKey         PrincipalKind = "peer"
	Engine          PrincipalKind = "engine"
	SystemPrincipal PrincipalKind = "hub" // the hub's own observations
)

// Principal is a proven caller. It is made by authentication only, never from
// a field of a request.
type Principal struct {
	Kind PrincipalKind
	// ID is the Dispatch of a capability, the identity of an attached worker or
	// the lineage of a peer; else empty.
	ID string
	// Credential is the SHA-256 of the presented token, or the PeerID of a
	// pinned key; it is looked up again in the transaction of the effect.
	// Empty for engine and hub.
	Credential string
	// Context and Consumer are the proofs of a binding that came along.
	Context  string
	Consumer ConsumerProof
	// Coordinator says that a Dispatch was started with --may-coordinate. It only
	// opens the door: each use-case looks the child Run up itself.
	Coordinator bool
	// Generation is that of an attached worker's loop; 0 takes the present one.
	Generation int64
}

// ConsumerProof is the Run and generation that a whc_ token stands for.
type ConsumerProof struct {
	Run        RunID
	Generation int64
}

// OtherConsumer refuses a record that was made for another generation of the
// consumer, a former or a later one than the caller.
func OtherConsumer(generation int64) *Error {
	e := Errorf(CodeConsumerFenced, "this request was answered to generation %d of the consumer, which is not yours", generation)
	e.Hint = "the recorded answer is that consumer's only; as the present one, ask under a new request id"
	return e
}

// Name is how receipts and audit rows name the principal.
func (p Principal) Name() string {
	if p.ID == "" {
		return string(p.Kind)
	}
	return string(p.Kind) + ":" + p.ID
}

// Space is the key space of the principal's request ids: the hub's own
// principals share one, each peer lineage has its own.
func (p Principal) Space() string { return SpaceOf(p.Name()) }

// SpaceOf is the key space of the principal of that name.
func SpaceOf(principal string) string {
	if strings.HasPrefix(principal, string(PeerKey)+":") {
		return principal
	}
	return localSpace
}

// localSpace is the key space of this hub's own principals.
const localSpace = "local"
