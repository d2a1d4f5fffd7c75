package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// edit runs SQL on a closed database.
func edit(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open(driverName, dsn(path, "rwc"))
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range statements {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func made(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a b%c#d?e", "hub.db")
	if os.PathSeparator == '\\' {
		path = filepath.Join(t.TempDir(), "a b%c#d", "hub.db")
	}
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := Open(context.Background(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Update(context.Background(), store.New, putRun("a")), s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// Invariant 14: what is not a store of this or an older wavehub is refused
// and left as it is.
func TestOpenRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, path string)
		code  hub.Code
		text  string
	}{
		"another program": {func(t *testing.T, p string) { edit(t, p, "PRAGMA application_id = 7") }, hub.CodeDataDirInvalid, "another program"},
		"no application":  {func(t *testing.T, p string) { edit(t, p, "PRAGMA application_id = 0") }, hub.CodeDataDirInvalid, "another program"},
		"newer schema":    {func(t *testing.T, p string) { edit(t, p, "PRAGMA user_version = 99") }, hub.CodeDataDirInvalid, "made by a newer wavehub"},
		"no database": {func(t *testing.T, p string) {
			if err := os.WriteFile(p, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
				t.Fatal(err)
			}
		}, hub.CodeDataDirInvalid, "not a sound database"},
	} {
		t.Run(name, func(t *testing.T) {
			path := made(t)
			c.spoil(t, path)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Open(context.Background(), Config{Path: path})
			if !hub.IsCode(err, c.code) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v", err)
			}
			if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
				t.Errorf("the file was changed: %v", err)
			}
		})
	}
	if _, err := Open(context.Background(), Config{Path: filepath.Join(t.TempDir(), "none", "hub.db")}); !hub.IsCode(err, hub.CodeDataDirInvalid) {
		t.Errorf("a missing folder: %v", err)
	}
	if _, err := Open(context.Background(), Config{}); !hub.IsCode(err, hub.CodeDataDirInvalid) {
		t.Errorf("no path: %v", err)
	}
}

// Invariant 12: one process at a time; the lock is free after Close.
func TestOneOwner(t *testing.T) {
	path := made(t)
	s := openTest(t, Config{Path: path}, builtin)
	if _, err := Open(context.Background(), Config{Path: path}); !hub.IsCode(err, hub.CodeDataDirLocked) {
		t.Errorf("a second owner: %v", err)
	}
	if !hasRun(t, s, "a") {
		t.Error("the store lost a row over Close and Open")
	}
}

// Invariant 14: the identity stays; the log is empty after opening and closing.
func TestReopen(t *testing.T) {
	path := made(t)
	id := func() (id string) {
		s, err := Open(context.Background(), Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		if fi, err := os.Stat(path + "-wal"); err == nil && fi.Size() != 0 {
			t.Errorf("Open left %d bytes of log", fi.Size())
		}
		err = s.View(context.Background(), func(rx store.Rx) (err error) { id, _, err = rx.StoreIdentity(); return err })
		if err = errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		return id
	}
	if first := id(); first == "" || first != id() {
		t.Errorf("the identity of %s changed", first)
	}
}

// Invariant 15: an older store is copied, then migrated; a migration that
// fails changes nothing.
func TestMigrationCopy(t *testing.T) {
	path := made(t)
	n := len(migrations)
	now := migrations[n-1].version
	bad := append(migrations[:n:n], migration{now + 1, "CREATE TABLE extra (x INTEGER) STRICT; CREATE TABLE runs (x INTEGER)"})
	if _, err := open(context.Background(), Config{Path: path}, builtin, bad); err == nil {
		t.Fatal("a bad migration was taken")
	}
	good := append(migrations[:n:n], migration{now + 1, "CREATE TABLE extra (x INTEGER) STRICT"}, migration{now + 2, "ALTER TABLE extra ADD COLUMN y INTEGER"})
	s, err := open(context.Background(), Config{Path: path}, builtin, good)
	if err != nil {
		t.Fatal(err)
	}
	if !hasRun(t, s, "a") {
		t.Error("the migration lost a row")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), Config{Path: path}); !hub.IsCode(err, hub.CodeDataDirInvalid) {
		t.Errorf("the older program opened the newer store: %v", err)
	}
	old := openTest(t, Config{Path: CopyPath(path, now)}, builtin)
	if !hasRun(t, old, "a") {
		t.Error("the copy does not hold the row")
	}
}

func TestAtLeast(t *testing.T) {
	for v, want := range map[string]bool{"3.51.3": true, "3.51.2": false, "3.54.1": true, "3.9.9": false, "4.0.0": true, "": false} {
		if atLeast(v, minVersion) != want {
			t.Errorf("%q: %v", v, !want)
		}
	}
}

func TestReadersCannotWrite(t *testing.T) {
	s := openTest(t, Config{}, builtin)
	err := s.View(context.Background(), func(rx store.Rx) error { return rx.(Rx).conn.once("DELETE FROM runs") })
	if err == nil {
		t.Error("a reader wrote")
	}
}

func TestInvitesThatAreNotThere(t *testing.T) {
	s := openTest(t, Config{}, builtin)
	err := s.View(context.Background(), func(rx store.Rx) error {
		_, err := rx.Invite("invite_none")
		return err
	})
	if !hub.IsCode(err, hub.CodeInviteNotFound) {
		t.Errorf("reading it: %v", err)
	}
	err = s.Update(context.Background(), store.Settle, func(tx store.Tx) error { return tx.SaveInvite(hub.Invite{ID: "invite_none"}) })
	if !hub.IsCode(err, hub.CodeInviteNotFound) {
		t.Errorf("saving it: %v", err)
	}
}
