package storetest

import (
	"path/filepath"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

func holds(f *fixture) {
	n := 0
	a, b := filled[hub.Hold](&n), filled[hub.Hold](&n)
	b.Dispatch, b.Exit, b.Process, b.Reports = a.Dispatch, nil, nil, nil
	f.update(func(tx store.Tx) error { return first(tx.PutHold(a), tx.PutHold(b)) })
	f.view(func(rx store.Rx) error {
		_, ok, err := rx.Hold("other", a.Dispatch)
		return first(found(f, a)(rx.Hold(a.Home, a.Dispatch)), found(f, b)(rx.Hold(b.Home, b.Dispatch)),
			same(f, []hub.Hold{a, b})(rx.Holds()), f.absent("a hold of another home", ok, err))
	})
	changed := filled[hub.Hold](&n)
	changed.Home, changed.Dispatch = a.Home, a.Dispatch
	f.update(func(tx store.Tx) error { return first(tx.SaveHold(changed), tx.DropHold(b.Home, b.Dispatch)) })
	f.view(func(rx store.Rx) error { return same(f, []hub.Hold{changed})(rx.Holds()) })
	f.refused(hub.CodeInternal, func(tx store.Tx) error { return tx.PutHold(a) })
	f.refused(hub.CodeDispatchNotFound, func(tx store.Tx) error { return tx.SaveHold(b) })
	f.refused(hub.CodeDispatchNotFound, func(tx store.Tx) error { return tx.DropHold(b.Home, b.Dispatch) })
	base := filled[hub.Baseline](&n)
	f.update(func(tx store.Tx) error { return tx.PutBaseline("h", "t", "/d", base) })
	f.view(func(rx store.Rx) error {
		_, ok, err := rx.Baseline("h", "t", "/e")
		return first(found(f, base)(rx.Baseline("h", "t", "/d")), f.absent("a baseline of another folder", ok, err))
	})
	f.refused(hub.CodeInternal, func(tx store.Tx) error { return tx.PutBaseline("h", "t", "/d", base) })
}

// beside: workers in a folder and below it, not those of one that only begins
// alike.
func beside(f *fixture) {
	root := filepath.FromSlash("/w/tree")
	put := func(task, dir string, open bool) hub.Beside {
		b := hub.Beside{Home: "h", Task: hub.TaskID(task), Dir: filepath.FromSlash(dir), Scope: []string{task}}
		a := hub.Attachment{Home: b.Home, Task: b.Task, Dir: b.Dir, Dispatch: hub.NewDispatchID(), ExitDone: !open,
			Process: &hub.Incarnation{}, Checks: hub.Checks{WriteScope: b.Scope}}
		f.update(func(tx store.Tx) error { return tx.PutAttachment(a) })
		return b
	}
	before := put("before", "/w/tree", true)
	put("ended", "/w/tree/sub", false)
	own := put("own", "/w/tree", false)
	put("other", "/w/trees", true)
	put("above", "/w", true)
	later, below := put("later", "/w/tree", false), put("below", "/w/tree/sub", true)
	f.view(func(rx store.Rx) error {
		return first(same(f, []hub.Beside{before, below})(rx.OpenBeside(root, 10)), same(f, []hub.Beside{before, {}})(rx.OpenBeside(root, 1)),
			same(f, []hub.Beside{below, later})(rx.LaterBeside(own.Home, own.Task, own.Dir, root, 10)),
			same(f, []hub.Beside{below, {}})(rx.LaterBeside(own.Home, own.Task, own.Dir, root, 1)))
	})
}

// posted: a recorded message gets its place once.
func posted(f *fixture) {
	n := 0
	m := filled[hub.Message](&n)
	m.Seq, m.Stale, m.History, m.To = 0, false, false, "run:posted"
	f.update(func(tx store.Tx) error {
		return first(tx.PutMailbox(store.Mailbox{Box: m.To}), tx.Record(m))
	})
	f.view(func(rx store.Rx) error { return same(f, m)(rx.Message(m.ID)) })
	m.From, m.Payload, m.Seq = "hub", []byte(`{"more":1}`), 1
	f.update(func(tx store.Tx) error { return same(f, int64(1))(tx.Post(m)) })
	f.view(func(rx store.Rx) error {
		return first(same(f, m)(rx.Message(m.ID)), same(f, []hub.Message{m})(rx.Deliverable(m.To, 0, 10, 1<<20)))
	})
	f.refused(hub.CodeMessageNotFound, func(tx store.Tx) error { _, err := tx.Post(m); return err })
	m.To = "run:none"
	f.refused(hub.CodeMailboxNotFound, func(tx store.Tx) error { _, err := tx.Post(m); return err })
}
