package work

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

func TestAwakeCountsOnlySweptTime(t *testing.T) {
	const sec = time.Second
	for name, c := range map[string]struct {
		sweeps []instant // after 0
		silent time.Duration
	}{
		"on time":             {[]instant{{5 * sec, 5 * sec}, {10 * sec, 10 * sec}}, 10 * sec},
		"a little late":       {[]instant{{14 * sec, 14 * sec}}, 14 * sec},
		"too late":            {[]instant{{5 * sec, 5 * sec}, {21 * sec, 21 * sec}, {26 * sec, 26 * sec}}, 5 * sec},
		"a sleep":             {[]instant{{5 * sec, 5 * sec}, {10 * sec, 310 * sec}, {15 * sec, 315 * sec}}, 5 * sec},
		"a monotonic sleep":   {[]instant{{300 * sec, 300 * sec}, {305 * sec, 305 * sec}}, 5 * sec},
		"the wall goes back":  {[]instant{{5 * sec, -86400 * sec}, {10 * sec, -86395 * sec}}, 10 * sec},
		"the wall goes ahead": {[]instant{{5 * sec, 86400 * sec}, {10 * sec, 86405 * sec}, {15 * sec, 86410 * sec}}, 10 * sec},
	} {
		var a awake
		for _, now := range c.sweeps {
			a.sweep(now)
		}
		if got := a.silent(0); got != c.silent {
			t.Errorf("%s: silent for %v, want %v", name, got, c.silent)
		}
	}
}

func TestJudge(t *testing.T) {
	d := hub.NewDispatchID()
	managed := record{terminal: "term_1", waiting: hub.WaitsForPrompt, reportAt: 5, usage: []byte(`{"a":1}`)}
	held, attached, begun := managed, record{worker: "worker_1", reportAt: 5}, record{worker: "worker_1", takenUp: true, reportAt: 5}
	held.held = true
	at := time.UnixMicro(90)
	for name, c := range map[string]struct {
		record record
		signs  signs
		want   hub.Presence
	}{
		"nothing is known":    {managed, signs{}, hub.Presence{Process: hub.Unverifiable, LastReportAt: 5, WaitingFor: "unknown", Usage: managed.usage}},
		"it lives":            {managed, signs{process: hub.Live, outputAt: 7}, hub.Presence{Process: hub.Live, LastOutputAt: 7, LastReportAt: 5, WaitingFor: "prompt", Usage: managed.usage}},
		"it has exited":       {managed, signs{process: hub.Exited}, hub.Presence{Process: hub.Exited, LastReportAt: 5, WaitingFor: "none", Usage: managed.usage}},
		"contact is lost":     {managed, signs{process: hub.Unverifiable, outputAt: 7}, hub.Presence{Process: hub.Unverifiable, LastOutputAt: 7, LastReportAt: 5, WaitingFor: "unknown", Usage: managed.usage}},
		"it says so":          {managed, signs{process: hub.Live, beat: beat{Heartbeat{"permission", []byte(`{}`)}, 9}}, hub.Presence{Process: hub.Live, LastReportAt: 9, WaitingFor: "permission", Usage: managed.usage}},
		"its report is held":  {held, signs{process: hub.Live, beat: beat{Heartbeat{"none", nil}, 9}}, hub.Presence{Process: hub.Live, LastReportAt: 9, WaitingFor: "verification", Usage: managed.usage}},
		"it was not taken up": {attached, signs{there: true, seen: seen{at: at}}, hub.Presence{Process: hub.Unverifiable, LastReportAt: 5, WaitingFor: "worker"}},
		"it is there":         {begun, signs{there: true, seen: seen{at: at}}, hub.Presence{Process: hub.Unverifiable, LastReportAt: 90, WaitingFor: "none"}},
		"it is not there":     {begun, signs{}, hub.Presence{Process: hub.Unverifiable, LastReportAt: 5, WaitingFor: "unknown"}},
	} {
		c.want.Dispatch = d
		if got := judge(d, c.record, c.signs); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// stand is a board with what would be around it.
type stand struct {
	*board
	beats   beats
	workers presences
	said    []hub.DispatchID // of this hub's own, as it was published
}

func newStand() *stand {
	s := &stand{}
	s.board = newBoard(s.beats.of, s.workers.of, func(id hub.DispatchID) { s.said = append(s.said, id) })
	return s
}

// pass lets time pass with sweeps; nobody attached is there.
func (s *stand) pass(d time.Duration) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for range d / sweepEvery {
		<-tick.C
		there := map[hub.WorkerID]PresenceState{}
		for _, w := range s.identities() {
			there[w] = Offline
		}
		for _, again := range s.sweep(there) {
			again()
		}
	}
}

func (s *stand) told(t *testing.T, who attempt) hub.Presence {
	t.Helper()
	p, ok := s.wordOn(who)
	if !ok {
		t.Fatalf("there is no word on %s", who.id)
	}
	return p
}

const home, term, worker = hub.PeerID("peer_home"), hub.TerminalID("term_1"), hub.WorkerID("worker_1")

func fresh() attempt { return attempt{home, hub.NewDispatchID()} }

func TestManagedWorkersAreLostAfterSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, who := newStand(), fresh()
		s.put(who, record{terminal: term, liveness: 30 * time.Second})
		s.proved(term, 1)
		s.pass(time.Hour)
		if p := s.told(t, who); p.Lost || p.Process != hub.Live {
			t.Fatalf("silent and live for an hour it is %+v", p)
		}
		s.unproven(term)
		s.pass(25 * time.Second)
		if s.lost(who) {
			t.Error("lost too early")
		}
		s.heard(who)
		s.pass(25 * time.Second)
		if s.lost(who) {
			t.Error("a sign of life does not count")
		}
		s.pass(10 * time.Second)
		if p := s.told(t, who); !p.Lost || p.Process != hub.Unverifiable {
			t.Errorf("silent for 35 s it is %+v", p)
		}
		s.proved(term, 2)
		if p := s.told(t, who); p.Lost || p.Process != hub.Live {
			t.Errorf("seen again it is %+v", p)
		}
	})
}

