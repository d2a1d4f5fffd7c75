// Package mail holds mailboxes: batches and their acks, the one waiter of each
// mailbox, read-only history, and the state of questions. See DESIGN.md for
// its invariants.
package mail
