package signal

import (
	"slices"
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

func TestGatherKeepsTheKeys(t *testing.T) {
	var b Bus
	woken, take, cancel := b.Gather("worker")
	for _, key := range []string{"a", "b", "a"} {
		b.Publish("worker", key)
		b.Publish("mailbox", "c")
	}
	if !hinted(woken) || hinted(woken) {
		t.Fatal("keys that nobody took must leave exactly one hint")
	}
	if got := take(); len(got) != 2 || !slices.Contains(got, "a") || !slices.Contains(got, "b") {
		t.Fatalf("took %v", got)
	}
	if got := take(); len(got) != 0 {
		t.Fatalf("took %v again", got)
	}
	cancel()
	b.Publish("worker", "d")
	if hinted(woken) || len(take()) != 0 || len(b.gathered) != 0 {
		t.Fatal("cancel must end the gathering")
	}
}
