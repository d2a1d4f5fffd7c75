// Package metrics counts what the hub does, in a Prometheus registry of its
// own. Every label has a bounded set of values: route patterns, operation
// names and classes, never ids.
package metrics
