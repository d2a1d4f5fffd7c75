// Package relay carries committed items between two hubs: a symmetric session
// over one connection, the puller that keeps a home connected to its worker
// hubs, and the desk at which a worker hub serves them.
//
// It knows neither SQL nor HTTP: see the ports Source, Importer, Links and
// Feed. DESIGN.md has the invariants.
package relay
