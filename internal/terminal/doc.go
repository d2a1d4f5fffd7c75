// Package terminal starts, watches and ends the processes of the hub's
// terminals. Every process runs under a supervisor of its own, which is the
// same binary running Supervise, started detached so that it survives the hub.
//
// A process has pipes, or a pseudo terminal: then it gets input and sizes while
// it runs, and the supervisor answers what programs ask their terminal. What was
// written is read as bytes by offset, or rendered as the screen a person would
// see.
//
// Manager is the hub's side. It keeps no state: everything it says comes from
// the terminal's directory and from the supervisor, so a new Manager after a
// crash says the same. DESIGN.md numbers the invariants.
package terminal
