package relay

import (
	"slices"
	"sync"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

const (
	// maxProcesses bounds what is remembered of one peer.
	maxProcesses = 16
	// twinLife is how long a process is held for alive after it was heard of.
	twinLife = 2 * time.Minute
)

// processes knows in which order the processes of each peer's store were met. A
// hub that restarts is met as a new one and its former one never again; one that
// comes back after a later one has run beside it all the time, on a copy of the
// same files. It is safe for concurrent use; the zero value is ready.
type processes struct {
	mu sync.Mutex
	of map[hub.PeerID][]process // in the order in which they were met; guarded by mu
}

type process struct {
	nonce string
	heard time.Time
}

// hear notes a sign of life of a process of the peer.
func (ps *processes) hear(peer hub.PeerID, nonce string) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.of == nil {
		ps.of = map[hub.PeerID][]process{}
	}
	known := ps.of[peer]
	if i := indexOf(known, nonce); i >= 0 {
		known[i].heard = time.Now()
		return
	}
	known = append(known, process{nonce, time.Now()})
	ps.of[peer] = slices.Clone(known[max(0, len(known)-maxProcesses):])
}

// before reports whether process a of the peer was met before b.
func (ps *processes) before(peer hub.PeerID, a, b string) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return indexOf(ps.of[peer], a) < indexOf(ps.of[peer], b)
}

// outlived reports whether a process that was met after this one is held for alive.
func (ps *processes) outlived(peer hub.PeerID, nonce string) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	known := ps.of[peer]
	i := indexOf(known, nonce)
	return i >= 0 && slices.ContainsFunc(known[i+1:], func(p process) bool { return time.Since(p.heard) < twinLife })
}

// forget ends what is known of a peer.
func (ps *processes) forget(peer hub.PeerID) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	delete(ps.of, peer)
}

func indexOf(known []process, nonce string) int {
	return slices.IndexFunc(known, func(p process) bool { return p.nonce == nonce })
}

// What a process is told that was met before another one of the same store, and
// what is said of a peer of which that is so.
var (
	errTwin   = hub.Errorf(hub.CodePeerDuplicate, "a later process of the same store is connected; one of the two runs on a copy of its files")
	errTwinOf = hub.Errorf(hub.CodePeerDuplicate, "two processes of the peer's store run; the later one counts")
)
