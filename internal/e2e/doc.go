// Package e2e tests the built programs: real hubs, real workers, the command
// line and the network between them. Tests of the acceptance list are named by
// its numbers. It runs on systems with POSIX processes and signals.
//
// Scenarios provoke every code of the error catalogue; one without its line
// fails.
//
// WAVEHUB_BIN_DIR names a folder with wavehub and fakeagent (relative to the
// module's root); without it both are built once. WAVEHUB_TEST_SCALE is small
// (the default), medium or full.
package e2e
