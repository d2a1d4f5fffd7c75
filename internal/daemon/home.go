package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/wavehub/wavehub/internal/config"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/keystore"
	"github.com/wavehub/wavehub/internal/safefile"
)

// home is a prepared data directory: who this hub is and where things lie.
type home struct {
	dir      string
	ring     *keystore.Ring
	tokenKey []byte
	first    bool // this is the first start: the identity was made just now
}

func (h home) database() string  { return filepath.Join(h.dir, "wavehub.db") }
func (h home) terminals() string { return h.paths().TerminalDir() }
func (h home) private() string   { return h.paths().PrivateDir() }
func (h home) worktrees() string { return filepath.Join(h.dir, "worktrees") }

// paths are those that the command line knows too.
func (h home) paths() config.Config { return config.Config{DataDir: h.dir} }

// prepare makes or opens the data directory. A directory that others can write
// to, that lies on a network or sync folder, or whose database has lost its key
// is refused with the fix.
func prepare(cfg config.Config) (home, error) {
	h := home{dir: cfg.DataDir}
	if err := checkPlace(cfg.DataDir); err != nil {
		return h, err
	}
	for _, dir := range []string{cfg.DataDir, cfg.ConfigDir, h.terminals(), h.private(), h.worktrees()} {
		if err := safefile.PrivateDir(dir); err != nil {
			return h, dataDirError(dir, err)
		}
	}
	identity, first, err := h.loadIdentity()
	if err != nil {
		return h, err
	}
	h.ring, h.first = keystore.NewRing(h.dir, identity), first
	if h.tokenKey, err = h.loadTokenKey(); err != nil {
		return h, err
	}
	return h, errors.Join(writeToken(cfg.TokenFile(), h.operatorToken()), writeToken(cfg.ReaderTokenFile(), h.readerToken()))
}

func checkPlace(dir string) error {
	name, network, err := safefile.NetworkFS(dir)
	if err != nil {
		return dataDirError(dir, err)
	}
	if network {
		e := hub.Errorf(hub.CodeDataDirInvalid, "%s lies on %s, where a database is not safe", dir, name)
		e.Hint = "set WAVEHUB_DATA_DIR to a folder on a local disk"
		return e
	}
	return nil
}

func dataDirError(dir string, err error) error {
	e := hub.Errorf(hub.CodeDataDirInvalid, "%s cannot be used", dir)
	e.Err = err
	if u, ok := errors.AsType[*safefile.UnsafeError](err); ok {
		e.Hint = u.Fix
	}
	return e
}

// loadIdentity creates the key at the very first start only: a database whose
// key is gone is not this hub's any more.
func (h home) loadIdentity() (identity keystore.Identity, made bool, err error) {
	identity, err = keystore.Load(h.dir)
	if !errors.Is(err, keystore.ErrMissing) {
		return identity, false, wrapIdentity(err)
	}
	if _, serr := os.Stat(h.database()); !errors.Is(serr, fs.ErrNotExist) {
		e := hub.Errorf(hub.CodeIdentityMissing, "%s has a database but its key (key.pem) is missing", h.dir)
		e.Hint = "put the key back from a backup, or move the database away to begin as a new hub"
		return identity, false, e
	}
	identity, err = keystore.Create(h.dir)
	return identity, true, wrapIdentity(err)
}

func wrapIdentity(err error) error {
	if err == nil {
		return nil
	}
	return &hub.Error{Code: hub.CodeDataDirInvalid, Message: "the hub's key cannot be used", Err: err}
}

func (h home) loadTokenKey() ([]byte, error) {
	key, err := keystore.LoadSecret(h.dir, keystore.TokenKey)
	if errors.Is(err, keystore.ErrMissing) {
		if _, serr := os.Stat(h.database()); serr == nil {
			return nil, hub.Errorf(hub.CodeIdentityMissing, "%s has a database but its %s is missing", h.dir, keystore.TokenKey)
		}
		key, err = keystore.CreateSecret(h.dir, keystore.TokenKey)
	}
	return key, wrapIdentity(err)
}

func (h home) operatorToken() string {
	return keystore.DeriveToken(h.tokenKey, "whu_", "operator", "", 1)
}

func (h home) readerToken() string {
	return keystore.DeriveToken(h.tokenKey, "whr_", "reader", "", 1)
}

// writeToken leaves a file that is right alone.
func writeToken(path, token string) error {
	want := token + "\n"
	if have, err := safefile.ReadPrivate(path, 1<<10); err == nil && string(have) == want {
		return nil
	}
	if err := safefile.WriteAtomic(path, []byte(want), 0o600); err != nil {
		return fmt.Errorf("writing a token: %w", err)
	}
	return nil
}
