// Package storetest is the conformance suite of package store: whatever
// implements the ports passes it. It is imported by tests only.
package storetest
