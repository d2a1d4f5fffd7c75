// Package daemon is the composition root: it opens the store, builds the
// use-cases with their adapters, and starts and stops everything in order. It
// is the only package that knows everybody.
package daemon
