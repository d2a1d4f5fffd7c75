// Package wave runs sets of dependent Tasks that a caller hands to the hub (design
// page 6). It has two parts: a planner, which is pure, and an engine that is
// level-triggered: for each running wave it reads what is committed, decides what
// should be true, and issues ordinary operations under request ids that follow from
// that state. Whatever is cut off is decided again. See DESIGN.md.
package wave
