package hub

import "slices"

// The features of federation/1 that a hub may lack. A name is offered in the
// hello, never changes its meaning, and is raised when it would.
const (
	FeaturePresence  = "presence/1"   // presence frames on a relay, and pings that vouch for them
	FeatureProxy     = "proxy/1"      // the operations of the API that a peer may use are served below /peer/v1/proxy
	FeatureReverse   = "reverse/1"    // the hub takes streams that its worker hubs park
	FeatureRotation  = "rotation/1"   // a peer's key may be rotated
	FeatureVerify    = "verify/1"     // Checks of a start: verification and write scope
	FeatureAttached  = "attached/1"   // a start may name an attached worker
	FeatureResume    = "resume/1"     // a retry may go on with the agent's session
	FeatureChildRuns = "child-runs/1" // a worker may coordinate a child Run
	FeatureWaves     = "waves/1"      // a start may be for a task of a wave, and tells its worker of what the Task depends on
)

// Features are those that this build offers. The caller may keep the slice.
func Features() []string {
	return []string{FeaturePresence, FeatureProxy, FeatureReverse, FeatureRotation, FeatureVerify, FeatureAttached, FeatureResume, FeatureChildRuns, FeatureWaves}
}

// Needs are the features without which a start cannot be carried out as it was
// asked for.
func (in PeerStart) Needs() []string {
	needs := []string{}
	for _, n := range []struct {
		feature string
		needed  bool
	}{
		{FeaturePresence, in.Spec.LivenessSecs > 0},
		{FeatureVerify, in.Checks.Hold()},
		{FeatureAttached, in.Spec.Worker != ""},
		{FeatureResume, in.Spec.ResumeSession},
		{FeatureChildRuns, in.Spec.MayCoordinate},
		{FeatureWaves, in.Spec.Wave != nil},
	} {
		if n.needed {
			needs = append(needs, n.feature)
		}
	}
	return needs
}

// Offer is what one side of a link can do.
type Offer struct {
	Contracts []string
	Features  []string
}

// OwnOffer is this build's.
func OwnOffer() Offer { return Offer{[]string{ContractFederation}, Features()} }

// Offer is what the peer offered last. One that has said no hello yet has been
// paired by federation/1; what else it can do is not known.
func (p Peer) Offer() Offer { return Offer{p.Contracts, p.Features} }

// Check refuses what the offer of who lacks: capability_unsupported, with what
// it is. An offer that has not been made yet lacks nothing but contracts other
// than federation/1: every request is preceded by a hello that is judged.
func (o Offer) Check(who, contract string, features []string) error {
	if len(o.Contracts) == 0 {
		o = Offer{[]string{ContractFederation}, features}
	}
	if !slices.Contains(o.Contracts, contract) {
		return Errorf(CodeCapabilityUnsupported, "%s does not offer %s", who, contract)
	}
	for _, f := range features {
		if !slices.Contains(o.Features, f) {
			return Errorf(CodeCapabilityUnsupported, "%s does not offer %s, which this start needs", who, f)
		}
	}
	return nil
}
