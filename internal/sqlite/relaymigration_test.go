package sqlite

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// A store of the schema before counts what it holds when it is opened: what waits,
// what is acknowledged, and what has come from others.
func TestRelayCountsAreMadeOfWhatIsThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "old.db")
	old, err := open(t.Context(), Config{Path: path}, builtin, migrations[:8])
	if err != nil {
		t.Fatal(err)
	}
	err = old.Update(t.Context(), store.New, func(tx store.Tx) error {
		for _, q := range []string{
			`INSERT INTO peers (id, name, lineage, fingerprint, addresses, role, grants, state, store_id, store_epoch, created_at, confirm_until)
				VALUES ('p', 'n', 'l', 'f', '[]', 'worker', '{}', 'active', 's', 1, 0, 0)`,
			`INSERT INTO relay_feeds (peer, direction) VALUES ('p', 'to_home')`,
			`INSERT INTO relay_queues (feed, dispatch, last_seq, last_bytes, acked_seq, acked_bytes, parked) VALUES
				(1, 'a', 2, 7, 1, 3, ''), (1, 'b', 1, 5, 0, 0, 'why'), (1, 'c', 1, 1, 1, 1, '')`,
			`INSERT INTO relay_items (feed, queue, seq, end_bytes, id, kind, payload) VALUES
				(1, 1, 1, 3, 'i1', 'message', x'010203'), (1, 2, 1, 5, 'i2', 'message', x'0102030405'),
				(1, 3, 1, 1, 'i3', 'message', x'01'), (1, 1, 2, 7, 'i4', 'message', x'01020304')`,
			`INSERT INTO relay_cursors (dispatch, lineage, store_id, store_epoch, seq) VALUES ('a', 'l', 's', 1, 4), ('b', 'l', 's', 1, 2)`,
			`INSERT INTO feed_states (peer, direction, store_id, store_epoch, position) VALUES ('p', 'to_home', 's', 1, 9)`,
		} {
			if _, err := tx.(*Tx).exec(q); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.View(context.Background(), func(rx store.Rx) error {
		items, bytes, err1 := rx.Backlog("p", hub.ToHome)
		log, err2 := rx.Log("p", hub.ToHome)
		feed, err3 := rx.Feed("p", hub.ToHome)
		cur, err4 := rx.Cursor(store.CursorKey{Lineage: "l", StoreID: "s", Epoch: 1, Dispatch: "a"})
		if items != 1 || bytes != 4 || log.Acked != 3 || log.Items != 2 || log.End != 4 || feed.Items != 6 || cur != (store.Cursor{Seq: 4, Known: 4, Pos: 9}) {
			t.Errorf("%d items, %d bytes, %+v, %+v, %+v", items, bytes, log, feed, cur)
		}
		// A source that is found to end before that has lost some of it.
		lost, _, err5 := rx.CursorsFrom(store.SourceKey{Lineage: "l", StoreID: "s", Epoch: 1}, 8, 0, 10)
		if len(lost) != 2 {
			t.Errorf("lost to a source that is behind: %+v", lost)
		}
		for _, err := range []error{err1, err2, err3, err4, err5} {
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
