// Package house holds the rules of the code base as tests: which package may
// import which, how long files and functions may grow, what must carry a doc
// comment, and which habits are refused. It has no code of its own and no
// package may import it. Every checker is itself tested on a made-up input that
// breaks its rule, so that none of them can pass by looking at nothing.
package house
