// Package dispatch holds the truth about attempts: how they begin, settle, are
// fenced and given up; what workers may report; what the relay brings home and
// takes out. It makes no effect outside the store; package work does. See
// DESIGN.md for its invariants.
package dispatch
