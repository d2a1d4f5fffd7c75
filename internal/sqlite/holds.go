package sqlite

import (
	"path/filepath"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

const (
	holdQuery     = `SELECT hold FROM holds WHERE home = ? AND dispatch = ?`
	holdsQuery    = `SELECT hold FROM holds ORDER BY rid`
	insertHold    = `INSERT INTO holds (home, dispatch, hold) VALUES (?, ?, ?)`
	updateHold    = `UPDATE holds SET hold = ? WHERE home = ? AND dispatch = ?`
	deleteHold    = `DELETE FROM holds WHERE home = ? AND dispatch = ?`
	baselineQuery = `SELECT baseline FROM baselines WHERE home = ? AND task = ? AND dir = ?`
	putBaseline   = `INSERT INTO baselines (home, task, dir, baseline) VALUES (?, ?, ?, ?)`

	besideCols = `SELECT home, task, dir, checks FROM attachments WHERE `
	inFolder   = `(dir = ? OR dir >= ? AND dir < ?)`
	openBeside = besideCols + `open = 1 AND ` + inFolder + ` ORDER BY rid LIMIT ?`
	// The unary plus leaves the search to the index of folders.
	laterBeside = besideCols + inFolder + ` AND +rid > (SELECT COALESCE(MIN(rid), 0) FROM attachments
		WHERE task = ? AND home = ? AND dir = ?) ORDER BY +rid DESC LIMIT ?`
)

func scanHold(s scanner, h *hub.Hold) error { return s.Scan(fromJSON{h}) }

func scanBeside(s scanner, b *hub.Beside) error {
	var c hub.Checks
	err := s.Scan(&b.Home, &b.Task, &b.Dir, fromJSON{&c})
	b.Scope = c.WriteScope
	return err
}

// Hold implements store.HoldReader.
func (q querier) Hold(home hub.PeerID, d hub.DispatchID) (hub.Hold, bool, error) {
	h, ok, err := one(q, scanHold, holdQuery, home, d)
	return h, ok, wrap(err, "reading what is held of %s", d)
}

// Holds implements store.HoldReader.
func (q querier) Holds() ([]hub.Hold, error) {
	hs, err := all(q, scanHold, holdsQuery)
	return hs, wrap(err, "reading what is held")
}

// Baseline implements store.HoldReader.
func (q querier) Baseline(home hub.PeerID, t hub.TaskID, dir string) (hub.Baseline, bool, error) {
	b, ok, err := one(q, func(s scanner, b *hub.Baseline) error { return s.Scan(fromJSON{b}) }, baselineQuery, home, t, dir)
	return b, ok, wrap(err, "reading the baseline of %s", t)
}

// below are the bounds of the names of what is below a folder.
func below(dir string) (from, to string) {
	return dir + string(filepath.Separator), dir + string(rune(filepath.Separator+1))
}

// besideBytes bounds the scopes that one look at a folder returns.
const besideBytes = 1 << 20

// besides reads workers of a folder; what does not fit stands as one that may
// change everything.
func (q querier) besides(limit int, query string, args ...any) ([]hub.Beside, error) {
	size := func(b hub.Beside) int { return len(b.Dir) + len(strings.Join(b.Scope, "")) }
	bs, more, err := within(q, scanBeside, size, limit, besideBytes, query, append(args, limit+1)...)
	if more {
		bs = append(bs, hub.Beside{})
	}
	return bs, err
}

// OpenBeside implements store.HoldReader.
func (q querier) OpenBeside(root string, limit int) ([]hub.Beside, error) {
	from, to := below(root)
	bs, err := q.besides(limit, openBeside, root, from, to)
	return bs, wrap(err, "looking for workers in %s", root)
}

// LaterBeside implements store.HoldReader.
func (q querier) LaterBeside(home hub.PeerID, t hub.TaskID, dir, root string, limit int) ([]hub.Beside, error) {
	from, to := below(root)
	bs, err := q.besides(limit, laterBeside, root, from, to, t, home, dir)
	return bs, wrap(err, "looking for later workers in %s", root)
}

// PutHold implements store.Holds.
func (tx *Tx) PutHold(h hub.Hold) error {
	tx.signalAttachment(h.Home, h.Dispatch)
	_, err := tx.exec(insertHold, h.Home, h.Dispatch, asJSON{h})
	return wrap(err, "holding the report of %s", h.Dispatch)
}

// SaveHold implements store.Holds.
func (tx *Tx) SaveHold(h hub.Hold) error {
	tx.signalAttachment(h.Home, h.Dispatch)
	return wrap(tx.save(noDispatch(h.Dispatch), updateHold, asJSON{h}, h.Home, h.Dispatch), "saving what is held of %s", h.Dispatch)
}

// DropHold implements store.Holds.
func (tx *Tx) DropHold(home hub.PeerID, d hub.DispatchID) error {
	tx.signalAttachment(home, d)
	return wrap(tx.save(noDispatch(d), deleteHold, home, d), "letting go what is held of %s", d)
}

// PutBaseline implements store.Holds.
func (tx *Tx) PutBaseline(home hub.PeerID, t hub.TaskID, dir string, b hub.Baseline) error {
	_, err := tx.exec(putBaseline, home, t, dir, asJSON{b})
	return wrap(err, "keeping the baseline of %s", t)
}
