// Package run holds Runs, their consumers and their Tasks.
//
// Functions named by a verb work inside a transaction that the caller has and
// do no I/O; the methods of Service are the same verbs behind the receipt gate.
package run