// What was heard of the identity stays when the record of its only Dispatch is
// written again.
func TestHeardOfSurvivesItsRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, who, r := newStand(), fresh(), record{worker: worker, takenUp: true, liveness: 30 * time.Second}
		s.put(who, r)
		s.pass(25 * time.Second)
		s.heardWorker(worker, true)
		s.put(who, r)
		if p := s.told(t, who); p.WaitingFor != hub.WaitsForNone {
			t.Errorf("there it is %+v", p)
		}
		s.pass(25 * time.Second)
		if p := s.told(t, who); p.Lost {
			t.Errorf("heard of 25 s ago it is %+v", p)
		}
		s.put(who, record{worker: worker, takenUp: true, liveness: 30 * time.Second, terminal: term})
		s.put(who, r)
		if len(s.processes) != 0 {
			t.Errorf("%d processes of what has none", len(s.processes))
		}
	})
}

func TestAttachedWorkersAreLostAfterSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, begun, waiting, never := newStand(), fresh(), fresh(), fresh()
		s.put(begun, record{worker: worker, takenUp: true, liveness: 30 * time.Second})
		s.put(waiting, record{worker: worker, liveness: 30 * time.Second})
		s.put(never, record{worker: worker, takenUp: true})
		s.heardWorker(worker, true)
		s.pass(25 * time.Second)
		s.heardWorker(worker, false) // one message counts for all its Dispatches
		s.put(begun, record{worker: worker, takenUp: true, liveness: 30 * time.Second})
		s.pass(25 * time.Second)
		if s.lost(begun) {
			t.Error("lost too early")
		}
		s.heardWorker("worker_2", true)
		s.pass(10 * time.Second)
		if !s.lost(begun) {
			t.Error("silent for 35 s, and another worker's presence, and not lost")
		}
		s.pass(time.Hour)
		if s.lost(waiting) || s.lost(never) {
			t.Errorf("lost: not taken up %v, without a liveness %v", s.lost(waiting), s.lost(never))
		}
		s.put(waiting, record{worker: worker, takenUp: true, liveness: 30 * time.Second})
		if s.lost(waiting) {
			t.Error("to take it up begins its time")
		}
		s.heardWorker(worker, true)
		if s.lost(begun) {
			t.Error("a sign of life ends it")
		}
		s.pass(time.Minute)
		if !s.lost(begun) || !s.lost(waiting) {
			t.Error("silent again and not lost")
		}
	})
}

// A sweep that comes late, as after a sleep or a stall, starts a full time; who is
// lost already stays so.
func TestLateSweepStartsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, who, gone := newStand(), fresh(), fresh()
		s.put(gone, record{worker: worker, takenUp: true, liveness: 10 * time.Second})
		s.pass(20 * time.Second)
		s.put(who, record{terminal: term, liveness: 30 * time.Second})
		s.unproven(term)
		s.pass(25 * time.Second)
		<-time.After(5 * time.Minute)
		s.pass(25 * time.Second)
		if s.lost(who) || !s.lost(gone) {
			t.Errorf("after a stall: lost %v, and the lost one %v", s.lost(who), s.lost(gone))
		}
		s.pass(15 * time.Second)
		if !s.lost(who) {
			t.Error("silent for a full time since and not lost")
		}
	})
}

// words takes what is told now.
func words(t *Telling) map[hub.DispatchID]hub.Presence {
	out := map[hub.DispatchID]hub.Presence{}
	for {
		ps := t.Next(3)
		if len(ps) == 0 {
			return out
		}
		for _, p := range ps {
			out[p.Dispatch] = p
		}
	}
}

func woken(t *Telling) bool {
	select {
	case <-t.Changed():
		return true
	default:
		return false
	}
}

func TestTellingIsOfWhatHasChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, other := newStand(), attempt{"peer_other", hub.NewDispatchID()}
		var all []attempt
		for range 10 {
			all = append(all, fresh())
			s.put(all[len(all)-1], record{})
		}
		s.put(other, record{})
		s.put(attempt{"", hub.NewDispatchID()}, record{})
		a := s.subscribe(home)
		if got := words(a); len(got) != 10 || woken(a) {
			t.Fatalf("told %d words at first", len(got))
		}
		s.put(all[3], record{})
		if woken(a) || len(words(a)) != 0 {
			t.Error("told what has not changed")
		}
		s.put(all[3], record{waiting: "prompt", terminal: term})
		s.proved(term, 1)
		s.put(all[7], record{reportAt: 3})
		s.put(other, record{reportAt: 3})
		if got := words(a); !woken(a) || len(got) != 2 || got[all[3].id].WaitingFor != "prompt" || got[all[7].id].LastReportAt != 3 {
			t.Errorf("told %+v", got)
		}
		b := s.subscribe(home)
		if got := words(b); len(got) != 10 {
			t.Errorf("another subscription is told %d words", len(got))
		}
		a.End()
		b.End()
	})
}

// An end is told to everybody who was told of the beginning, and then forgotten.
func TestEndsAreToldAndForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, who, alone := newStand(), fresh(), fresh()
		s.put(alone, record{})
		s.end(alone, true)
		if len(s.homes) != 0 || len(s.rows) != 0 {
			t.Errorf("%d homes, %d rows of what nobody is told of", len(s.homes), len(s.rows))
		}
		s.put(who, record{terminal: term, worker: "", liveness: time.Second})
		s.proved(term, 1)
		a, b := s.subscribe(home), s.subscribe(home)
		words(a)
		words(b)
		s.end(who, true)
		s.unwatched(term)
		for i, telling := range []*Telling{a, b} {
			if got := words(telling); len(got) != 1 || !got[who.id].Ended || got[who.id].Process != hub.Exited {
				t.Errorf("subscription %d is told %+v", i, got)
			}
		}
		if h := s.homes[home]; h.rows.Len() != 0 || len(s.rows)+len(s.processes)+len(s.timed)+len(s.later) != 0 {
			t.Errorf("what has ended is kept: %d rows", h.rows.Len())
		}
		s.put(who, record{})
		words(a)
		s.end(who, false)
		words(a)
		b.End() // which was not told
		a.End()
		if len(s.homes) != 0 {
			t.Error("an ended subscription keeps what has ended")
		}
	})
}

func TestOutputAloneIsToldNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, who := newStand(), fresh()
		s.put(who, record{terminal: term})
		s.proved(term, 1)
		a, asked := s.subscribe(home), 0
		words(a)
		s.pass(time.Minute)
		if len(words(a)) != 0 {
			t.Fatal("a minute of silence is told")
		}
		frames := 0
		for i := range 60 { // a worker that writes each second, whatever is asked for
			<-time.After(time.Second)
			s.proved(term, hub.Micros(10+i))
			s.askLater(func() { asked++ })
			if i%5 == 4 {
				for _, again := range s.sweep(nil) {
					again()
				}
			}
			frames += len(words(a))
		}
		if frames < 4 || frames > 5 {
			t.Errorf("told %d times in a minute", frames)
		}
		if asked < 40 || asked > 46 {
			t.Errorf("asked %d times again in a minute", asked)
		}
		s.pass(30 * time.Second)
		if got := words(a); got[who.id].LastOutputAt != 69 {
			t.Errorf("the last output is not told: %+v", got)
		}
		s.proved(term, 100)
		s.put(who, record{terminal: term, waiting: "prompt"})
		if got := words(a); got[who.id].LastOutputAt != 100 || got[who.id].WaitingFor != "prompt" {
			t.Errorf("told %+v", got)
		}
	})
}

func TestAttachedWorkerThatLeavesIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, who := newStand(), fresh()
		s.put(who, record{worker: worker, takenUp: true, liveness: 30 * time.Second})
		s.heardWorker(worker, true)
		if p := s.told(t, who); p.WaitingFor != hub.WaitsForNone {
			t.Errorf("there it is %+v", p)
		}
		for range 12 { // it listens, and says nothing
			<-time.After(sweepEvery)
			s.sweep(map[hub.WorkerID]PresenceState{worker: Online})
		}
		if s.lost(who) {
			t.Error("lost while it listens")
		}
		s.pass(sweepEvery)
		if p := s.told(t, who); p.WaitingFor != hub.WaitsForUnknown {
			t.Errorf("gone it is %+v", p)
		}
	})
}

func BenchmarkIdlePing(b *testing.B) {
	s := newStand()
	for range 10_000 {
		s.put(fresh(), record{terminal: term, liveness: time.Minute})
	}
	a := s.subscribe(home)
	words(a)
	for b.Loop() {
		if len(a.Next(512)) != 0 {
			b.Fatal("told what has not changed")
		}
	}
}

func BenchmarkSweepOf10000(b *testing.B) {
	s := newStand()
	for i := range 10_000 {
		s.put(fresh(), record{terminal: hub.TerminalID(fmt.Sprint(i)), liveness: time.Minute})
	}
	for b.Loop() {
		s.sweep(nil)
	}
}
