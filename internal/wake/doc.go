// Package wake notices that this host has slept or has other addresses: then
// connections may be dead without a sign, and what could not be reached may be
// within reach.
package wake
