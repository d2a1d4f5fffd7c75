package sqlite

import (
	"github.com/wavehub/wavehub/internal/hub"
)

// idTables are the tables whose ids may be abbreviated by their beginning.
var idTables = map[string]string{
	hub.PrefixRun: "runs", hub.PrefixTask: "tasks", hub.PrefixDispatch: "dispatches",
	hub.PrefixDelivery: "deliveries", hub.PrefixMessage: "messages",
}

// endTables are those whose ids may be abbreviated by their end; each has an
// index on it.
var endTables = []string{"runs", "tasks", "dispatches"}

func scanText(s scanner, text *string) error { return s.Scan(text) }

// IDsFrom implements store.Rx.
func (q querier) IDsFrom(kind, text string) ([]string, error) {
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
	for _, table := range endTables {
		ids, err := all(q, scanText, idsEnding(table), text)
		if err != nil {
			return nil, wrap(err, "looking for …%s", text)
		}
		found = append(found, ids...)
	}
	return found[:min(len(found), 2)], nil
}

func idsEnding(table string) string {
	return `SELECT id FROM ` + table + ` WHERE substr(id, -6) = ? LIMIT 2`
}
