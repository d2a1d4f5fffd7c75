// Package store declares what the use-cases need of durable state: one small
// interface per subject, composed into Tx (one write transaction), Rx (one
// read snapshot), Writer and Reader. It holds no code.
//
// Rules that every implementation keeps, and package storetest checks:
//
//   - Methods take no context: cancelling a running transaction would roll
//     back the group it is committed with.
//   - A lookup by id that finds nothing returns a *hub.Error with the not-found
//     code of its subject; lookups with an ok result return false instead.
//   - Put inserts and fails if the key exists; Save replaces a row that exists.
//   - Order is by sequence, never by time. Pages are newest first unless said.
//   - What a transaction wrote is visible to its own later reads, and to others
//     only after Update returned nil.
package store
