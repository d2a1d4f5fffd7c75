// Package server is the HTTPS edge of a hub: one TCP listener, split by server
// name into the API mux and the peer mux; the guards that every request passes;
// the table of who may do what; and the translation between the documents of
// openapi/ and the use-cases. It holds no state of the domain. See DESIGN.md.
package server
