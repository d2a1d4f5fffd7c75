// Package spool keeps what a worker reports while no hub answers: one file of
// lines per Dispatch, beside its capability. The worker's command line appends,
// the hub that owns the worker drains; an exclusive lock keeps them apart.
//
// All functions take the lock themselves and are safe for concurrent use by any
// number of processes. A line that Append has returned for survives a crash of
// anything, and leaves the file only after Drain's caller has taken it; one that
// was taken just before a crash is taken again, so that whoever takes needs to
// recognise it. See DESIGN.md for the invariants.
package spool
