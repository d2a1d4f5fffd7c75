package sqlite

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
)

const retainedRuns = 50_000

// fillRetained puts Runs, each with its mailbox, its terminal and two audit
// rows, in one transaction.
func fillRetained(t *testing.T, s *Store) {
	t.Helper()
	numbers := ` WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT `
	err := s.Update(context.Background(), store.New, func(tx store.Tx) error {
		for _, q := range []string{
			`INSERT INTO runs (` + runCols + `)` + numbers + `'run_' || i, 'o', 1, '', 0, i, 0 FROM n`,
			`INSERT INTO mailboxes (` + mailboxCols + `)` + numbers + `'run:run_' || i, 0, 0, 0, 0, '', 0 FROM n`,
			`INSERT INTO bindings (` + bindingCols + `)` + numbers + `'run_' || i, 1, 'tty:' || i, i FROM n`,
			`INSERT INTO audits (` + auditCols + `)` + numbers + `'run_' || i, i, 'created', 'operator', 'tty:' || i, 0 FROM n`,
			`INSERT INTO audits (` + auditCols + `)` + numbers + `'run_' || i, i, 'bound', 'operator', 'tty:' || i, 1 FROM n`,
		} {
			if _, err := tx.(*Tx).exec(q, retainedRuns); err != nil {
				return err
			}
		}
		return tx.PutCredential(store.Credential{Sum: "op", Kind: store.CredOperator})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestAcceptance_R09_RetainedRunsCostLookupsOnly: with 50 000 Runs, everything
// that run current, run show and run list ask the store searches by an index.
func TestAcceptance_R09_RetainedRunsCostLookupsOnly(t *testing.T) {
	s := openTest(t, Config{}, builtin)
	fillRetained(t, s)
	err := s.View(context.Background(), func(rx store.Rx) error {
		if _, ok, err := rx.Credential("op"); err != nil || !ok {
			t.Errorf("the credential: %v %v", ok, err)
		}
		d, err := run.Current(rx, hub.Principal{Kind: hub.Operator, Context: "tty:17"})
		if err != nil || d.Run.ID != "run_17" || d.Fenced || len(d.Audit) != 2 || d.Audit[0].Action != "bound" {
			t.Errorf("current: %+v %v", d, err)
		}
		if d, err = run.Show(rx, "run_49999"); err != nil || d.Mailbox.Box != "run:run_49999" {
			t.Errorf("show: %+v %v", d, err)
		}
		rs, next, err := rx.RunList(store.Page{Limit: 50})
		if err != nil || len(rs) != 50 || rs[0].ID != "run_50000" {
			t.Errorf("list: %d Runs, %v", len(rs), err)
		}
		if rs, _, err = rx.RunList(store.Page{Limit: 50, Before: next}); err != nil || len(rs) != 50 || rs[0].ID != "run_49950" {
			t.Errorf("the next page: %d Runs, %v", len(rs), err)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	asked := readStatements(t, s)
	for _, want := range []string{credentialQuery, bindingQuery, runQuery, mailboxQuery, auditQuery, runPage} {
		if !slices.Contains(asked, want) {
			t.Errorf("not asked any more, so this test looks at the wrong statements: %s", want)
		}
	}
	c, err := s.readers.take(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { s.readers.free <- c }()
	for _, q := range asked {
		plan := explain(t, c.sc, q)
		if !strings.Contains(plan, "SEARCH") || strings.Contains(plan, "SCAN") || strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("%s\nis no lookup:\n%s", q, plan)
		}
	}
}

// readStatements are all queries that Views have made so far.
func readStatements(t *testing.T, s *Store) []string {
	t.Helper()
	seen := map[string]bool{}
	for range readerCount { // the free ones are taken in turn
		c, err := s.readers.take(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for q := range c.stmts {
			seen[q] = strings.HasPrefix(q, "SELECT")
		}
		s.readers.free <- c
	}
	maps.DeleteFunc(seen, func(_ string, query bool) bool { return !query })
	return slices.Sorted(maps.Keys(seen))
}
