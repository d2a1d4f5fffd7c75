// Package safetext makes text from workers, peers and repositories safe to
// show to people: nothing in it can move a cursor, change a title, hide itself
// or reorder what is read.
//
// It is for display only. Stored and transmitted text stays verbatim.
package safetext
