// Package agent is the table of launchers: how each agent's command line is
// put together, how the first task is handed over, and what ends an attempt.
//
// It starts nothing and writes nothing: it answers with argv, input and files
// that the caller writes. A name is looked up in the table and never run. A
// Table does not change after New and is safe for concurrent use.
package agent
