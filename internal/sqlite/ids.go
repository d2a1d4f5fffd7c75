package sqlite

import (
	"fmt"

	"github.com/wavehub/wavehub/internal/hub"
)

// idTables are the tables whose ids may be abbreviated by their beginning.
var idTables = map[string]string{
	hub.PrefixRun: "runs", hub.PrefixTask: "tasks", hub.PrefixDispatch: "dispatches",
	hub.PrefixDelivery: "deliveries", hub.PrefixMessage: "messages", hub.PrefixWorktree: "worktrees",
	hub.PrefixTerminal: "terminals",
}

// requestsFrom looks among the requests of the hub's own principals.
const requestsFrom = `SELECT key FROM receipts WHERE space = 'local' AND key >= ? AND key < ? ORDER BY key LIMIT 2`

// requestsEnding looks at the newest of them, as recentEnding does.
var requestsEnding = fmt.Sprintf(`SELECT key FROM (SELECT key, space FROM receipts ORDER BY rid DESC LIMIT %d)
	WHERE substr(key, -6) = ? AND space = 'local' LIMIT 2`, recentRows)

// endTables are those whose ids may be abbreviated by their end; each has an
// index on it. Of recentTables, which have none, only the newest rows are looked
// at: what people abbreviate they have just read.
var (
	endTables    = []string{"runs", "tasks", "dispatches"}
	recentTables = []string{"messages", "deliveries"}
)

const recentRows = 10_000

func scanText(s scanner, text *string) error { return s.Scan(text) }

// IDsFrom implements store.Rx.
func (q querier) IDsFrom(kind, text string) ([]string, error) {
	if kind == hub.PrefixRequest {
		ids, err := all(q, scanText, requestsFrom, text, text+"~")
		return ids, wrap(err, "looking for %s…", text)
	}
	table, ok := idTables[kind]
	if !ok {
		return nil, hub.Invalid("text", "ids of this kind cannot be abbreviated")
	}
	ids, err := all(q, scanText, idsFrom(table), text, text+"~")
	return ids, wrap(err, "looking for %s…", text)
}

func idsFrom(table string) string {
	return `SELECT id FROM ` + table + ` WHERE id >= ? AND id < ? ORDER BY id LIMIT 2`
}

// IDsEnding implements store.Rx.
func (q querier) IDsEnding(text string) (found []string, err error) {
	var queries []string
	for _, table := range endTables {
		queries = append(queries, idsEnding(table))
	}
	for _, table := range recentTables {
		queries = append(queries, recentEnding(table))
	}
	queries = append(queries, requestsEnding)
	for _, query := range queries {
		ids, err := all(q, scanText, query, text)
		if err != nil {
			return nil, wrap(err, "looking for …%s", text)
		}
		found = append(found, ids...)
	}
	return found[:min(len(found), 2)], nil
}

func recentEnding(table string) string {
	return fmt.Sprintf(`SELECT id FROM (SELECT id FROM %s ORDER BY rid DESC LIMIT %d) WHERE substr(id, -6) = ? LIMIT 2`, table, recentRows)
}

func idsEnding(table string) string {
	return `SELECT id FROM ` + table + ` WHERE substr(id, -6) = ? LIMIT 2`
}
