package storetest

import (
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

func terminals(f *fixture) {
	n := 0
	a, b, c := filled[hub.Terminal](&n), filled[hub.Terminal](&n), filled[hub.Terminal](&n)
	b.EndedAt, b.Process, b.ExitCode = 0, nil, nil
	c.EndedAt, c.Worktree = 0, a.Worktree
	f.update(func(tx store.Tx) error { return first(tx.PutTerminal(a), tx.PutTerminal(b), tx.PutTerminal(c)) })
	of := func(rx store.Rx, filter store.TerminalFilter) []hub.Terminal {
		return pages(f, 0, func(p store.Page) ([]hub.Terminal, int64, error) { return rx.TerminalList(filter, p) })
	}
	f.view(func(rx store.Rx) error {
		equal(f, []hub.Terminal{c, b, a}, of(rx, store.TerminalFilter{}))
		equal(f, []hub.Terminal{c, b}, of(rx, store.TerminalFilter{Live: true}))
		equal(f, []hub.Terminal{c, a}, of(rx, store.TerminalFilter{Worktree: a.Worktree}))
		equal(f, []hub.Terminal{c}, of(rx, store.TerminalFilter{Worktree: a.Worktree, Live: true}))
		return first(same(f, a)(rx.Terminal(a.ID)), same(f, b)(rx.Terminal(b.ID)), same(f, []hub.Terminal{b, c})(rx.OpenTerminals()))
	})
	ended := filled[hub.Terminal](&n)
	ended.ID = b.ID
	f.update(func(tx store.Tx) error { return tx.SaveTerminal(ended) })
	f.view(func(rx store.Rx) error {
		return first(same(f, ended)(rx.Terminal(b.ID)), same(f, []hub.Terminal{c})(rx.OpenTerminals()))
	})
	f.refused(hub.CodeTerminalNotFound, func(tx store.Tx) error { _, err := tx.Terminal("other"); return err })
	f.refused(hub.CodeTerminalNotFound, func(tx store.Tx) error { return tx.SaveTerminal(filled[hub.Terminal](&n)) })
	f.refused(hub.CodeInternal, func(tx store.Tx) error { return tx.PutTerminal(a) })
}

func attachedTo(f *fixture) {
	n := 0
	a, b, c, done := filled[hub.Attachment](&n), filled[hub.Attachment](&n), filled[hub.Attachment](&n), filled[hub.Attachment](&n)
	for _, x := range []*hub.Attachment{&a, &b, &c} {
		x.ExitDone, x.Tombstone = false, false
	}
	b.Terminal, done.Terminal, done.Fenced, done.ExitDone = a.Terminal, a.Terminal, true, true
	f.update(func(tx store.Tx) error {
		return first(tx.PutAttachment(a), tx.PutAttachment(b), tx.PutAttachment(c), tx.PutAttachment(done))
	})
	f.view(func(rx store.Rx) error { return same(f, []hub.Attachment{a, b})(rx.AttachedTo(a.Terminal)) })
}

// attachmentsOf: what a home has is listed newest first, and nobody else's.
func attachmentsOf(f *fixture) {
	n := 0
	a, b, other, own := filled[hub.Attachment](&n), filled[hub.Attachment](&n), filled[hub.Attachment](&n), filled[hub.Attachment](&n)
	b.Home, own.Home = a.Home, ""
	f.update(func(tx store.Tx) error {
		return first(tx.PutAttachment(a), tx.PutAttachment(other), tx.PutAttachment(own), tx.PutAttachment(b))
	})
	of := func(rx store.Rx, home hub.PeerID) []hub.Attachment {
		return pages(f, 0, func(p store.Page) ([]hub.Attachment, int64, error) { return rx.AttachmentsOf(home, p) })
	}
	f.view(func(rx store.Rx) error {
		equal(f, []hub.Attachment{b, a}, of(rx, a.Home))
		equal(f, []hub.Attachment{other}, of(rx, other.Home))
		equal(f, []hub.Attachment(nil), of(rx, ""))
		return nil
	})
}
