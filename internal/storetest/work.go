package storetest

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// pages reads a list to its end, two rows at a time.
func pages[T any](f *fixture, start int64, list func(store.Page) ([]T, int64, error)) []T {
	f.Helper()
	var out []T
	for p := (store.Page{Before: start, Limit: 2}); ; {
		rows, next, err := list(p)
		if err != nil || len(rows) > p.Limit || len(out) > 100 {
			f.Fatalf("page of %d rows after %d: %v", len(rows), len(out), err)
		}
		out = append(out, rows...)
		if next == 0 {
			return out
		}
		p.Before = next
	}
}

func runs(f *fixture) {
	n := 0
	rs := make([]hub.Run, 5)
	for i := range rs {
		rs[len(rs)-1-i] = filled[hub.Run](&n)
		f.update(func(tx store.Tx) error { return tx.PutRun(rs[len(rs)-1-i]) })
	}
	f.view(func(rx store.Rx) error {
		equal(f, rs, pages(f, 0, rx.RunList))
		return same(f, rs[2])(rx.Run(rs[2].ID))
	})
	changed := filled[hub.Run](&n)
	changed.ID = rs[2].ID
	f.update(func(tx store.Tx) error { return tx.SaveRun(changed) })
	f.view(func(rx store.Rx) error { return same(f, changed)(rx.Run(changed.ID)) })
	f.refused(hub.CodeInternal, func(tx store.Tx) error { return tx.PutRun(changed) })
	f.refused(hub.CodeRunNotFound, func(tx store.Tx) error { return tx.SaveRun(filled[hub.Run](&n)) })
	f.refused(hub.CodeRunNotFound, func(tx store.Tx) error { _, err := tx.Run("other"); return err })
}

func bindings(f *fixture) {
	n := 0
	r1, r2 := filled[hub.Run](&n), filled[hub.Run](&n)
	r1.Generation, r2.Generation = 2, 1
	b := hub.Binding{Run: r1.ID, Generation: 2, Context: "c", At: 5}
	token1 := hub.Binding{Run: r1.ID, Generation: 1, At: 6}
	token2 := hub.Binding{Run: r2.ID, Generation: 1, At: 7}
	f.update(func(tx store.Tx) error {
		return first(tx.PutRun(r1), tx.PutRun(r2), tx.SetBinding(b), tx.SetBinding(token1), tx.SetBinding(token2))
	})
	f.view(func(rx store.Rx) error {
		_, ok, err := rx.Binding("")
		return first(found(f, b)(rx.Binding("c")), found(f, b)(rx.Holder(r1.ID)), found(f, token2)(rx.Holder(r2.ID)),
			f.absent("a binding of no context", ok, err))
	})
	r2.Generation = 2
	moved := hub.Binding{Run: r2.ID, Generation: 2, Context: "c", At: 8}
	f.update(func(tx store.Tx) error { return first(tx.SaveRun(r2), tx.SetBinding(moved)) })
	f.view(func(rx store.Rx) error {
		_, ok, err := rx.Holder(r1.ID)
		return first(found(f, moved)(rx.Binding("c")), found(f, moved)(rx.Holder(r2.ID)),
			f.absent("a holder of the Run that the context left", ok, err))
	})
}

func audits(f *fixture) {
	n := 0
	a, b, other := filled[hub.Audit](&n), filled[hub.Audit](&n), filled[hub.Audit](&n)
	b.Run = a.Run
	f.update(func(tx store.Tx) error { return first(tx.AddAudit(a), tx.AddAudit(other), tx.AddAudit(b)) })
	f.view(func(rx store.Rx) error {
		return first(same(f, []hub.Audit{b, a})(rx.Audits(a.Run, 10)), same(f, []hub.Audit{b})(rx.Audits(a.Run, 1)))
	})
}

