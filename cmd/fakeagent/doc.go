// Command fakeagent is a scripted agent for tests and demonstrations: it needs
// no model and does exactly what its script says.
//
//	fakeagent SCRIPT.json [ARG...]     (ARGs are ignored: a prompt may be one)
//	fakeagent -                        (the script comes from standard input)
//
// The script is a JSON array of steps, or an object {"steps": […]}. A step is an
// object with exactly one of these:
//
//	{"print": "text"}                a line on standard output
//	{"complain": "text"}             a line on standard error
//	{"sleep_ms": 100}                waits
//	{"run": ["wavehub", "done", …]}  runs a command; "wavehub" is $WAVEHUB_BIN.
//	                                 "input" is its standard input, "want_exit"
//	                                 the exit code that it must have (0)
//	{"write": "path", "text": "…"}   writes a file
//	{"exit": 3}                      ends at once
//	{"ignore_term": true}            ignores the polite request to end from here on
//	{"spawn_grandchild": true}       starts a process in a session of its own that
//	                                 holds standard output open, at most five
//	                                 minutes, and prints "grandchild PID"
//	{"repeat": 3, "steps": […]}      repeats; ${i} is 0, 1, 2
//
// In all texts ${NAME} is replaced by the environment variable, which must be
// set, and $$ by one dollar sign. The exit code is 0 at the script's end and 3,
// with a line on standard error, for anything wrong: an unknown key, an unset
// variable, a command that ends otherwise than wanted.
package main
