package storetest

import (
	"strconv"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

func itoa(n int) string { return strconv.Itoa(n) }

func receipts(f *fixture) {
	n := 0
	a, b := filled[store.Receipt](&n), filled[store.Receipt](&n)
	a.State, b.State = store.ReceiptRunning, store.ReceiptDone
	b.Principal, b.Body = a.Principal, nil
	f.update(func(tx store.Tx) error { return first(tx.PutReceipt(a), tx.PutReceipt(b)) })
	f.view(func(rx store.Rx) error {
		_, ok, err := rx.Receipt(b.Space, a.Key)
		return first(found(f, a)(rx.Receipt(a.Space, a.Key)), found(f, b)(rx.Receipt(b.Space, b.Key)),
			f.absent("a receipt of another space", ok, err))
	})
	f.unfinished(a.Principal, 1)
	f.refused(hub.CodeInternal, func(tx store.Tx) error { return tx.PutReceipt(a) })
	c := filled[store.Receipt](&n)
	c.Space, c.Key, c.Principal, c.State = a.Space, a.Key, a.Principal, store.ReceiptUnknown
	f.update(func(tx store.Tx) error { return tx.SaveReceipt(c) })
	f.unfinished(a.Principal, 1)
	c.State = store.ReceiptDone
	f.update(func(tx store.Tx) error { return tx.SaveReceipt(c) })
	f.view(func(rx store.Rx) error { return found(f, c)(rx.Receipt(a.Space, a.Key)) })
	f.unfinished(a.Principal, 0)
	f.refused(hub.CodeRequestNotFound, func(tx store.Tx) error { return tx.SaveReceipt(filled[store.Receipt](&n)) })
}

func (f *fixture) unfinished(principal string, want int) {
	f.Helper()
	f.update(func(tx store.Tx) error { return same(f, want)(tx.UnfinishedReceipts(principal)) })
}

// sweptReceipts: a sweep goes on where the last one ended, stops at what is too
// young and leaves unfinished receipts as they are.
func sweptReceipts(f *fixture) {
	n := 0
	var all []store.Receipt
	for i, state := range []store.ReceiptState{store.ReceiptDone, store.ReceiptRunning, store.ReceiptDone, store.ReceiptDone, store.ReceiptDone} {
		r := filled[store.Receipt](&n)
		r.State, r.CreatedAt = state, hub.Micros(i+1)
		all = append(all, r)
		f.update(func(tx store.Tx) error { return tx.PutReceipt(r) })
	}
	all[0].Body, all[2].Body = nil, nil
	for _, want := range []int{2, 1, 0} {
		f.update(func(tx store.Tx) error { return same(f, want)(tx.SweepReceipts(4, 2)) })
	}
	for _, r := range all {
		f.view(func(rx store.Rx) error { return found(f, r)(rx.Receipt(r.Space, r.Key)) })
	}
}

// first returns the first error.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func credentials(f *fixture) {
	n := 0
	c := filled[store.Credential](&n)
	f.update(func(tx store.Tx) error { return first(tx.PutCredential(c), tx.PutCredential(c)) })
	f.view(func(rx store.Rx) error {
		_, ok, err := rx.Credential("other")
		return first(found(f, c)(rx.Credential(c.Sum)), f.absent("a credential", ok, err))
	})
	other := filled[store.Credential](&n)
	other.Sum = c.Sum
	f.refused(hub.CodeInternal, func(tx store.Tx) error { return tx.PutCredential(other) })
	f.view(func(rx store.Rx) error { return found(f, c)(rx.Credential(c.Sum)) })
}

func peers(f *fixture) {
	n := 0
	a, b := filled[hub.Peer](&n), filled[hub.Peer](&n)
	a.State, b.State = hub.PeerActive, hub.PeerPending
	b.Addresses = nil
	f.update(func(tx store.Tx) error { return first(tx.PutPeer(a), tx.PutPeer(b)) })
	f.view(func(rx store.Rx) error {
		_, ok, err := rx.PeerByFingerprint("other")
		return first(same(f, a)(rx.Peer(a.ID)), same(f, b)(rx.PeerByName(b.Name)),
			found(f, b)(rx.PeerByFingerprint(b.Fingerprint)), f.absent("a peer", ok, err),
			same(f, []hub.Peer{b, a})(rx.PeerList()))
	})
	twin := filled[hub.Peer](&n)
	twin.Name, twin.State = a.Name, hub.PeerActive
	f.refused(hub.CodeNameTaken, func(tx store.Tx) error { return tx.PutPeer(twin) })
	renamed := b
	renamed.Name = a.Name
	f.refused(hub.CodeNameTaken, func(tx store.Tx) error { return tx.SavePeer(renamed) })
	sameKey := filled[hub.Peer](&n)
	sameKey.Fingerprint = a.Fingerprint
	f.refused(hub.CodeInternal, func(tx store.Tx) error { return tx.PutPeer(sameKey) })
	f.removedPeer(a, twin)
	f.pairedAgain(a)
	f.refused(hub.CodePeerNotFound, func(tx store.Tx) error { return tx.SavePeer(sameKey) })
	f.refused(hub.CodePeerNotFound, func(tx store.Tx) error { _, err := tx.Peer("other"); return err })
	f.refused(hub.CodePeerNotFound, func(tx store.Tx) error { _, err := tx.PeerByName("other"); return err })
}

