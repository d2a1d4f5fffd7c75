// Package peer makes and keeps pairings with other hubs: the pairing protocol,
// the registry of peers, the pinned TLS configurations, links over both
// transports (direct, and reverse over parked streams), and the typed client of
// the peer API. DESIGN.md has the invariants.
package peer
