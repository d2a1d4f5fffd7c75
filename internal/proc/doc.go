// Package proc proves which process a pid is, ends process trees, and names
// the terminal a command was called from.
//
// A pid alone proves nothing: it is reused. An Identity adds the operating
// system's start time of the process and the boot it ran in. Liveness is
// claimed only from proof: what cannot be read is unverifiable, never exited.
// Signals go through a handle that is compared with the Identity after it was
// opened (a pidfd on Linux, a process handle on Windows), so a recycled pid is
// never signalled. macOS has no such handle: there the Identity is compared
// immediately before the signal.
//
// All functions are safe for concurrent use and start no goroutine.
package proc
