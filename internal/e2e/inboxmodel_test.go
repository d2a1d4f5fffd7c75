//go:build unix

package e2e

import (
	"fmt"
	"hash/maphash"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/anishathalye/porcupine"

	"github.com/wavehub/wavehub/client"
)

// inboxIn is a call about a Run's mailbox. Messages and Deliveries are runes, so
// that a queue is a string and a state can be compared.
type inboxIn struct {
	Op    string // send, check or use
	Body  rune   // of a send
	Gen   int64  // of the caller of a check
	Ack   rune   // a Delivery to acknowledge, 0 for none
	Limit int    // of a check
}

// inboxOut is its answer.
type inboxOut struct {
	Lost     bool // it never came
	Code     client.Code
	Seq      int64 // of the message sent, or of the first one received
	Batch    rune  // the Delivery, 0 for none
	Bodies   string
	Replayed bool
	Behind   int64
	Gen      int64 // of a use
}

// unseen is a Delivery that was made for a caller who was never told.
const unseen = -1

// inbox is a queue of which each message is delivered in order until it is
// acknowledged: page "contract", 3.3 and 3.7.
type inbox struct {
	Sent  int64
	Queue string // not acknowledged, the oldest first
	Batch rune   // outstanding, 0 for none
	Size  int    // messages of it
	Gen   int64
	Acked string // Deliveries acknowledged in this generation
	Known string // all Deliveries that somebody was told of
}

func (s inbox) step(in inboxIn, out inboxOut) (bool, inbox) {
	switch in.Op {
	case "send":
		s.Sent, s.Queue = s.Sent+1, s.Queue+string(in.Body)
		return out.Lost || out.Code == "" && out.Seq == s.Sent, s
	case "use":
		s.Gen, s.Batch, s.Size, s.Acked = s.Gen+1, 0, 0, ""
		return out.Lost || out.Code == "" && out.Gen == s.Gen, s
	default:
		return s.check(in, out)
	}
}

func (s inbox) check(in inboxIn, out inboxOut) (bool, inbox) {
	if code := s.refusal(in); code != "" {
		return out.Lost || out.Code == code, s
	}
	if in.Ack != 0 && in.Ack == s.Batch {
		s = s.ack()
	}
	replayed := s.Batch != 0
	if !replayed {
		s = s.form(in.Limit)
	}
	switch {
	case out.Lost:
		return true, s
	case out.Code != "" || out.Bodies != prefix(s.Queue, s.Size) || out.Behind != s.behind():
		return false, s
	case s.Size == 0:
		return out.Batch == 0, s
	}
	ok := out.Replayed == replayed && out.Seq == s.Sent-length(s.Queue)+1 && s.mayBe(out.Batch)
	return ok, s.told(out.Batch)
}

func (s inbox) refusal(in inboxIn) client.Code {
	switch {
	case in.Gen != s.Gen:
		return client.CodeConsumerFenced
	case in.Ack != 0 && in.Ack != s.Batch && !strings.ContainsRune(s.Acked, in.Ack):
		return client.CodeStaleDelivery
	}
	return ""
}

func (s inbox) ack() inbox {
	s.Queue, s.Acked = s.Queue[len(prefix(s.Queue, s.Size)):], s.Acked+string(s.Batch)
	s.Batch, s.Size = 0, 0
	return s
}

func (s inbox) form(limit int) inbox {
	if limit == 0 {
		limit = 50
	}
	if s.Size = min(limit, int(length(s.Queue))); s.Size > 0 {
		s.Batch = unseen
	}
	return s
}

// behind counts what waits behind a batch; without one there is nothing.
func (s inbox) behind() int64 { return length(s.Queue) - int64(s.Size) }

// mayBe says that the batch can have this id: its own, or one never seen.
func (s inbox) mayBe(batch rune) bool {
	if s.Batch != unseen {
		return batch == s.Batch
	}
	return batch != 0 && !strings.ContainsRune(s.Known, batch)
}

func (s inbox) told(batch rune) inbox {
	if s.Batch == unseen {
		s.Batch, s.Known = batch, s.Known+string(batch)
	}
	return s
}

func length(s string) int64 { return int64(utf8.RuneCountInString(s)) }

// prefix is the first n runes of s.
func prefix(s string, n int) string {
	for at := range s {
		if n == 0 {
			return s[:at]
		}
		n--
	}
	return s
}

// inboxModel is that of a Run whose consumer has generation 1.
var inboxModel = porcupine.Model{
	Init: func() any { return inbox{Gen: 1} },
	Step: func(state, in, out any) (bool, any) { return state.(inbox).step(in.(inboxIn), out.(inboxOut)) },
	Hash: func(state any) uint64 { return maphash.Comparable(modelSeed, state.(inbox)) },
	DescribeOperation: func(in, out any) string {
		return fmt.Sprintf("%+v → %+v", in, out)
	},
	DescribeState: func(state any) string { return fmt.Sprintf("%+v", state) },
}

var modelSeed = maphash.MakeSeed()

