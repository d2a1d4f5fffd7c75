// Package cli is the command line: one file per noun, talking to the hub
// through package client only.
//
// Data goes to stdout, everything else to stderr. With --json stdout holds the
// hub's answer as it was received, as one JSON document, and an error is its
// problem document on stderr. Exit codes are those of openapi/errors.yaml,
// plus: 1 the operation ran and failed, 7 timed out where an answer was asked
// for, 130 interrupted.
//
// Inside a Dispatch (WAVEHUB_DISPATCH_FILE) its capability is the only
// credential; the operator's token is then never read.
package cli
