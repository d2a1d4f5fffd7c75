package work

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
)

// PresenceLife is how long the presence of an attached worker, which comes every
// 30 s, counts.
const PresenceLife = 90 * time.Second

// MaxPresent bounds the Dispatches that one presence names.
const MaxPresent = 1000

// WorkerPresence is an attached worker's own word that it lives. It is state, not
// mail: the last one counts, it is kept in memory, and one serves all its
// Dispatches.
type WorkerPresence struct {
	Dispatches []hub.DispatchID // that it works on now
	Usage      json.RawMessage
}

// Present notes that the worker lives and takes up those of its Dispatches that
// it names; it returns those that have not ended.
func (s *Service) Present(ctx context.Context, p hub.Principal, in WorkerPresence) (at hub.Micros, live []hub.DispatchID, err error) {
	if err := hub.CheckUsage(in.Usage); err != nil {
		return 0, nil, err
	}
	if len(in.Dispatches) > MaxPresent {
		return 0, nil, hub.Invalid("dispatches", "at most %d are taken", MaxPresent)
	}
	if live, err = dispatch.TakeUp(ctx, s.Store, p, in.Dispatches, in.Usage); err != nil {
		return 0, nil, err
	}
	now := time.Now()
	s.workers.note(hub.WorkerID(p.ID), seen{WorkerPresence: in, at: now})
	s.board.heardWorker(hub.WorkerID(p.ID), true)
	return hub.MicrosOf(now), live, nil
}

// PresenceState is what can be said of an attached worker's being there.
type PresenceState string

// A worker is online while it waits on its mailbox. One that says it lives and
// does not wait is deaf; else it is offline.
const (
	Online  PresenceState = "online"
	Deaf    PresenceState = "deaf"
	Offline PresenceState = "offline"
)

// WorkerSeen is the presence of an identity; At is 0 for one that was not heard
// of since the hub started.
type WorkerSeen struct {
	State PresenceState
	At    hub.Micros
	Age   time.Duration
}

// Seen tells whether the worker is there.
func (s *Service) Seen(id hub.WorkerID) WorkerSeen {
	out := WorkerSeen{State: Offline}
	x, ok := s.workers.of(id)
	if ok {
		out.At, out.Age = hub.MicrosOf(x.at), time.Since(x.at)
	}
	switch {
	case s.Listening(id.Box()): // which is a sign of life of this moment
		out.State, out.At, out.Age = Online, hub.MicrosOf(time.Now()), 0
	case ok && out.Age < PresenceLife:
		out.State = Deaf
	}
	return out
}

// observeAttached is the present word on an attached worker's Dispatch: no hub can
// verify its process.
func (s *Service) observeAttached(a hub.Attachment) (hub.Observation, error) {
	obs, err := known(a)
	switch there := s.Seen(a.Worker); {
	case a.ExitDone:
		obs.WaitingFor = "none"
	case !a.TakenUp:
		obs.WaitingFor = "worker"
	case there.State != Offline:
		obs.WaitingFor = "none"
	}
	if x, ok := s.workers.of(a.Worker); ok && a.TakenUp && !a.Capability.Ended() {
		obs.LastReportAt = max(obs.LastReportAt, hub.MicrosOf(x.at))
	}
	return obs, err
}

// seen is the last presence of an attached worker.
type seen struct {
	WorkerPresence
	at time.Time
}

// presences holds the last presence of each attached worker. Safe for concurrent
// use; the zero value is ready. It is empty after a restart.
type presences struct {
	mu   sync.Mutex
	last map[hub.WorkerID]seen // guarded by mu
}

func (p *presences) note(id hub.WorkerID, x seen) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = map[hub.WorkerID]seen{}
	}
	p.last[id] = x
}

func (p *presences) of(id hub.WorkerID) (seen, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x, ok := p.last[id]
	return x, ok
}