func sent(body rune, seq int64) step {
	return step{inboxIn{Op: "send", Body: body}, inboxOut{Seq: seq}}
}

// got is a check by generation 1, without a limit.
func got(ack, batch rune, seq int64, bodies string, replayed bool) step {
	return step{inboxIn{Op: "check", Gen: 1, Ack: ack}, inboxOut{Batch: batch, Seq: seq, Bodies: bodies, Replayed: replayed}}
}

func used(gen int64) step { return step{inboxIn{Op: "use"}, inboxOut{Gen: gen}} }

func fencedCheck(gen int64, ack rune) step {
	return step{inboxIn{Op: "check", Gen: gen, Ack: ack}, inboxOut{Code: client.CodeConsumerFenced}}
}

// by2 makes a check that of generation 2.
func by2(s step) step {
	in := s.in.(inboxIn)
	in.Gen = 2
	return step{in, s.out}
}

// firstLost is a history whose first operation was never answered.
func firstLost(steps ...step) []porcupine.Operation {
	ops := inTurn(steps...)
	ops[0].Output, ops[0].Return = inboxOut{Lost: true}, forever
	return ops
}

func TestTheInboxModelExplainsRightHistories(t *testing.T) {
	cut := firstLost(sent('a', 1), sent('b', 2), got(0, 1, 1, "ab", false))
	never := firstLost(sent('a', 1), sent('b', 1), got(0, 1, 1, "b", false), got(1, 0, 0, "", false))
	explains(t, inboxModel, true, map[string][]porcupine.Operation{
		"a queue":                     inTurn(sent('a', 1), got(0, 1, 1, "a", false), sent('b', 2), got(1, 2, 2, "b", false), got(2, 0, 0, "", false), got(1, 0, 0, "", false)),
		"a rebind":                    inTurn(sent('a', 1), got(0, 1, 1, "a", false), used(2), fencedCheck(1, 1), by2(got(0, 2, 1, "a", false))),
		"an unanswered send that was": cut,
		"one that was not":            never,
		"the first, as is learned":    learned(cut),
		"the second, as is learned":   learned(never),
	})
}

func TestTheInboxModelRejectsWrongHistories(t *testing.T) {
	late := step{inboxIn{Op: "check", Gen: 2, Ack: 1}, inboxOut{Batch: 2, Seq: 2, Bodies: "b"}}
	twice := firstLost(sent('a', 1), got(0, 1, 1, "a", false), got(1, 2, 2, "a", false), got(2, 0, 0, "", false))
	hole := firstLost(sent('a', 1), sent('b', 2), got(0, 1, 2, "b", false), got(1, 0, 0, "", false))
	explains(t, inboxModel, false, map[string][]porcupine.Operation{
		"an unanswered send came twice":           learned(twice),
		"one left a hole":                         learned(hole),
		"a message is lost":                       inTurn(sent('a', 1), sent('b', 2), got(0, 1, 1, "b", false)),
		"the last one is lost":                    inTurn(sent('a', 1), got(0, 0, 0, "", false)),
		"a send is acknowledged and has no place": inTurn(sent('a', 1), sent('b', 1)),
		"a message comes twice":                   inTurn(sent('a', 1), got(0, 1, 1, "a", false), got(1, 2, 1, "a", false)),
		"twice in a batch":                        inTurn(sent('a', 1), got(0, 1, 1, "aa", false)),
		"reordered":                               inTurn(sent('a', 1), sent('b', 2), got(0, 1, 1, "ba", false)),
		"a second batch beside one":               inTurn(sent('a', 1), got(0, 1, 1, "a", false), got(0, 2, 1, "a", false)),
		"a batch that grows":                      inTurn(sent('a', 1), got(0, 1, 1, "a", false), sent('b', 2), got(0, 1, 1, "ab", true)),
		"receiving consumes":                      inTurn(sent('a', 1), got(0, 1, 1, "a", false), got(0, 0, 0, "", false)),
		"an old id comes again":                   inTurn(sent('a', 1), got(0, 1, 1, "a", false), sent('b', 2), got(1, 1, 2, "b", false)),
		"an old ack consumes":                     inTurn(sent('a', 1), got(0, 1, 1, "a", false), sent('b', 2), got(1, 2, 2, "b", false), got(1, 0, 0, "", false)),
		"a fenced consumer receives":              inTurn(sent('a', 1), used(2), got(0, 1, 1, "a", false)),
		"a fenced ack consumes":                   inTurn(sent('a', 1), got(0, 1, 1, "a", false), used(2), fencedCheck(1, 1), by2(got(0, 0, 0, "", false))),
		"a former batch is acknowledged":          inTurn(sent('a', 1), sent('b', 2), got(0, 1, 1, "ab", false), used(2), late),
		"the batch outlives a rebind":             inTurn(sent('a', 1), got(0, 1, 1, "a", false), used(2), by2(got(0, 1, 1, "a", true))),
		"two rebinds, one generation":             inTurn(used(2), used(2)),
		"a live consumer is fenced":               inTurn(fencedCheck(1, 0)),
	})
}
