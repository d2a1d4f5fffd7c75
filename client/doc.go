// Package client is the Go SDK of a wavehub hub.
//
// A Client talks to one hub over TLS 1.3 and sends nothing, not even its
// credential, before the hub's key has been compared with the pinned
// fingerprint. It uses no proxy and follows no redirect.
//
// Every mutation carries a request id: the caller's (WithRequestID) or a fresh
// one. When an answer is lost after the request may have reached the hub, the
// error has code outcome_unknown and that id; repeating the call with the same
// id and the same arguments has at most one effect and returns the recorded
// answer. All other failures are *Error values with a code of the catalogue;
// calls that were cancelled before anything was sent, and reads, return an
// error that matches context.Canceled.
//
// A Client is safe for concurrent use.
package client
