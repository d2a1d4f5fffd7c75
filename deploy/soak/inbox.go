//go:build unix

package main

import (
	"fmt"
	"slices"
)

// note is one message as this program knows it.
type note struct {
	id, from, kind, body string
	done                 done // of a worker_done
}

// done is what a worker_done says.
type done struct{ dispatch, outcome, evidence string }

// Kinds of messages.
const (
	kindStatus   = "status"
	kindQuestion = "question"
	kindDone     = "worker_done"
	kindGuidance = "guidance"
	kindAnswer   = "answer"
)

// inbox is what one mailbox gave its reader. A message is taken when its batch
// is acknowledged. One goroutine uses it at a time.
type inbox struct {
	box      string
	delivery string // outstanding, as far as the reader knows
	batch    []note
	acking   bool // its ack was sent and not answered
	moved    bool // a new consumer: what is left comes again, under another Delivery id
	taken    []note
	wrong    []string
}

// ack notes that the outstanding batch's ack is sent.
func (b *inbox) ack() { b.acking = b.delivery != "" }

// acked notes that the hub said that it was acknowledged.
func (b *inbox) acked() {
	b.taken = append(b.taken, b.batch...)
	b.delivery, b.batch, b.acking, b.moved = "", nil, false, false
}

// rebound notes a new consumer.
func (b *inbox) rebound() { b.moved = true }

// got notes what a check returned, and that it had to be this: the outstanding
// batch again, for a new consumer at least all of it, else what follows. The
// empty Delivery is none.
func (b *inbox) got(delivery string, ms []note) {
	switch {
	case b.delivery == "" && delivery == "":
		return
	case b.delivery == "":
	case delivery == b.delivery:
		b.same(ms)
		return
	case b.moved && delivery != "" && begins(ms, b.batch):
	case b.acking && !overlaps(ms, b.batch):
		b.acked() // the ack whose answer is not here was taken
	default:
		b.fault("%s with %d messages followed %s, which was not acknowledged and had %d", delivery, len(ms), b.delivery, len(b.batch))
	}
	b.delivery, b.batch, b.acking, b.moved = delivery, ms, false, false
}

// same notes that the outstanding batch came again.
func (b *inbox) same(ms []note) {
	if b.moved {
		b.fault("%s came to a new consumer under the same id", b.delivery)
	}
	if !slices.Equal(ms, b.batch) {
		b.fault("%s came again with other messages", b.delivery)
	}
}

func (b *inbox) fault(format string, args ...any) {
	b.wrong = append(b.wrong, b.box+": "+fmt.Sprintf(format, args...))
}

// received is what came, acknowledged or not.
func (b *inbox) received() []note { return append(slices.Clone(b.taken), b.batch...) }

func begins(all, first []note) bool {
	return len(all) >= len(first) && slices.Equal(all[:len(first)], first)
}

func overlaps(a, b []note) bool {
	return slices.ContainsFunc(a, func(n note) bool { return slices.Contains(b, n) })
}
