package storetest

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

var errTest = errors.New("refused by the test")

// isolation runs failing closures beside good ones: each failure takes back
// its own changes and signals only.
func isolation(f *fixture) {
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			id := hub.RunID("run" + itoa(i))
			err := f.s.Update(context.Background(), store.Class(i%3), func(tx store.Tx) error {
				tx.Signal(hub.Signal{Topic: hub.TopicPeer, Key: string(id)})
				if err := tx.PutRun(hub.Run{ID: id}); err != nil || i%4 != 0 {
					return err
				}
				return errTest
			})
			if failed := errors.Is(err, errTest); failed != (i%4 == 0) {
				f.Errorf("closure %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	got := make(map[string]bool)
	for _, s := range f.published() {
		got[s.Key] = true
	}
	f.view(func(rx store.Rx) error {
		for i := range 40 {
			id := hub.RunID("run" + itoa(i))
			_, err := rx.Run(id)
			if kept := err == nil; kept != (i%4 != 0) || kept != got[string(id)] {
				f.Errorf("%s: stored %v, signalled %v", id, kept, got[string(id)])
			}
		}
		return nil
	})
}

func ownWrites(f *fixture) {
	want := hub.Run{ID: "r", Objective: "o"}
	f.update(func(tx store.Tx) error {
		if err := tx.PutRun(want); err != nil {
			return err
		}
		if first := tx.Now(); first == 0 || first != tx.Now() {
			f.Error("Now is not one instant")
		}
		err := f.s.View(context.Background(), func(rx store.Rx) error {
			_, err := rx.Run("r")
			return err
		})
		if !hub.IsCode(err, hub.CodeRunNotFound) {
			f.Errorf("a reader sees what is not committed: %v", err)
		}
		return same(f, want)(tx.Run("r"))
	})
	f.view(func(rx store.Rx) error { // a snapshot does not move
		if err := same(f, want)(rx.Run("r")); err != nil {
			return err
		}
		f.update(func(tx store.Tx) error { return tx.SaveRun(hub.Run{ID: "r", Objective: "new"}) })
		return same(f, want)(rx.Run("r"))
	})
}

func panics(f *fixture) {
	f.refused(hub.CodeInternal, func(tx store.Tx) error {
		if err := tx.PutRun(hub.Run{ID: "r"}); err != nil {
			return err
		}
		panic("by the test")
	})
	f.update(func(tx store.Tx) error { return tx.PutRun(hub.Run{ID: "r"}) })
}

func cancelled(f *fixture) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	ran := false
	err := f.s.Update(ctx, store.New, func(store.Tx) error { ran = true; return nil })
	if !errors.Is(err, context.Canceled) || ran {
		f.Errorf("a cancelled Update: %v, ran %v", err, ran)
	}
	if err := f.s.View(ctx, func(store.Rx) error { return nil }); !errors.Is(err, context.Canceled) {
		f.Errorf("a cancelled View: %v", err)
	}
	ctx, cancel = context.WithCancel(context.Background())
	err = f.s.Update(ctx, store.New, func(tx store.Tx) error { cancel(); return tx.PutRun(hub.Run{ID: "r"}) })
	if err != nil {
		f.Errorf("a cancel must not reach a running transaction: %v", err)
	}
}

func nested(f *fixture) {
	f.update(func(tx store.Tx) error {
		ran := false
		err := f.s.Update(context.Background(), store.New, func(store.Tx) error { ran = true; return nil })
		if err == nil || ran {
			f.Error("an Update inside an Update was taken")
		}
		return nil
	})
}

func tooLarge(f *fixture) {
	mib := strings.Repeat("x", 1<<20)
	put := func(count int) func(store.Tx) error {
		return func(tx store.Tx) error {
			for i := range count {
				if err := tx.PutRun(hub.Run{ID: hub.RunID(itoa(i)), Objective: mib}); err != nil {
					return err
				}
			}
			return nil
		}
	}
	f.refused(hub.CodeTooLarge, put(9))
	f.refused(hub.CodeTooLarge, func(tx store.Tx) error {
		_ = put(9)(tx) // a closure cannot overlook it
		return nil
	})
	f.update(put(7))
}

func signals(f *fixture) {
	n := 0
	m := filled[hub.Message](&n)
	m.To = "run:a"
	f.update(func(tx store.Tx) error { return tx.PutMailbox(store.Mailbox{Box: "run:a"}) })
	equal(f, []hub.Signal(nil), f.published())
	_ = f.s.Update(context.Background(), store.New, func(tx store.Tx) error {
		_, err := tx.Append(m)
		return first(err, errTest)
	})
	equal(f, []hub.Signal(nil), f.published())
	f.update(func(tx store.Tx) error {
		tx.Signal(hub.Signal{Topic: hub.TopicPeer, Key: "p"})
		_, err := tx.Append(m)
		m2 := m
		m2.ID = "another"
		_, err2 := tx.Append(m2)
		return first(err, err2)
	})
	equal(f, []hub.Signal{{Topic: hub.TopicPeer, Key: "p"}, {Topic: hub.TopicMailbox, Key: "run:a"}}, f.published())
}

// concurrent has 64 callers append to one mailbox: every sequence is given
// once, and each caller's own are in its order.
func concurrent(f *fixture) {
	f.update(func(tx store.Tx) error { return tx.PutMailbox(store.Mailbox{Box: "run:a"}) })
	const callers, each = 64, 10
	seen := make([][]int64, callers)
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for range each {
				var seq int64
				err := f.s.Update(context.Background(), store.Class(c%3), func(tx store.Tx) (err error) {
					seq, err = tx.Append(hub.Message{ID: hub.NewMessageID(), To: "run:a"})
					return err
				})
				if err != nil {
					f.Errorf("append: %v", err)
					return
				}
				seen[c] = append(seen[c], seq)
			}
		})
	}
	wg.Wait()
	given := make(map[int64]bool)
	for _, seqs := range seen {
		last := int64(0)
		for _, s := range seqs {
			if s <= last || given[s] || s > callers*each {
				f.Fatalf("sequences %v", seqs)
			}
			last, given[s] = s, true
		}
	}
	equal(f, callers*each, len(given))
}
