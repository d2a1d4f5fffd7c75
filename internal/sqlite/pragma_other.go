//go:build !darwin

package sqlite

var platformPragmas []string
