package sqlite

import (
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/wavehub/wavehub/internal/hub"
)

//go:embed migrations/0001_init.sql
var initSQL string

//go:embed migrations/0002_primitives.sql
var primitivesSQL string

//go:embed migrations/0003_terminals.sql
var terminalsSQL string

//go:embed migrations/0004_workers.sql
var workersSQL string

//go:embed migrations/0005_verify.sql
var verifySQL string

//go:embed migrations/0008_agents.sql
var agentsSQL string

//go:embed migrations/0009_peer_life.sql
var peerLifeSQL string

//go:embed migrations/0006_setup.sql
var setupSQL string

//go:embed migrations/0007_child_runs.sql
var childRunsSQL string

//go:embed migrations/0010_rotation.sql
var rotationSQL string

//go:embed migrations/0011_reverse.sql
var reverseSQL string

//go:embed migrations/0012_created_by.sql
var createdBySQL string

//go:embed migrations/0013_relay.sql
var relaySQL string

//go:embed migrations/0014_waves.sql
var wavesSQL string

// migration brings a schema of the version before it up to version. Released
// migrations never change.
type migration struct {
	version int
	sql     string
}

var migrations = []migration{{1, initSQL}, {2, primitivesSQL}, {3, terminalsSQL}, {4, workersSQL}, {5, verifySQL}, {6, setupSQL}, {7, childRunsSQL}, {8, agentsSQL}, {9, peerLifeSQL}, {10, rotationSQL}, {11, reverseSQL}, {12, createdBySQL}, {13, relaySQL}, {14, wavesSQL}}

// inspect returns the schema version of the file, 0 for an empty one. It
// changes nothing.
func inspect(c *conn, drv seam, path string, migs []migration) (int, error) {
	var app, have, tables int
	err := errors.Join(
		c.scalar("PRAGMA application_id", &app),
		c.scalar("PRAGMA user_version", &have),
		c.scalar("SELECT COUNT(*) FROM sqlite_schema", &tables),
	)
	newest := migs[len(migs)-1].version
	switch {
	case err != nil:
		return 0, unsound(drv, path, fmt.Errorf("inspecting %s: %w", path, err))
	case app == 0 && have == 0 && tables == 0:
		return 0, nil
	case app != applicationID:
		return 0, hub.Errorf(hub.CodeDataDirInvalid, "%s is a database of another program", path)
	case have > newest:
		return 0, hub.Errorf(hub.CodeDataDirInvalid, "%s was made by a newer wavehub (schema %d, this one knows %d)", path, have, newest)
	}
	return have, nil
}

// unsound gives an error that says the file is no database its code.
func unsound(drv seam, path string, err error) error {
	if drv.classify(err) != faultCorrupt {
		return err
	}
	return &hub.Error{Code: hub.CodeDataDirInvalid, Message: path + " is not a sound database", Err: err}
}

// migrate runs the missing migrations, each in one transaction, after copying
// a database that holds something.
func migrate(c *conn, log *slog.Logger, path string, have int, migs []migration) error {
	if have > 0 && have < migs[len(migs)-1].version {
		to := CopyPath(path, have)
		if err := copyAside(c, to); err != nil {
			return err
		}
		log.Info("copied the store before migrating it", "copy", to, "schema", have)
	}
	for _, m := range migs {
		if m.version <= have {
			continue
		}
		if err := apply(c, m); err != nil {
			return fmt.Errorf("migrating %s to schema %d: %w", path, m.version, err)
		}
	}
	return nil
}

// CopyPath is where a store of the schema version is copied before it is
// migrated.
func CopyPath(path string, version int) string { return fmt.Sprintf("%s.schema%d", path, version) }

// copyAside makes a complete copy or none: it gets its name when it is on disk.
func copyAside(c *conn, to string) error {
	part := to + ".part"
	if err := os.Remove(part); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing an unfinished copy: %w", err)
	}
	if err := c.once("VACUUM INTO ?", part); err != nil {
		return fmt.Errorf("copying the store: %w", err)
	}
	if err := persist(part); err != nil {
		return fmt.Errorf("copying the store: %w", err)
	}
	if err := os.Rename(part, to); err != nil {
		return fmt.Errorf("naming the copy of the store: %w", err)
	}
	return nil
}

func persist(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Chmod(0o600), f.Sync(), f.Close())
}

func apply(c *conn, m migration) error {
	if err := c.once("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := errors.Join(
		c.once(m.sql),
		c.once(fmt.Sprintf("PRAGMA application_id = %d", applicationID)),
		c.once(fmt.Sprintf("PRAGMA user_version = %d", m.version)),
	)
	if err == nil {
		return c.once("COMMIT")
	}
	return errors.Join(err, c.once("ROLLBACK"))
}
