// Package config turns flags, the environment, the user's file and defaults
// into one validated struct, and names the files of the data directory.
//
// Precedence: flags, then WAVEHUB_* variables, then config.yaml in the
// configuration directory, then defaults. Unknown keys of the file are errors.
// A Config is a value: it is not changed after Load and may be shared.
package config
