package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

type column struct{ name, kind string }

// layout is every table of the schema and its columns.
func layout(q querier) (map[string][]column, error) {
	names, err := all(q, func(s scanner, n *string) error { return s.Scan(n) }, `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`)
	tables := map[string][]column{}
	for _, n := range names {
		cs, err2 := all(q, func(s scanner, c *column) error { return s.Scan(&c.name, &c.kind) }, `SELECT name, type FROM pragma_table_info(?)`, n)
		tables[n], err = cs, errors.Join(err, err2)
	}
	return tables, err
}

// filled is what stands in a column of row n: the same text everywhere, so that
// rows refer to each other, JSON where it is read here, and queues that wait.
func filled(table string, c column, n int) string {
	switch table + "." + c.name {
	case "peers.addresses", "peers.grants", "dispatches.start_receipt", "dispatches.findings", "attachments.spec", "attachments.receipt", "attachments.process",
		"attachments.fence", "attachments.checks", "attachments.agent", "terminals.process", "worktrees.setup":
		return "'null'"
	case "relay_queues.acked_seq", "relay_queues.acked_bytes", "relay_cursors.seq":
		return "0"
	case "relay_queues.parked":
		return "''"
	}
	switch c.kind {
	case "TEXT":
		return fmt.Sprintf("'v%d'", n)
	case "BLOB":
		return fmt.Sprintf("x'0%d'", n)
	}
	return fmt.Sprint(n)
}

// contents is every row of the tables, in the columns that are named.
func contents(q querier, tables map[string][]column) (map[string][]string, error) {
	out := map[string][]string{}
	var errs error
	for name, cs := range tables {
		cells := make([]string, len(cs))
		for i, c := range cs {
			cells[i] = "quote(" + c.name + ")"
		}
		rows, err := all(q, func(s scanner, r *string) error { return s.Scan(r) }, `SELECT `+strings.Join(cells, "||' '||")+` FROM `+name+` ORDER BY rowid`)
		out[name], errs = rows, errors.Join(errs, err)
	}
	return out, errs
}

// A store of version 8 with something in every table keeps all of it, and what is
// read of it is what it was.
func TestALiveStoreOfVersion8KeepsEverything(t *testing.T) {
	path := filepath.Join(t.TempDir(), "old.db")
	old, err := open(t.Context(), Config{Path: path}, builtin, migrations[:8])
	if err != nil {
		t.Fatal(err)
	}
	var tables map[string][]column
	var before map[string][]string
	err = old.Update(t.Context(), store.New, func(x store.Tx) (err error) {
		tx := x.(*Tx)
		if tables, err = layout(tx.querier); err != nil {
			return err
		}
		if _, err = tx.exec(`PRAGMA defer_foreign_keys = ON`); err != nil {
			return err
		}
		for name, cs := range tables {
			for n := 1; n <= 2 && name != "meta"; n++ {
				cells := make([]string, len(cs))
				for i, c := range cs {
					cells[i] = filled(name, c, n)
				}
				if _, err := tx.exec(`INSERT INTO ` + name + ` VALUES (` + strings.Join(cells, ", ") + `)`); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
		}
		before, err = contents(tx.querier, tables)
		return err
	})
	if err = errors.Join(err, old.Close()); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.Update(t.Context(), store.New, func(tx store.Tx) error {
		after, err := contents(tx.(*Tx).querier, tables)
		for name, rows := range before {
			if strings.Join(rows, "\n") != strings.Join(after[name], "\n") {
				t.Errorf("%s was\n%s\nand is\n%s", name, strings.Join(rows, "\n"), strings.Join(after[name], "\n"))
			}
		}
		return errors.Join(err, readAll(t, tx))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// readAll reads what the migrations have touched, by the ways of the hub.
func readAll(t *testing.T, tx store.Tx) error {
	t.Helper()
	p, err1 := tx.Peer("v1")
	d, err2 := tx.Dispatch("v1")
	term, err3 := tx.Terminal("v1")
	w, err4 := tx.Worktree("v1")
	a, known, err5 := tx.Attachment("v1", "v1")
	if p.Lineage != "v1" || p.Reverse || len(p.Proofs) != 0 || d.Pin.StoreID != "v1" || d.Pin.Contract != "" ||
		term.CreatedBy != "" || w.CreatedBy != "" || !known || a.Task != "v1" {
		t.Errorf("%+v\n%+v\n%+v\n%+v\n%+v", p, d, term, w, a)
	}
	k := store.QueueKey{Peer: "v1", Dispatch: "v1", Direction: "v1"}
	q, err6 := tx.Queue(k)
	its, err7 := tx.ItemsAfter("v1", "v1", 0, 1<<20)
	if q.LastSeq != 1 || q.PendingItems != 1 || len(its) != 1 || its[0].ID != "v1" {
		t.Errorf("%+v, %d items", q, len(its))
	}
	it, err8 := tx.Enqueue(k, hub.Item{Kind: hub.ItemExit, Payload: []byte("{}")})
	if it.Seq != 2 || it.Pos != 3 {
		t.Errorf("the next item is %d at %d", it.Seq, it.Pos)
	}
	return errors.Join(err1, err2, err3, err4, err5, err6, err7, err8)
}
