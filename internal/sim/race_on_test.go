//go:build race

package sim

// raced: the race detector watches, which makes a seed many times as dear.
const raced = true