func tasks(f *fixture) {
	n := 0
	a, b := filled[hub.Task](&n), filled[hub.Task](&n)
	a.Dependencies, a.WriteScope = nil, nil
	b.Dependencies = []hub.TaskID{a.ID, "later"}
	f.update(func(tx store.Tx) error { return first(tx.PutTask(a), tx.PutTask(b)) })
	f.view(func(rx store.Rx) error {
		return first(same(f, a)(rx.Task(a.ID)), same(f, b)(rx.Task(b.ID)),
			same(f, []hub.TaskID{b.ID})(rx.Dependents(a.ID)), same(f, []hub.TaskID{b.ID})(rx.Dependents("later")),
			same(f, []hub.TaskID(nil))(rx.Dependents(b.ID)))
	})
	moved := filled[hub.Task](&n) // of which the text is not kept
	moved.ID = b.ID
	f.update(func(tx store.Tx) error { return tx.SaveTask(moved) })
	want := b
	want.State, want.Latest, want.Version, want.UpdatedAt = moved.State, moved.Latest, moved.Version, moved.UpdatedAt
	want.Result, want.ResultData = moved.Result, moved.ResultData
	f.view(func(rx store.Rx) error {
		return first(same(f, want)(rx.Task(b.ID)), same(f, want.State)(rx.TaskState(b.ID)))
	})
	f.refused(hub.CodeTaskNotFound, func(tx store.Tx) error { _, err := tx.TaskState("other"); return err })
	want.Title, want.Spec = "another title", "another text"
	f.update(func(tx store.Tx) error { return tx.SaveTaskText(want) })
	f.view(func(rx store.Rx) error { return same(f, want)(rx.Task(b.ID)) })
	f.refused(hub.CodeInternal, func(tx store.Tx) error { return tx.PutTask(a) })
	f.refused(hub.CodeTaskNotFound, func(tx store.Tx) error { return tx.SaveTask(filled[hub.Task](&n)) })
	f.refused(hub.CodeTaskNotFound, func(tx store.Tx) error { _, err := tx.Task("other"); return err })
}

func taskPages(f *fixture) {
	n := 0
	var old, ready []hub.Task
	f.update(func(tx store.Tx) error {
		old, ready = nil, nil
		for i := range 7 {
			t := filled[hub.Task](&n)
			t.Run, t.State = "run", hub.TaskPending
			if i%2 == 0 {
				t.State = hub.TaskReady
				ready = append(ready, t)
			}
			old = append(old, t)
			if err := first(tx.PutTask(t), tx.PutTask(filled[hub.Task](&n))); err != nil {
				return err
			}
		}
		return nil
	})
	f.view(func(rx store.Rx) error {
		equal(f, old, pages(f, 0, func(p store.Page) ([]hub.Task, int64, error) { return rx.TaskList("run", "", p) }))
		equal(f, ready, pages(f, 0, func(p store.Page) ([]hub.Task, int64, error) { return rx.TaskList("run", hub.TaskReady, p) }))
		return nil
	})
}

func dispatches(f *fixture) {
	n := 0
	d, r := filled[hub.Dispatch](&n), filled[hub.Receipt](&n)
	local := filled[hub.Dispatch](&n)
	local.ExitCode = nil
	f.update(func(tx store.Tx) error {
		return first(tx.PutDispatch(d, r, []byte("exact \x00 bytes")), tx.PutDispatch(local, hub.Receipt{}, nil))
	})
	f.view(func(rx store.Rx) error {
		return first(same(f, d)(rx.Dispatch(d.ID)), same(f, r)(rx.StartReceipt(d.ID)),
			same(f, []byte("exact \x00 bytes"))(rx.PeerRequest(d.ID)),
			same(f, local)(rx.Dispatch(local.ID)), same(f, hub.Receipt{})(rx.StartReceipt(local.ID)),
			same(f, []byte(nil))(rx.PeerRequest(local.ID)))
	})
	r2 := filled[hub.Receipt](&n)
	f.update(func(tx store.Tx) error { return tx.SaveStartReceipt(d.ID, r2) })
	f.view(func(rx store.Rx) error { return same(f, r2)(rx.StartReceipt(d.ID)) })
	f.refused(hub.CodeInternal, func(tx store.Tx) error { return tx.PutDispatch(d, r, nil) })
	for _, fn := range []func(store.Tx) error{
		func(tx store.Tx) error { _, err := tx.Dispatch("other"); return err },
		func(tx store.Tx) error { _, err := tx.StartReceipt("other"); return err },
		func(tx store.Tx) error { _, err := tx.PeerRequest("other"); return err },
		func(tx store.Tx) error { return tx.SaveStartReceipt("other", r) },
		func(tx store.Tx) error {
			_, err := tx.SwapDispatch(hub.Dispatch{ID: "other"}, hub.Dispatch{ID: "other"})
			return err
		},
	} {
		f.refused(hub.CodeDispatchNotFound, fn)
	}
}

