// Package peer makes and keeps pairings with other hubs: the pairing protocol,
// the registry of peers, the pinned TLS configurations, direct links, and the
// typed client of the peer API. DESIGN.md has the invariants.
package peer
