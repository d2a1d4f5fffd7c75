package signal

import (
	"strconv"
	"sync"
	"testing"
)

func hinted(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

func TestPublishCoalescesPerSubscription(t *testing.T) {
	var b Bus
	ch, cancel := b.Subscribe("mailbox", "a")
	defer cancel()
	for range 100 {
		b.Publish("mailbox", "a")
	}
	if !hinted(ch) || hinted(ch) {
		t.Fatal("100 hints that nobody took must leave exactly one")
	}
}

func TestSubscriptionsAreApart(t *testing.T) {
	var b Bus
	a, cancelA := b.Subscribe("mailbox", "a")
	all, cancelAll := b.Subscribe("mailbox", "")
	other, cancelOther := b.Subscribe("relay", "a")
	defer cancelA()
	defer cancelAll()
	defer cancelOther()
	b.Publish("mailbox", "b")
	if hinted(a) || !hinted(all) || hinted(other) {
		t.Fatal("a hint for mailbox b must reach the whole topic and nobody else")
	}
	b.Publish("mailbox", "")
	if hinted(a) || !hinted(all) {
		t.Fatal("a hint without a key must reach the whole topic only")
	}
}

func TestCancelEndsOneSubscriptionForGood(t *testing.T) {
	var b Bus
	gone, cancel := b.Subscribe("peer", "p")
	stays, cancelStays := b.Subscribe("peer", "p")
	cancel()
	cancel()
	b.Publish("peer", "p")
	if hinted(gone) || !hinted(stays) {
		t.Fatal("cancel must end its own subscription only")
	}
	cancelStays()
	if len(b.subs) != 0 {
		t.Fatalf("%d subjects remain after every cancel", len(b.subs))
	}
}

func TestConcurrentUse(t *testing.T) {
	var b Bus
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 500 {
				ch, cancel := b.Subscribe("t", strconv.Itoa(i%7))
				b.Publish("t", strconv.Itoa((i+w)%7))
				b.Publish("t", strconv.Itoa(i%7))
				if !hinted(ch) {
					t.Error("a hint published after Subscribe was lost")
				}
				cancel()
			}
		})
	}
	wg.Wait()
}

func BenchmarkPublishAmong10000(b *testing.B) {
	var bus Bus
	for i := range 10_000 {
		_, cancel := bus.Subscribe("mailbox", strconv.Itoa(i))
		defer cancel()
	}
	b.ReportAllocs()
	for b.Loop() {
		bus.Publish("mailbox", "5000")
	}
}
