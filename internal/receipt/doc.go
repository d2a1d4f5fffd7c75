// Package receipt is the gate that every mutation passes: at most one effect
// per request id, recorded in the transaction of the effect. See DESIGN.md for
// its invariants.
package receipt
