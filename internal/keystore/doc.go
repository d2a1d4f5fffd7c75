// Package keystore keeps the hub's secrets on disk and derives text from them:
// the long-lived key and certificate, the token key, fingerprints and tokens.
//
// key.pem is the hub's identity and losing it is losing the hub. It is created
// once; a rotation alone replaces it, as a whole, and its lineage goes on. The
// package imports the standard library only and is safe for concurrent use.
package keystore
