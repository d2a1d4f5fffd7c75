package hub

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// MaxUsageBytes bounds the usage that a worker says of itself.
const MaxUsageBytes = 4 << 10

// MaxLivenessSecs bounds how long a worker may be silent before it is lost: 30 days.
const MaxLivenessSecs = 30 * 24 * 3600

// Presence is an owner's latest word on one live Dispatch's worker. It is state,
// not mail: the last one counts, and nothing is settled by it. Times are the
// owner's clock.
type Presence struct {
	Dispatch     DispatchID
	Process      Liveness
	LastOutputAt Micros
	LastReportAt Micros
	WaitingFor   string          // one of the Waits values
	Lost         bool            // silent for longer than its liveness
	Usage        json.RawMessage // a JSON object of at most MaxUsageBytes, or nil
	// Ended: the owner looks after it no more and says nothing further of it.
	Ended bool
}

// Same reports whether p and q say the same; outputAlone, whether they differ in
// LastOutputAt and nothing else.
func (p Presence) Same(q Presence) (same, outputAlone bool) {
	rest := p.Dispatch == q.Dispatch && p.Process == q.Process && p.LastReportAt == q.LastReportAt && p.WaitingFor == q.WaitingFor &&
		p.Lost == q.Lost && p.Ended == q.Ended && bytes.Equal(p.Usage, q.Usage)
	return rest && p.LastOutputAt == q.LastOutputAt, rest && p.LastOutputAt != q.LastOutputAt
}

// OrUnsaid is p, or for the zero value the word of an owner that knows nothing.
func (p Presence) OrUnsaid() Presence {
	if p.Dispatch == "" {
		return Presence{Process: Unverifiable, WaitingFor: WaitsForUnknown}
	}
	return p
}

// Tells reports whether p and q differ in what a home acts on: whether the worker is
// lost, what it waits for and what it has used.
func (p Presence) Tells(q Presence) bool {
	return p.Lost != q.Lost || p.WaitingFor != q.WaitingFor || !bytes.Equal(p.Usage, q.Usage)
}

var waits = []string{WaitsForPrompt, WaitsForPermission, WaitsForWorker, WaitsForVerification, WaitsForNone, WaitsForUnknown}

// Clean is a foreign hub's word without what this hub does not know: such a
// process is unverifiable, such a wait unknown, and usage that is no JSON object
// within its limit is left away.
func (p Presence) Clean() Presence {
	if p.Process != Live && p.Process != Exited {
		p.Process = Unverifiable
	}
	if !slices.Contains(waits, p.WaitingFor) {
		p.WaitingFor = WaitsForUnknown
	}
	p.Usage = CleanUsage(p.Usage)
	return p
}

func isObject(raw json.RawMessage) bool {
	var o map[string]json.RawMessage
	return json.Unmarshal(raw, &o) == nil && o != nil
}

// AttachmentKey names an attachment in signals.
func AttachmentKey(home PeerID, d DispatchID) string { return string(home) + "/" + string(d) }

// ParseAttachmentKey is the reverse; false for what is no such key.
func ParseAttachmentKey(key string) (PeerID, DispatchID, bool) {
	home, d, ok := strings.Cut(key, "/")
	return PeerID(home), DispatchID(d), ok
}

// Speaker is who is heard of when the attachment's worker speaks, as a signal's
// key: an attached worker speaks for all its Dispatches.
func (a Attachment) Speaker() string {
	if a.Attached() {
		return string(a.Worker)
	}
	return AttachmentKey(a.Home, a.Dispatch)
}

// CheckLiveness refuses a liveness out of bounds.
func (s StartSpec) CheckLiveness() error {
	if s.LivenessSecs < 0 || s.LivenessSecs > MaxLivenessSecs {
		return Invalid("liveness_secs", "must be 0 to %d", MaxLivenessSecs)
	}
	return nil
}
