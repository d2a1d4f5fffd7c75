// Package work makes the effects: it starts workers in worktrees, watches and
// stops their processes, reads their output, and finds out after a crash what
// became of them. What is true of an attempt is decided by package dispatch.
// See DESIGN.md for its invariants.
package work