// pairedAgain checks that a removed peer frees its key too, and that what has
// the key now comes before what had it.
func (f *fixture) pairedAgain(a hub.Peer) {
	a.State = hub.PeerRemoved
	again, later := a, a
	again.ID, again.Name, again.StoreID, again.State = hub.NewPeerID(), "again", "other", hub.PeerActive
	later.ID, later.Name = hub.NewPeerID(), "later"
	f.update(func(tx store.Tx) error { return first(tx.PutPeer(again), tx.PutPeer(later)) })
	f.view(func(rx store.Rx) error {
		return first(found(f, again)(rx.PeerByFingerprint(a.Fingerprint)),
			same(f, []hub.Peer{later, again, a})(rx.PeersOf(a.Lineage)), same(f, []hub.Peer(nil))(rx.PeersOf("other")))
	})
	twice := again
	twice.ID, twice.Name = hub.NewPeerID(), "twice"
	f.refused(hub.CodeInternal, func(tx store.Tx) error { return tx.PutPeer(twice) })
	again.State = hub.PeerRemoved
	f.update(func(tx store.Tx) error { return tx.SavePeer(again) })
	f.view(func(rx store.Rx) error { return found(f, later)(rx.PeerByFingerprint(a.Fingerprint)) })
}

// removedPeer checks that a removed peer frees its name, and that its key still
// finds it.
func (f *fixture) removedPeer(a, twin hub.Peer) {
	a.State = hub.PeerRemoved
	f.update(func(tx store.Tx) error { return tx.SavePeer(a) })
	f.refused(hub.CodePeerNotFound, func(tx store.Tx) error { _, err := tx.PeerByName(a.Name); return err })
	f.update(func(tx store.Tx) error { return tx.PutPeer(twin) })
	f.view(func(rx store.Rx) error {
		return first(same(f, twin)(rx.PeerByName(a.Name)), same(f, a)(rx.Peer(a.ID)),
			found(f, a)(rx.PeerByFingerprint(a.Fingerprint)))
	})
}

func invites(f *fixture) {
	n := 0
	open, used, late := filled[hub.Invite](&n), filled[hub.Invite](&n), filled[hub.Invite](&n)
	open.Used, open.ExpiresAt = false, 1000
	used.Slot, used.Key, used.ExpiresAt = open.Slot, nil, 1000
	late.Used, late.ExpiresAt = false, 500
	f.update(func(tx store.Tx) error { return first(tx.PutInvite(used), tx.PutInvite(open), tx.PutInvite(late)) })
	f.view(func(rx store.Rx) error {
		_, ok, err := rx.InviteBySlot("???")
		return first(same(f, open)(rx.Invite(open.ID)), same(f, used)(rx.Invite(used.ID)),
			found(f, open)(rx.InviteBySlot(open.Slot)), f.absent("an invite", ok, err),
			same(f, []hub.Invite{open, late})(rx.OpenInvites(499)),
			same(f, []hub.Invite{open})(rx.OpenInvites(500)))
	})
	f.view(func(rx store.Rx) error {
		newest, next, err := rx.InviteList(store.Page{Limit: 2})
		rest, end, err2 := rx.InviteList(store.Page{Limit: 2, Before: next})
		equal(f, []hub.Invite{late, open, used}, append(newest, rest...))
		equal(f, int64(0), end)
		return first(err, err2)
	})
	open.Used = true
	f.update(func(tx store.Tx) error { return tx.SaveInvite(open) })
	f.view(func(rx store.Rx) error { return same(f, []hub.Invite(nil))(rx.OpenInvites(500)) })
	f.refused(hub.CodeInviteNotFound, func(tx store.Tx) error { _, err := tx.Invite("other"); return err })
	f.refused(hub.CodeInviteNotFound, func(tx store.Tx) error { return tx.SaveInvite(filled[hub.Invite](&n)) })
}

func identity(f *fixture) {
	var id string
	f.view(func(rx store.Rx) error {
		got, epoch, err := rx.StoreIdentity()
		id = got
		if !hub.ValidID("store_", id) || epoch != 1 {
			f.Errorf("identity %q, epoch %d", id, epoch)
		}
		return err
	})
	f.update(func(tx store.Tx) error {
		got, _, err := tx.StoreIdentity()
		if got != id {
			f.Errorf("the writer knows store %q, readers %q", got, id)
		}
		return err
	})
}

func counts(f *fixture) {
	n := 0
	live, done := filled[hub.Dispatch](&n), filled[hub.Dispatch](&n)
	live.State, done.State = hub.Stopping, hub.Failed
	f.update(func(tx store.Tx) error {
		return first(tx.PutRun(filled[hub.Run](&n)), tx.PutTask(filled[hub.Task](&n)), tx.PutTask(filled[hub.Task](&n)),
			tx.PutDispatch(live, hub.Receipt{}, nil), tx.PutDispatch(done, hub.Receipt{}, nil),
			tx.Record(filled[hub.Message](&n)))
	})
	f.view(func(rx store.Rx) error {
		return same(f, store.Counts{Runs: 1, Tasks: 2, DispatchesLive: 1, Messages: 1})(rx.Counts())
	})
}

// limits checks that a page without a limit is refused, not silently empty.
func limits(f *fixture) {
	for _, list := range []func(store.Tx) error{
		func(tx store.Tx) error { _, _, err := tx.RunList(store.Page{}); return err },
		func(tx store.Tx) error { _, _, err := tx.TaskList("r", "", store.Page{}); return err },
		func(tx store.Tx) error {
			_, _, err := tx.DispatchList(store.DispatchFilter{}, store.Page{})
			return err
		},
		func(tx store.Tx) error { _, _, err := tx.RepoList(store.Page{Limit: -1}); return err },
		func(tx store.Tx) error { _, _, err := tx.WorktreeList("", store.Page{}); return err },
		func(tx store.Tx) error { _, err := tx.Audits("r", 0); return err },
		func(tx store.Tx) error { _, _, err := tx.History("run:r", store.HistoryFilter{}); return err },
	} {
		f.refused(hub.CodeInvalidArgument, list)
	}
}
