// Package sqlite keeps all durable state of a hub in one SQLite database and
// holds all SQL of the project. Store implements package store's ports; the
// promises that it makes are numbered in DESIGN.md.
//
// With cgo the driver is go-sqlite3, without it modernc.org/sqlite: only
// driver_cgo.go and driver_nocgo.go know which.
package sqlite
