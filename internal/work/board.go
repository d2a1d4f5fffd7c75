package work

import (
	"sync"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// outputEvery is how often a change of the last output alone is told.
const outputEvery = 15 * time.Second

// board is the owner's present word on every live Dispatch of this hub, whatever
// its home. It is changed by events only, and by one sweep for silence. Safe for
// concurrent use; nothing in it blocks, and it holds no Dispatch that has ended
// longer than until each home that is connected was told.
type board struct {
	now  func() instant
	beat func(attempt) (beat, bool)
	seen func(hub.WorkerID) (seen, bool)
	// own is called, under mu, when what a home acts on has changed in the word on a
	// Dispatch that this hub is the home of. It must not block.
	own func(hub.DispatchID)

	mu        sync.Mutex // guards the rest
	awake     awake
	rows      map[attempt]*row
	processes map[hub.TerminalID]*process
	workers   map[hub.WorkerID]*identity
	homes     map[hub.PeerID]*audience
	timed     map[*row]struct{} // those that can be lost
	later     map[*row]struct{} // those whose last output is not told yet
	rearm     []rearm
}

// row is one live Dispatch.
type row struct {
	who    attempt
	record record
	word   hub.Presence // as told
	since  time.Duration
	lost   bool
	output time.Duration // when its last output was told
	spot                 // in what its home is told
}

// process is what is known of a terminal's process.
type process struct {
	watched  bool
	liveness hub.Liveness
	outputAt hub.Micros
	rows     map[*row]struct{}
}

// identity is an attached worker with Dispatches.
type identity struct {
	heard time.Duration
	there bool
	rows  map[*row]struct{}
}

// rearm asks a terminal, when it is time, to tell of more output.
type rearm struct {
	at    time.Duration
	again func()
}

func newBoard(beat func(attempt) (beat, bool), seen func(hub.WorkerID) (seen, bool), own func(hub.DispatchID)) *board {
	b := &board{
		now: clock(), beat: beat, seen: seen, own: own, rows: map[attempt]*row{}, processes: map[hub.TerminalID]*process{}, workers: map[hub.WorkerID]*identity{},
		homes: map[hub.PeerID]*audience{}, timed: map[*row]struct{}{}, later: map[*row]struct{}{},
	}
	b.awake.last = b.now()
	return b
}

// put takes what the store says of a live Dispatch, whose worker is always the same.
func (b *board) put(who attempt, r record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	x, known := b.rows[who]
	if !known {
		x = &row{who: who, since: b.now().mono}
		b.rows[who] = x
	}
	if known && (r.reportAt > x.record.reportAt || r.takenUp && !x.record.takenUp) {
		b.alive(x)
	}
	if x.record.terminal != r.terminal {
		b.leaveTerminal(x)
	}
	x.record = r
	b.link(x)
	b.tell(x)
}

// end forgets a Dispatch that is live no more, once its home was told. exited says
// that the end of its process is proven.
func (b *board) end(who attempt, exited bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	x, ok := b.rows[who]
	if !ok {
		return
	}
	b.unlink(x)
	delete(b.rows, who)
	delete(b.later, x)
	x.word.Ended = true
	if exited {
		x.word.Process, x.word.WaitingFor, x.word.Lost = hub.Exited, hub.WaitsForNone, false
	}
	b.announce(x)
}

func (b *board) link(x *row) {
	if t := x.record.terminal; t != "" {
		b.processOf(t).rows[x] = struct{}{}
	}
	if w := x.record.worker; w != "" {
		id, ok := b.workers[w]
		if !ok {
			id = &identity{rows: map[*row]struct{}{}}
			b.workers[w] = id
		}
		id.rows[x] = struct{}{}
	}
	if x.record.liveness > 0 {
		b.timed[x] = struct{}{}
	}
}

func (b *board) leaveTerminal(x *row) {
	if p, ok := b.processes[x.record.terminal]; ok {
		delete(p.rows, x)
		b.dropUnused(x.record.terminal, p)
	}
}

func (b *board) unlink(x *row) {
	b.leaveTerminal(x)
	if id, ok := b.workers[x.record.worker]; ok {
		if delete(id.rows, x); len(id.rows) == 0 {
			delete(b.workers, x.record.worker)
		}
	}
	delete(b.timed, x)
}

func (b *board) processOf(t hub.TerminalID) *process {
	p, ok := b.processes[t]
	if !ok {
		p = &process{rows: map[*row]struct{}{}}
		b.processes[t] = p
	}
	return p
}

func (b *board) dropUnused(t hub.TerminalID, p *process) {
	if len(p.rows) == 0 && !p.watched {
		delete(b.processes, t)
	}
}

// proved takes a proof that a process lives, and when it wrote last, 0 unknown.
func (b *board) proved(t hub.TerminalID, at hub.Micros) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.processOf(t)
	p.watched, p.liveness, p.outputAt = true, hub.Live, max(p.outputAt, at)
	b.tellAll(p.rows)
}