func dispatchFilters(f *fixture) {
	n := 0
	mk := func(run, task, peer string, s hub.DispatchState) hub.Dispatch {
		d := filled[hub.Dispatch](&n)
		d.Run, d.Task, d.Server.PeerID, d.State = hub.RunID(run), hub.TaskID(task), hub.PeerID(peer), s
		f.update(func(tx store.Tx) error { return tx.PutDispatch(d, hub.Receipt{}, nil) })
		return d
	}
	a, b := mk("r", "t", "", hub.Failed), mk("r", "t", "p", hub.Ready)
	c, d := mk("r", "u", "p", hub.Abandoned), mk("s", "v", "p", hub.StopUnknown)
	e := mk("r", "t", "", hub.Starting)
	for _, c := range []struct {
		f    store.DispatchFilter
		want []hub.Dispatch
	}{
		{store.DispatchFilter{}, []hub.Dispatch{e, d, c, b, a}},
		{store.DispatchFilter{Run: "r"}, []hub.Dispatch{e, c, b, a}},
		{store.DispatchFilter{Run: "r", Task: "t"}, []hub.Dispatch{e, b, a}},
		{store.DispatchFilter{Peer: "p"}, []hub.Dispatch{d, c, b}},
		{store.DispatchFilter{Live: true}, []hub.Dispatch{e, d, b}},
		{store.DispatchFilter{Run: "r", Peer: "p", Live: true}, []hub.Dispatch{b}},
		{store.DispatchFilter{Task: "none"}, nil},
	} {
		f.view(func(rx store.Rx) error {
			equal(f, c.want, pages(f, 0, func(p store.Page) ([]hub.Dispatch, int64, error) { return rx.DispatchList(c.f, p) }))
			return nil
		})
	}
}

// swapRace lets many callers swap from the value that each has read: one wins
// each version, the losers change nothing.
func swapRace(f *fixture) {
	n := 0
	d := filled[hub.Dispatch](&n)
	d.State = hub.Starting
	f.update(func(tx store.Tx) error { return tx.PutDispatch(d, hub.Receipt{}, nil) })
	f.published()
	var won atomic.Int32
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			nd := d
			nd.State, nd.Reason, nd.Version = hub.Ready, itoa(i), 0
			swapped := false
			err := f.s.Update(context.Background(), store.Settle, func(tx store.Tx) (err error) {
				swapped, err = tx.SwapDispatch(d, nd)
				return err
			})
			if err != nil {
				f.Errorf("swap: %v", err)
			}
			if swapped {
				won.Add(1)
			}
		})
	}
	wg.Wait()
	equal(f, int32(1), won.Load())
	equal(f, []hub.Signal{{Topic: hub.TopicDispatch, Key: string(d.ID)}}, f.published())
	f.view(func(rx store.Rx) error {
		got, err := rx.Dispatch(d.ID)
		want := d
		want.State, want.Reason, want.Version = hub.Ready, got.Reason, d.Version+1
		equal(f, want, got)
		return err
	})
}

func attachments(f *fixture) {
	n := 0
	a, b := filled[hub.Attachment](&n), filled[hub.Attachment](&n)
	b.Dispatch, b.Home, b.Process, b.Fence = a.Dispatch, "", nil, nil
	f.update(func(tx store.Tx) error { return first(tx.PutAttachment(a), tx.PutAttachment(b)) })
	f.view(func(rx store.Rx) error {
		_, ok, err := rx.Attachment("other", a.Dispatch)
		return first(found(f, a)(rx.Attachment(a.Home, a.Dispatch)), found(f, b)(rx.Attachment("", a.Dispatch)),
			f.absent("an attachment of another home", ok, err))
	})
	changed := filled[hub.Attachment](&n)
	changed.Home, changed.Dispatch = a.Home, a.Dispatch
	f.update(func(tx store.Tx) error { return tx.SaveAttachment(changed) })
	f.view(func(rx store.Rx) error {
		return first(found(f, changed)(rx.Attachment(a.Home, a.Dispatch)), found(f, b)(rx.Attachment("", a.Dispatch)))
	})
	f.refused(hub.CodeInternal, func(tx store.Tx) error { return tx.PutAttachment(a) })
	f.refused(hub.CodeDispatchNotFound, func(tx store.Tx) error { return tx.SaveAttachment(filled[hub.Attachment](&n)) })
}

