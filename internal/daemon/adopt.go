package daemon

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/wavehub/wavehub/internal/config"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/sqlite"
	"github.com/wavehub/wavehub/internal/store"
)

// Adopted is a store in its new epoch.
type Adopted struct {
	StoreID string `json:"store_id"`
	Epoch   int64  `json:"store_epoch"`
	Items   int64  `json:"items_sent_again"`
}

// Adopt makes a store whose files were put back from a copy this hub's store
// again: it raises the epoch, so that no sequence is given a second meaning, and
// queues again what is not known to be acknowledged. All of it is one transaction.
// It fails with data_dir_locked while a hub serves the directory, and makes
// nothing where there is no store.
func Adopt(ctx context.Context, cfg config.Config) (out Adopted, err error) {
	h := home{dir: cfg.DataDir}
	if _, err := os.Stat(h.database()); errors.Is(err, fs.ErrNotExist) {
		e := hub.Errorf(hub.CodeDataDirInvalid, "there is no store in %s", cfg.DataDir)
		e.Hint = "put the copy of the data directory in place first, its key.pem included"
		return out, e
	}
	if _, _, err := h.loadIdentity(); err != nil { // a database without its key is refused
		return out, err
	}
	st, err := sqlite.Open(ctx, sqlite.Config{Path: h.database(), Log: newLog(cfg)})
	if err != nil {
		return out, withFix(err)
	}
	err = st.Update(ctx, store.Settle, func(tx store.Tx) (err error) {
		if out.StoreID, _, err = tx.StoreIdentity(); err != nil {
			return err
		}
		out.Epoch, out.Items, err = tx.RaiseEpoch()
		return err
	})
	return out, errors.Join(err, st.Close())
}