// unproven notes that a process can be neither verified nor proven gone.
func (b *board) unproven(t hub.TerminalID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.processOf(t)
	p.watched, p.liveness = true, hub.Unverifiable
	b.tellAll(p.rows)
}

// unwatched forgets a process that nobody watches any more.
func (b *board) unwatched(t hub.TerminalID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p, ok := b.processes[t]; ok {
		p.watched = false
		b.dropUnused(t, p)
	}
}

// askLater has again called by the sweep once the next output may be told.
func (b *board) askLater(again func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rearm = append(b.rearm, rearm{b.now().mono + outputEvery, again})
}

// heard notes a sign of life of the worker of one Dispatch.
func (b *board) heard(who attempt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if x, ok := b.rows[who]; ok {
		b.alive(x)
		b.tell(x)
	}
}

// heardWorker notes a sign of life of an attached worker: of all its Dispatches.
// present says that it is there.
func (b *board) heardWorker(w hub.WorkerID, present bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if id, ok := b.workers[w]; ok {
		id.heard, id.there = b.now().mono, id.there || present
		b.tellAll(id.rows)
	}
}

func (b *board) alive(x *row) { x.since, x.lost = b.now().mono, false }

func (b *board) tellAll(rows map[*row]struct{}) {
	for x := range rows {
		b.tell(x)
	}
}

// tell judges a Dispatch anew and announces what has changed.
func (b *board) tell(x *row) {
	word := judge(x.who.id, x.record, b.signs(x))
	word.Lost = b.isLost(x, word.Process)
	same, outputAlone := word.Same(x.word)
	now := b.now().mono
	switch {
	case same:
		return
	case outputAlone && now-x.output < outputEvery:
		b.later[x] = struct{}{}
		return
	}
	if word.LastOutputAt != x.word.LastOutputAt {
		x.output = now
	}
	delete(b.later, x)
	before := x.word
	x.word = word
	b.announce(x)
	if x.who.home == "" && word.Tells(before.OrUnsaid()) {
		b.own(x.who.id)
	}
}

func (b *board) signs(x *row) (s signs) {
	if p, ok := b.processes[x.record.terminal]; ok {
		s.process, s.outputAt = p.liveness, p.outputAt
	}
	if w := x.record.worker; w != "" {
		s.seen, _ = b.seen(w)
		s.there = b.workers[w].there
		return s
	}
	s.beat, _ = b.beat(x.who)
	return s
}

// isLost is sticky: only a sign of life ends it.
func (b *board) isLost(x *row, process hub.Liveness) bool {
	if id, ok := b.workers[x.record.worker]; ok && id.heard > x.since {
		x.since, x.lost = id.heard, false
	}
	if !x.record.silences(process) {
		b.alive(x)
	}
	if limit := x.record.liveness; limit > 0 && b.awake.silent(x.since) >= limit {
		x.lost = true
	}
	return x.lost
}

// lost reports whether the worker of a Dispatch is called lost.
func (b *board) lost(who attempt) bool {
	p, ok := b.wordOn(who)
	return ok && p.Lost
}

// wordOn is the present word on a live Dispatch.
func (b *board) wordOn(who attempt) (hub.Presence, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	x, ok := b.rows[who]
	if !ok {
		return hub.Presence{}, false
	}
	return x.word, true
}

// identities are the attached workers to look for.
func (b *board) identities() []hub.WorkerID {
	b.mu.Lock()
	defer b.mu.Unlock()
	ids := make([]hub.WorkerID, 0, len(b.workers))
	for id := range b.workers {
		ids = append(ids, id)
	}
	return ids
}

// sweep looks for silence; there are the attached workers that are there, and
// those of them that listen at this moment. It returns the terminals' signs that
// are to be asked for again.
func (b *board) sweep(there map[hub.WorkerID]PresenceState) (again []func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	b.awake.sweep(now)
	for w, id := range b.workers {
		b.look(id, there[w], now.mono)
	}
	b.tellAll(b.timed)
	b.tellAll(b.later)
	kept := b.rearm[:0]
	for _, r := range b.rearm {
		if r.at > now.mono {
			kept = append(kept, r)
			continue
		}
		again = append(again, r.again)
	}
	clear(b.rearm[len(kept):])
	b.rearm = kept
	return again
}

// look takes what a sweep found of an attached worker; "" is one that came since.
func (b *board) look(id *identity, st PresenceState, now time.Duration) {
	if st == Online {
		id.heard = now
	}
	if is := st != Offline && st != ""; st != "" && is != id.there {
		id.there = is
		b.tellAll(id.rows)
	}
}
