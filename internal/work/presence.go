package work

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// Heartbeat is a worker's own word that it lives. It is state, not mail (design
// page 4.6): the last one counts, it is kept in memory but for its usage, and
// nothing follows from it but what worker show says.
type Heartbeat struct {
	WaitingFor string // prompt, permission, worker or none
	Usage      json.RawMessage
}

// Heartbeat notes that the worker of a Dispatch lives. Only its own capability
// may, and only while it has not ended.
func (s *Service) Heartbeat(ctx context.Context, p hub.Principal, id hub.DispatchID, in Heartbeat) (at hub.Micros, err error) {
	if err := hub.CheckUsage(in.Usage); err != nil {
		return 0, err
	}
	if in.WaitingFor == "" {
		in.WaitingFor = "none"
	}
	var a hub.Attachment
	err = s.Store.View(ctx, func(rx store.Rx) error {
		a, err = dispatch.Own(rx, p, id)
		return err
	})
	if err != nil {
		return 0, err
	}
	at = hub.MicrosOf(time.Now())
	s.noteBeat(a, beat{in, at})
	if len(in.Usage) > 0 && string(in.Usage) != a.Agent.Said { // what was paid for is not forgotten by a restart
		err = s.Store.Update(ctx, store.Settle, func(tx store.Tx) error { return dispatch.Used(tx, p, id, in.Usage) })
	}
	return at, err
}

func (s *Service) noteBeat(a hub.Attachment, b beat) {
	who := attempt{a.Home, a.Dispatch}
	s.beats.note(who, b)
	s.board.heard(who)
}

// beat is the last heartbeat of a worker.
type beat struct {
	Heartbeat
	at hub.Micros
}

// beats holds the last heartbeat of each worker that sent one. Safe for
// concurrent use; the zero value is ready. It is empty after a restart.
type beats struct {
	mu   sync.Mutex
	last map[attempt]beat // guarded by mu
}

func (b *beats) note(a attempt, x beat) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last == nil {
		b.last = map[attempt]beat{}
	}
	b.last[a] = x
}

func (b *beats) of(a attempt) (beat, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	x, ok := b.last[a]
	return x, ok
}

// forget ends the presence of a worker that has ended.
func (b *beats) forget(a attempt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.last, a)
}

// present adds a worker's last heartbeat to what is observed of it.
func (s *Service) present(a hub.Attachment, obs hub.Observation) hub.Observation {
	who := attempt{a.Home, a.Dispatch}
	if a.ExitDone || a.Capability.Ended() {
		s.beats.forget(who)
		return obs
	}
	x, ok := s.beats.of(who)
	if !ok {
		return obs
	}
	obs.LastReportAt = max(obs.LastReportAt, x.at)
	if x.WaitingFor != "" {
		obs.WaitingFor = x.WaitingFor
	}
	return obs
}
