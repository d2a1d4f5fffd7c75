// Package e2e tests the built programs: real hubs, real workers, the command
// line and the network between them. Tests of the acceptance list are named by
// its numbers. It runs on systems with POSIX processes and signals.
//
// Two tables hold what is promised of errors: scenarios provoke every code of
// the catalogue, advices everything that prints commands, and run them. A code or
// a printed command without its line fails.
//
// Tests of several hosts run each hub in a network namespace of its own, which
// needs root and iproute2, and one in wine, which make wine has; each says why it
// is skipped.
//
// WAVEHUB_BIN_DIR names a folder with wavehub and fakeagent (relative to the
// module's root); without it both are built once. WAVEHUB_TEST_SCALE is small
// (the default), medium or full.
package e2e
