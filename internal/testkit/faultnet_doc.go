// Package testkit holds what tests share: the fault network.
package testkit
