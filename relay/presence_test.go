package relay

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/testkit"
	"github.com/wavehub/wavehub/relay/wire"
)

// speaker is an owner's words and a home's memory of them.
type speaker struct {
	mu      sync.Mutex
	words   []hub.Presence // as owner, in the order of their change
	told    *telling       // the last subscription
	tells   int
	ended   int
	heard   map[hub.DispatchID]hub.Presence // as home
	frames  int
	firsts  int
	vouches int
}

type telling struct {
	s     *speaker
	next  int
	woken chan struct{}
}

func (s *speaker) Tell(hub.PeerID) Telling {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tells++
	s.told = &telling{s: s, woken: make(chan struct{}, 1)}
	return s.told
}

// say changes the word on a Dispatch.
func (s *speaker) say(p hub.Presence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.words, func(w hub.Presence) bool { return w.Dispatch == p.Dispatch })
	if i >= 0 {
		s.words = slices.Delete(s.words, i, i+1)
		if s.told != nil && i < s.told.next {
			s.told.next--
		}
	}
	s.words = append(s.words, p)
	if s.told != nil {
		poke(s.told.woken)
	}
}

func (t *telling) Changed() <-chan struct{} { return t.woken }

func (t *telling) Next(limit int) []hub.Presence {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	n := min(limit, len(t.s.words)-t.next)
	out := slices.Clone(t.s.words[t.next : t.next+n])
	t.next += n
	return out
}

func (t *telling) End() {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	t.s.ended++
}

func (s *speaker) Hear(_ hub.PeerID, words []hub.Presence, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frames++
	if first || s.heard == nil {
		s.firsts++
		s.heard = map[hub.DispatchID]hub.Presence{}
	}
	for _, p := range words {
		s.heard[p.Dispatch] = p
	}
}

func (s *speaker) Vouched(hub.PeerID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.vouches++
}

// knows reports whether the home has exactly the owner's words.
func (s *speaker) knows(owner *speaker) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	owner.mu.Lock()
	defer owner.mu.Unlock()
	for _, p := range owner.words {
		if same, _ := p.Same(s.heard[p.Dispatch]); !same {
			return false
		}
	}
	return len(owner.words) == len(s.heard)
}

func (s *speaker) counts() (frames, firsts, vouches int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.frames, s.firsts, s.vouches
}

// speaking is a pair of which both sides can speak of workers.
func speaking(t *testing.T) (p *pair, home, owner *speaker) {
	p, home, owner = newPair(t, testkit.NewFaultNet(1, testkit.Faults{})), &speaker{}, &speaker{}
	p.puller.cfg.Session.cfg.Presence, p.desk.session.cfg.Presence = home, owner
	return p, home, owner
}

func live(d hub.DispatchID, output hub.Micros) hub.Presence {
	return hub.Presence{Dispatch: d, Process: hub.Live, WaitingFor: hub.WaitsForNone, LastOutputAt: output}
}

// Invariant R11: all once per session, then what has changed, and a ping for the
// rest.
func TestPresenceIsToldOnceAndOnChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, home, owner := speaking(t)
		ds := dispatches(2000)
		for _, d := range ds {
			owner.say(live(d, 1))
		}
		p.start()
		eventually(t, 5*time.Second, "all is told", func() bool { return home.knows(owner) })
		before, firsts, _ := home.counts()
		if firsts != 1 || before > 20 {
			t.Errorf("%d frames, %d of them first, for 2000 words", before, firsts)
		}
		<-time.After(10 * time.Minute)
		idle, _, vouches := home.counts()
		if idle != before || vouches < 39 || vouches > 41 {
			t.Errorf("ten idle minutes: %d frames and %d vouches", idle-before, vouches)
		}
		owner.say(live(ds[7], 2))
		eventually(t, time.Second, "a change is told", func() bool { return home.knows(owner) })
		if after, firsts, _ := home.counts(); after != idle+1 || firsts != 1 {
			t.Errorf("one change took %d frames", after-idle)
		}
		p.net.CutAll()
		eventually(t, 5*time.Second, "told again in the next session", func() bool { _, firsts, _ := home.counts(); return firsts == 2 && home.knows(owner) })
		p.close()
		if owner.tells != 2 || owner.ended != 2 {
			t.Errorf("%d subscriptions, %d ended", owner.tells, owner.ended)
		}
	})
}

func TestNoWorkersIsToldToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, home, _ := speaking(t)
		home.heard = map[hub.DispatchID]hub.Presence{hub.NewDispatchID(): {}} // of a session before
		p.start()
		eventually(t, 5*time.Second, "nothing is left", func() bool { home.mu.Lock(); defer home.mu.Unlock(); return home.firsts == 1 && len(home.heard) == 0 })
		p.close()
	})
}

