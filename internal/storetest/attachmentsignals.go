package storetest

import (
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// attachmentSignals: whoever keeps a word on live Dispatches hears of each change
// of what it is made from, and of none that was not made.
func attachmentSignals(f *fixture) {
	n := 0
	a, h := filled[hub.Attachment](&n), filled[hub.Hold](&n)
	h.Home, h.Dispatch = a.Home, a.Dispatch
	want := hub.Signal{Topic: hub.TopicAttachment, Key: hub.AttachmentKey(a.Home, a.Dispatch)}
	for _, change := range []func(store.Tx) error{
		func(tx store.Tx) error { return tx.PutAttachment(a) },
		func(tx store.Tx) error { return tx.SaveAttachment(a) },
		func(tx store.Tx) error { return tx.PutHold(h) },
		func(tx store.Tx) error { return tx.SaveHold(h) },
		func(tx store.Tx) error { return tx.DropHold(h.Home, h.Dispatch) },
	} {
		f.update(change)
		equal(f, []hub.Signal{want}, f.published())
	}
	f.refused(hub.CodeInternal, func(tx store.Tx) error { return tx.PutAttachment(a) })
	f.refused(hub.CodeDispatchNotFound, func(tx store.Tx) error { return tx.DropHold(h.Home, h.Dispatch) })
	equal(f, []hub.Signal(nil), f.published())
}
