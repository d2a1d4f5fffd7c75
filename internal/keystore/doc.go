// Package keystore keeps the hub's secrets on disk and derives text from them:
// the long-lived key and certificate, the token key, fingerprints and tokens.
//
// Files are created once, never replaced: key.pem is the hub's identity and
// losing it is losing the hub. The package imports the standard library only
// and is safe for concurrent use.
package keystore
