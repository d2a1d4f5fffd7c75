package hub

import "slices"

// The additive features of a link, which a hello offers beside its contracts.
// What needs one is refused with capability_unsupported where the other hub does
// not offer it, before any effect.
const (
	// FeatureProxy serves the operations of the API that a peer may use below
	// /peer/v1/proxy.
	FeatureProxy = "proxy/1"
)

// Features are those that this version offers.
func Features() []string { return []string{FeatureProxy} }

// Has reports whether h offers the feature.
func (h Hello) Has(feature string) bool { return slices.Contains(h.Features, feature) }
