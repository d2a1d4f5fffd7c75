// Package agent is the table of launchers: how each agent's command line is
// put together, how the first task is handed over, what ends an attempt, and
// what the agent's own CLI says in its hooks, titles, output and errors.
//
// It starts nothing and writes nothing: it answers with argv, input and files
// that the caller writes. A name is looked up in the table and never run. Each
// agent has a file of its own, data first. A Table does not change after New
// and is safe for concurrent use; so are all functions here. A Stream belongs
// to one goroutine.
package agent
