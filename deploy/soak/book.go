//go:build unix

package main

import (
	"fmt"
	"sync"
)

// book is all that this program saw itself, outside of the hub. Its methods are
// safe for concurrent use.
type book struct {
	mu       sync.Mutex
	starts   []*start          // guarded by mu
	lives    map[string]*life  // guarded by mu, by Dispatch
	inboxes  []*inbox          // guarded by mu, of the Runs
	open     map[string]string // guarded by mu: what is unknown now, by request id
	tally                      // guarded by mu
	wrong    []string          // guarded by mu: what was wrong at once
	alive    int               // guarded by mu
	mostLive int               // guarded by mu
	effects  map[string]int    // of the witness file, once all is over
}

// tally counts what is only told.
type tally struct{ kills, stops, crashes, rebinds, lateAcks, fencedAcks, unknowns, resolved, cuts int }

// start is one start that was requested.
type start struct {
	request, task, dispatch, state string // state is ready or failed, "" while it has no answer
	cut                            bool   // its outcome was unknown for a while
}

// life is what was seen of one Dispatch. Its fields belong to the goroutine that
// plays the worker; given and replies to its coordinator's.
type life struct {
	dispatch string
	sent     []note // to its Run, in the order in which it was told that they are accepted
	reports  []report
	asked    []asked
	mail     inbox // its own mailbox
	order    order
	given    []note            // guidance and answers for it, in that order
	replies  map[string]string // by question: the answer that was accepted
}

// report is one worker_done of a worker and what its home made of it.
type report struct {
	outcome, verdict string
	want             []string // the verdicts that are right
	kind             reportKind
}

type reportKind int

const (
	onTime   reportKind = iota
	repeated            // equal to the one that settled
	late                // the Dispatch had ended
)

// asked is a question and the answer that reached the worker, "" for none.
type asked struct{ question, answer string }

// order is how a stop or abandon of the Dispatch was answered.
type order string

const (
	noOrder    order = ""
	toldAtOnce order = "at once"
	toldLater  order = "later" // it was asked for again, for its answer was unknown
)

func newBook() *book {
	return &book{lives: map[string]*life{}, open: map[string]string{}}
}

func (b *book) fault(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrong = append(b.wrong, fmt.Sprintf(format, args...))
}

func (b *book) add(change func(*tally)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.tally)
}

func (b *book) killed()  { b.add(func(t *tally) { t.kills++ }) }
func (b *book) stopped() { b.add(func(t *tally) { t.stops++ }) }
func (b *book) crashed() { b.add(func(t *tally) { t.crashes++ }) }
func (b *book) rebound() { b.add(func(t *tally) { t.rebinds++ }) }

// left notes a call whose caller does not wait for the answer.
func (b *book) left() { b.add(func(t *tally) { t.cuts++ }) }

// lateAck notes how an ack of a former consumer was answered.
func (b *book) lateAck(fenced bool) {
	b.add(func(t *tally) {
		t.lateAcks++
		t.fencedAcks += one(fenced)
	})
}

// unknown notes that a request's outcome is not known; it is to be found out.
func (b *book) unknown(r *request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, again := b.open[r.key]; !again {
		b.open[r.key] = r.what
		b.unknowns++
	}
}

// known notes that a request has an answer.
func (b *book) known(r *request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.open[r.key]; ok {
		delete(b.open, r.key)
		b.resolved++
	}
}

// inbox begins what a Run's mailbox gives.
func (b *book) inbox(box string) *inbox {
	b.mu.Lock()
	defer b.mu.Unlock()
	in := &inbox{box: box}
	b.inboxes = append(b.inboxes, in)
	return in
}

// requested notes a start before it is asked for.
func (b *book) requested(request, task string) *start {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &start{request: request, task: task}
	b.starts = append(b.starts, s)
	return s
}

// born begins the life of a Dispatch.
func (b *book) born(dispatch string) *life {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := &life{dispatch: dispatch, replies: map[string]string{}, mail: inbox{box: "dispatch:" + dispatch}}
	b.lives[dispatch] = l
	b.alive++
	b.mostLive = max(b.mostLive, b.alive)
	return l
}

// ended notes that a worker is no longer live.
func (b *book) ended() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.alive--
}

// life is that of a Dispatch, nil if it has none.
func (b *book) life(dispatch string) *life {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lives[dispatch]
}

// soFar is a line on how it goes.
func (b *book) soFar() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return fmt.Sprintf("%d starts, %d live, %d kills, %d crashes, %d rebinds, %d unknown outcomes, %d open",
		len(b.starts), b.alive, b.kills, b.crashes, b.rebinds, b.unknowns, len(b.open))
}