func openAttachments(f *fixture) {
	proc := &hub.Incarnation{Nonce: "n"}
	fence := &hub.FenceItem{Request: "r"}
	failed := hub.Receipt{State: hub.StartFailed}
	var want []hub.DispatchID
	for i, c := range []struct {
		a    hub.Attachment
		open bool
	}{
		{hub.Attachment{}, true}, // a start under way
		{hub.Attachment{Process: proc}, true},
		{hub.Attachment{Process: proc, Receipt: failed}, true},
		{hub.Attachment{Process: proc, ExitDone: true}, false},
		{hub.Attachment{Process: proc, ExitDone: true, Fence: fence}, true},
		{hub.Attachment{Process: proc, ExitDone: true, Fence: fence, Fenced: true}, false},
		{hub.Attachment{Tombstone: true}, false},
		{hub.Attachment{Tombstone: true, Fence: fence}, true},
		{hub.Attachment{Receipt: failed}, false},
	} {
		c.a.Dispatch = hub.DispatchID(itoa(i))
		f.update(func(tx store.Tx) error { return tx.PutAttachment(c.a) })
		if c.open {
			want = append(want, c.a.Dispatch)
		}
	}
	ids := func() (got []hub.DispatchID) {
		f.view(func(rx store.Rx) error {
			as, err := rx.OpenAttachments()
			for _, a := range as {
				got = append(got, a.Dispatch)
			}
			return err
		})
		return got
	}
	equal(f, want, ids())
	f.update(func(tx store.Tx) error { return tx.SaveAttachment(hub.Attachment{Dispatch: "0", ExitDone: true}) })
	equal(f, want[1:], ids())
}

func abbreviations(f *fixture) {
	n := 0
	run := filled[hub.Run](&n)
	run.ID = "run_0123456789abcdefghjkmnpq01"
	other := filled[hub.Run](&n)
	other.ID = "run_0123456789abcdefghjkmnpq02"
	m, own, foreign := filled[hub.Message](&n), filled[store.Receipt](&n), filled[store.Receipt](&n)
	m.ID, own.Key, foreign.Key = "msg_0123456789abcdefghjkmnpq03", "req_0123456789abcdefghjkmnpq04", "req_0123456789abcdefghjkmnpq05"
	own.Space, foreign.Space = "local", "peer:hub_x"
	f.update(func(tx store.Tx) error {
		return first(tx.PutRun(run), tx.PutRun(other), tx.Record(m), tx.PutReceipt(own), tx.PutReceipt(foreign))
	})
	f.view(func(rx store.Rx) error {
		return first(
			same(f, []string{string(m.ID)})(rx.IDsEnding("mnpq03")),
			same(f, []string{string(own.Key)})(rx.IDsFrom(hub.PrefixRequest, "req_01234567")),
			same(f, []string{string(run.ID), string(other.ID)})(rx.IDsFrom(hub.PrefixRun, "run_01234567")),
			same(f, []string{string(other.ID)})(rx.IDsFrom(hub.PrefixRun, "run_0123456789abcdefghjkmnpq02")),
			same(f, []string(nil))(rx.IDsFrom(hub.PrefixTask, "task_01234567")),
			same(f, []string{string(run.ID)})(rx.IDsEnding("mnpq01")),
			same(f, []string{string(own.Key)})(rx.IDsEnding("mnpq04")),
			same(f, []string(nil))(rx.IDsEnding("mnpq05")),
			same(f, []string(nil))(rx.IDsEnding("zzzzzz")),
		)
	})
}