// What changes right before a ping is told before the ping vouches.
func TestPingVouchesForWhatIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		owner := &speaker{}
		s := &sender{link: &link{cfg: &Config{Ping: 15 * time.Second}, conn: &recorder{}}, teller: &teller{Telling: owner.Tell("p")}}
		owner.say(live(hub.NewDispatchID(), 1))
		if err := s.ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		frames := s.conn.(*recorder).frames
		if len(frames) != 2 || frames[0].(wire.Presence).Seq != 1 || frames[1].(wire.Ping).PresenceSeq != 1 {
			t.Errorf("wrote %+v", frames)
		}
		for range vouchRounds*presenceBatch + 1 {
			owner.say(live(hub.NewDispatchID(), 1))
		}
		if err := s.ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		frames = s.conn.(*recorder).frames
		if last := frames[len(frames)-1].(wire.Ping); last.PresenceSeq != 0 {
			t.Errorf("a ping amid telling vouches for %d", last.PresenceSeq)
		}
	})
}

// recorder keeps what is written to it.
type recorder struct {
	Conn
	frames []wire.Frame
}

func (r *recorder) WriteFrame(_ context.Context, raw []byte) error {
	f, err := wire.Decode(raw[numberSize:])
	r.frames = append(r.frames, f)
	return err
}

func TestUsageThatFitsNoFrameIsLeftAway(t *testing.T) {
	d := hub.NewDispatchID()
	for name, usage := range map[string]string{"long": `{"a":"` + string(make([]byte, wire.MaxText)) + `"}`, "no text": "{\"a\":\"\xff\"}"} {
		owner := &speaker{}
		owner.say(hub.Presence{Dispatch: d, Process: hub.Live, Usage: []byte(usage)})
		te := &teller{Telling: owner.Tell("p"), more: true}
		f, ok := te.frame()
		if !ok || len(f.Workers) != 1 || f.Workers[0].Usage != nil {
			t.Errorf("%s: %+v", name, f)
		}
		if _, err := wire.Encode(nil, f); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPresenceNeedsBothSides(t *testing.T) {
	for name, deaf := range map[string]func(p *pair){
		"an old home":  func(p *pair) { p.puller.cfg.Session.cfg.Presence = nil },
		"an old owner": func(p *pair) { p.desk.session.cfg.Presence = nil },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, home, owner := speaking(t)
				owner.say(live(hub.NewDispatchID(), 1))
				deaf(p)
				p.start()
				d := hub.NewDispatchID()
				p.worker.enqueue(d, "x")
				eventually(t, 5*time.Second, "items flow", p.worker.settled)
				<-time.After(time.Minute)
				frames, _, vouches := home.counts()
				if frames != 0 || vouches != 0 || owner.tells != 0 || p.opens != 1 {
					t.Errorf("%d frames, %d vouches, %d subscriptions, %d connections", frames, vouches, owner.tells, p.opens)
				}
				p.close()
			})
		})
	}
}

// A word that this hub does not know is none; what breaks the agreement ends the
// session.
func TestForeignWords(t *testing.T) {
	d := hub.NewDispatchID()
	word := func(seq int64, p hub.Presence) wire.Presence {
		return wire.Presence{Seq: seq, Workers: []hub.Presence{p}}
	}
	l := func(recv hub.Direction, agreed bool) (*link, *speaker) {
		s := &speaker{}
		return &link{cfg: &Config{Presence: s}, recv: recv, presence: agreed, peer: "p"}, s
	}
	honest, s := l(hub.ToHome, true)
	strange := hub.Presence{Dispatch: d, Process: "undead", WaitingFor: "godot", Usage: []byte(`[1]`)}
	for _, f := range []wire.Presence{word(1, live(d, 1)), word(2, strange), word(1, live(d, 9))} {
		if err := honest.hear(f); err != nil {
			t.Fatal(err)
		}
	}
	want := hub.Presence{Dispatch: d, Process: hub.Unverifiable, WaitingFor: hub.WaitsForUnknown}
	if same, _ := want.Same(s.heard[d]); !same || s.frames != 2 {
		t.Errorf("%d frames, heard %+v", s.frames, s.heard[d])
	}
	if err := errors.Join(honest.vouched(0), honest.vouched(1), honest.vouched(2)); err != nil || s.vouches != 1 {
		t.Errorf("%v, %d vouches", err, s.vouches)
	}
	notAgreed, _ := l(hub.ToHome, false)
	asOwner, _ := l(hub.ToWorker, true)
	for name, err := range map[string]error{
		"a gap":           honest.hear(word(4, live(d, 1))),
		"no Dispatch":     honest.hear(word(3, live("x", 1))),
		"not agreed":      notAgreed.hear(word(1, live(d, 1))),
		"from a home":     asOwner.hear(word(1, live(d, 1))),
		"a vouch too far": honest.vouched(3),
		"a vouch of none": notAgreed.vouched(1),
	} {
		if _, ok := errors.AsType[*ProtocolError](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
