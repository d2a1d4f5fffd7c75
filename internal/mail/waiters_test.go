package mail

import (
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

func TestOneWaiterPerGeneration(t *testing.T) {
	var w waiters
	now := time.Now()
	release, err := w.claim("run:a", 1, now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.claim("run:a", 1, now.Add(3*time.Second)); !hub.IsCode(err, hub.CodeWaiterExists) {
		t.Errorf("a second waiter: %v", err)
	}
	if r, err := w.claim("run:b", 1, now); err != nil {
		t.Errorf("another mailbox: %v", err)
	} else {
		r()
	}
	newer, err := w.claim("run:a", 2, now)
	if err != nil {
		t.Fatalf("a newer generation waits for the former: %v", err)
	}
	release() // the fenced one leaves; the newer stays
	if _, err := w.claim("run:a", 2, now); !hub.IsCode(err, hub.CodeWaiterExists) {
		t.Errorf("the newer waiter was released by the former: %v", err)
	}
	newer()
	if len(w.byID) != 0 {
		t.Errorf("%d waiters are left", len(w.byID))
	}
}

// A second waiter learns for how long the first one has waited.
func TestWaiterExistsSaysForHowLong(t *testing.T) {
	var w waiters
	now := time.Now()
	release, err := w.claim("run:a", 1, now)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	for waited, want := range map[time.Duration]string{3 * time.Second: "for 3s", 95 * time.Second: "for 1m35s", 0: "for 0s"} {
		_, err := w.claim("run:a", 1, now.Add(waited))
		if !hub.IsCode(err, hub.CodeWaiterExists) || !strings.Contains(err.Error(), "run:a "+want) {
			t.Errorf("after %s: %v", waited, err)
		}
	}
}

func TestCheckInputRanges(t *testing.T) {
	for _, in := range []CheckInput{
		{WaitMS: -1}, {WaitMS: MaxWaitMS + 1}, {Limit: -1}, {Limit: hub.MaxBatch + 1}, {Ack: "x"},
		{Ack: hub.DeliveryID(hub.NewMessageID())}, {Types: []hub.MessageType{"nope"}},
	} {
		if err := in.Validate(); !hub.IsCode(err, hub.CodeInvalidArgument) {
			t.Errorf("%+v: %v", in, err)
		}
	}
}
