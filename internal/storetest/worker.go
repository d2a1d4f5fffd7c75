package storetest

import (
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

func workers(f *fixture) {
	n := 0
	a, b := filled[hub.Worker](&n), filled[hub.Worker](&n)
	a.State, b.State = hub.WorkerActive, hub.WorkerDraining
	f.update(func(tx store.Tx) error { return first(tx.PutWorker(a), tx.PutWorker(b)) })
	f.view(func(rx store.Rx) error {
		equal(f, []hub.Worker{b, a}, pages(f, 0, rx.WorkerList))
		return first(same(f, a)(rx.Worker(a.ID)), same(f, b)(rx.WorkerByName(b.Name)))
	})
	twin := filled[hub.Worker](&n)
	twin.Name, twin.State = a.Name, hub.WorkerActive
	f.refused(hub.CodeNameTaken, func(tx store.Tx) error { return tx.PutWorker(twin) })
	a.State = hub.WorkerRevoked
	f.update(func(tx store.Tx) error { return tx.SaveWorker(a) })
	f.refused(hub.CodeWorkerNotFound, func(tx store.Tx) error { _, err := tx.WorkerByName(a.Name); return err })
	f.update(func(tx store.Tx) error { return tx.PutWorker(twin) })
	f.view(func(rx store.Rx) error {
		return first(same(f, twin)(rx.WorkerByName(a.Name)), same(f, a)(rx.Worker(a.ID)))
	})
	a.State = hub.WorkerActive
	f.refused(hub.CodeNameTaken, func(tx store.Tx) error { return tx.SaveWorker(a) })
	f.refused(hub.CodeWorkerNotFound, func(tx store.Tx) error { return tx.SaveWorker(filled[hub.Worker](&n)) })
	f.refused(hub.CodeWorkerNotFound, func(tx store.Tx) error { _, err := tx.Worker("other"); return err })
	f.refused(hub.CodeInvalidArgument, func(tx store.Tx) error { _, _, err := tx.WorkerList(store.Page{}); return err })
}

// assigned: what a worker has is found whatever its home, and is listed until it
// has ended.
func assigned(f *fixture) {
	n := 0
	mk := func(w hub.WorkerID, ended bool) hub.Attachment {
		a := filled[hub.Attachment](&n)
		a.Worker, a.ExitDone, a.Fence, a.Tombstone = w, ended, nil, false
		f.update(func(tx store.Tx) error { return tx.PutAttachment(a) })
		return a
	}
	one, two, ended, other, none := mk("w", false), mk("w", false), mk("w", true), mk("v", false), mk("", false)
	f.view(func(rx store.Rx) error {
		_, ok, err := rx.WorkerAttachment("w", other.Dispatch)
		_, managed, merr := rx.WorkerAttachment("", none.Dispatch)
		equal(f, []hub.Attachment{one, two}, f.assigned(rx, "w"))
		equal(f, []hub.Attachment(nil), f.assigned(rx, ""))
		return first(found(f, ended)(rx.WorkerAttachment("w", ended.Dispatch)), f.absent("another worker's", ok, err), f.absent("nobody's", managed, merr))
	})
	one.ExitDone = true
	f.update(func(tx store.Tx) error { return tx.SaveAttachment(one) })
	f.view(func(rx store.Rx) error { equal(f, []hub.Attachment{two}, f.assigned(rx, "w")); return nil })
}

func (f *fixture) assigned(rx store.Rx, w hub.WorkerID) []hub.Attachment {
	f.Helper()
	return pages(f, 0, func(p store.Page) ([]hub.Attachment, int64, error) { return rx.WorkerAttachments(w, p) })
}

func sessions(f *fixture) {
	n := 0
	a, b := filled[hub.Session](&n), filled[hub.Session](&n)
	b.ID, b.Home, b.BackendCtx, b.Metadata = a.ID, "", nil, nil
	f.update(func(tx store.Tx) error { return tx.SetSession(a) })
	f.view(func(rx store.Rx) error {
		_, ok, err := rx.Session("", a.ID)
		return first(found(f, a)(rx.Session(a.Home, a.ID)), same(f, a)(rx.SessionNamed(a.ID)), f.absent("a session of another home", ok, err))
	})
	f.update(func(tx store.Tx) error { return tx.SetSession(b) })
	f.view(func(rx store.Rx) error {
		return first(same(f, b)(rx.SessionNamed(a.ID)), found(f, a)(rx.Session(a.Home, a.ID)))
	})
	changed := filled[hub.Session](&n)
	changed.ID, changed.Home, changed.BackendCtx = a.ID, a.Home, nil
	f.update(func(tx store.Tx) error { return tx.SetSession(changed) })
	f.view(func(rx store.Rx) error { return found(f, changed)(rx.Session(a.Home, a.ID)) })
	f.refused(hub.CodeSessionNotFound, func(tx store.Tx) error { _, err := tx.SessionNamed("other"); return err })
}

// droppedCredential: a token that was dropped is not known, and may come again.
func droppedCredential(f *fixture) {
	n := 0
	c, other := filled[store.Credential](&n), filled[store.Credential](&n)
	f.update(func(tx store.Tx) error {
		return first(tx.PutCredential(c), tx.PutCredential(other), tx.DropCredential(c.Sum), tx.DropCredential("none"))
	})
	f.view(func(rx store.Rx) error {
		_, ok, err := rx.Credential(c.Sum)
		return first(f.absent("a dropped credential", ok, err), found(f, other)(rx.Credential(other.Sum)))
	})
	f.update(func(tx store.Tx) error { return tx.PutCredential(c) })
}

// withdrawn: mail that no Delivery has held can be taken back, once; what is
// appended to another mailbox keeps the recipient that it names.
func withdrawn(f *fixture) {
	ms := f.box("worker:w", 3) // the second is stale
	elsewhere := hub.Message{ID: hub.NewMessageID(), To: "dispatch:d", From: "hub", Type: hub.TypeGuidance, Body: "x"}
	f.published()
	f.update(func(tx store.Tx) (err error) { elsewhere.Seq, err = tx.AppendTo("worker:w", elsewhere); return err })
	equal(f, []hub.Signal{{Topic: hub.TopicMailbox, Key: "worker:w"}}, f.published())
	f.view(func(rx store.Rx) error {
		return first(same(f, elsewhere)(rx.Message(elsewhere.ID)), same(f, []hub.Message{ms[0], ms[2], elsewhere})(rx.Deliverable("worker:w", 0, 10, 1<<20)))
	})
	for range 2 {
		f.update(func(tx store.Tx) error { return tx.Withdraw("worker:w", ms[2].ID) })
		f.view(func(rx store.Rx) error {
			return first(same(f, []hub.Message{ms[0], elsewhere})(rx.Deliverable("worker:w", 0, 10, 1<<20)),
				same(f, store.Mailbox{Box: "worker:w", Seq: 4, Live: 2})(rx.Mailbox("worker:w")))
		})
	}
	f.update(func(tx store.Tx) error {
		return tx.SaveMailbox(store.Mailbox{Box: "worker:w", Seq: 4, Live: 2, HandedSeq: 1})
	})
	f.refused(hub.CodeInternal, func(tx store.Tx) error { return tx.Withdraw("worker:w", ms[0].ID) })
	f.update(func(tx store.Tx) error { return tx.Withdraw("worker:w", elsewhere.ID) })
	f.refused(hub.CodeMessageNotFound, func(tx store.Tx) error { return tx.Withdraw("worker:w", "other") })
	f.refused(hub.CodeMailboxNotFound, func(tx store.Tx) error { _, err := tx.AppendTo("worker:none", hub.Message{ID: "m"}); return err })
}
