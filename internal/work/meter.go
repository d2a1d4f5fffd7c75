package work

import (
	"context"
	"errors"
	"sync"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// Meter reads what an agent's own record says that it used so far, from where its
// last call came to. It belongs to one goroutine at a time.
type Meter func(context.Context) (hub.Usage, error)

// meters are those of the agents of this hub that have come to the end of a turn. It
// is memory: a meter that is lost begins anew at the beginning of its record. The
// zero value is ready; it is safe for concurrent use.
type meters struct {
	hands hands[attempt]

	mu   sync.Mutex
	kept map[attempt]counted // guarded by mu
}

type counted struct {
	session hub.AgentSession
	read    Meter
}

func (m *meters) of(a attempt, s hub.AgentSession, fresh func() Meter) Meter {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k, ok := m.kept[a]; ok && k.session == s {
		return k.read
	}
	if m.kept == nil {
		m.kept = map[attempt]counted{}
	}
	k := counted{s, fresh()}
	m.kept[a] = k
	return k.read
}

func (m *meters) forget(a attempt) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.kept, a)
}

// meter counts, at the end of a turn, what an agent has used that says so in its
// transcript alone. Of one that goes on with a former session nothing is counted:
// the record holds what was counted for the Dispatch before, too.
func (s *Service) meter(a hub.Attachment, kind hub.AgentEventKind) {
	if kind != hub.AgentTurnEnded && kind != hub.AgentTurnFailed && kind != hub.AgentSessionEnded || a.Spec.ResumeSession {
		return
	}
	who := attempt{a.Home, a.Dispatch}
	s.Spawn(func(ctx context.Context) {
		release, err := s.meters.hands.take(ctx, who)
		if err != nil {
			return
		}
		defer release()
		if err := s.count(ctx, who); err != nil && ctx.Err() == nil && !errors.Is(err, ErrNoTranscript) {
			s.Log.Debug("counting what an agent used", "dispatch_id", who.id, "error", err)
		}
	})
}

func (s *Service) count(ctx context.Context, who attempt) error {
	a, err := s.attachment(ctx, who.home, who.id)
	if err != nil || a.Agent.Session.Transcript == "" || a.Capability.Ended() && a.ExitDone {
		return err
	}
	read := s.meters.of(who, a.Agent.Session, func() Meter { return s.Transcripts.Meter(a.Agent.Session, a.Terminal) })
	used, err := read(ctx)
	if err != nil {
		s.meters.forget(who)
		return err
	}
	return s.Store.Update(ctx, store.Settle, func(tx store.Tx) error { return dispatch.Metered(tx, who.home, who.id, used) })
}
