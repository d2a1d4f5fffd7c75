package hub

import "slices"

// The additive features of a link, by the names under which hubs offer them.
const (
	// FeatureReverse: the hub takes streams that its worker hubs park.
	FeatureReverse = "reverse/1"
)

// Features is what this build offers to peers.
func Features() []string { return []string{FeatureReverse} }

// Has reports whether h offers the feature.
func (h Hello) Has(feature string) bool { return slices.Contains(h.Features, feature) }
