package peer

import (
	"context"
	"errors"
	"net/http/httptrace"
	"slices"
	"sync"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// Stages are all stages of a connection, in order.
func Stages() []string {
	return []string{StageResolve, StageDial, StageTLS, StagePin, StageHello, StageContract}
}

// What became of a stage of a ping.
const (
	StagePassed  = "passed"
	StageFailed  = "failed"
	StageSkipped = "skipped"
)

// PingStage is one stage of a ping; Err is set for one that failed, with a code
// of the catalogue.
type PingStage struct {
	Stage string
	State string
	Took  time.Duration
	Err   *hub.Error
}

// Ping is what came of one connection to a peer. Address is the one that was
// tried last, "" for none; Stages are all of them, in order.
type Ping struct {
	Peer    hub.Peer
	Address string
	Stages  []PingStage
	Took    time.Duration
}

// Err is why the peer could not be reached, nil if it could.
func (p Ping) Err() *hub.Error {
	for _, s := range p.Stages {
		if s.Err != nil {
			return s.Err
		}
	}
	return nil
}

// Ping connects to the peer anew, says the hello and closes the connection. It
// leaves the live ones alone. An error means that there is no such peer.
func (l *Links) Ping(ctx context.Context, id hub.PeerID) (Ping, error) {
	p, err := l.cfg.Peers.Get(ctx, id)
	if err != nil {
		return Ping{}, err
	}
	w := &stopwatch{}
	began := time.Now()
	conn, err := l.connect(w.watch(ctx), id)
	if err == nil {
		conn.Close()
	}
	address, stages := w.result(err)
	return Ping{Peer: p, Address: address, Stages: stages, Took: time.Since(began)}, nil
}

// stopwatch times the stages of the connections that are made under its context.
// It keeps those of the last one.
type stopwatch struct {
	mu     sync.Mutex
	host   string      // guarded by mu
	last   time.Time   // guarded by mu
	passed []PingStage // guarded by mu
}

type stopwatchKey struct{}

func (w *stopwatch) watch(ctx context.Context) context.Context {
	w.last = time.Now()
	ctx = context.WithValue(ctx, stopwatchKey{}, w)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		DNSDone: func(info httptrace.DNSDoneInfo) {
			if info.Err == nil {
				w.pass(StageResolve)
			}
		},
	})
}

// dialling begins the stages anew, for a connection to host.
func dialling(ctx context.Context, host string) {
	if w, ok := ctx.Value(stopwatchKey{}).(*stopwatch); ok {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.host, w.last, w.passed = host, time.Now(), nil
	}
}

// passed notes that a stage and all before it are behind.
func passed(ctx context.Context, stage string) {
	if w, ok := ctx.Value(stopwatchKey{}).(*stopwatch); ok {
		w.pass(stage)
	}
}

func (w *stopwatch) pass(stage string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.passed = append(w.passed, PingStage{Stage: stage, State: StagePassed, Took: now.Sub(w.last)})
	w.last = now
}

// result lists all stages: those before the one that failed have passed, those
// behind it were not come to.
func (w *stopwatch) result(err error) (host string, stages []PingStage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	failed := ""
	if le, ok := errors.AsType[*LinkError](err); ok {
		failed = le.At
	} else if err != nil {
		failed = StageHello
	}
	state := StagePassed
	for _, name := range Stages() {
		s := PingStage{Stage: name, State: state}
		if i := slices.IndexFunc(w.passed, func(p PingStage) bool { return p.Stage == name }); i >= 0 {
			s.Took = w.passed[i].Took
		}
		if name == failed {
			s.State, s.Err, state = StageFailed, stageError(err), StageSkipped
			s.Took += time.Since(w.last)
		}
		stages = append(stages, s)
	}
	return w.host, stages
}

// stageError is a failure to connect under its own code, without its stage.
func stageError(err error) *hub.Error {
	if e, ok := errors.AsType[*hub.Error](err); ok {
		return e
	}
	e := &hub.Error{Code: hub.CodeRemoteRuntimeUnavailable, Message: "the peer cannot be reached", Err: err}
	if le, ok := errors.AsType[*LinkError](err); ok {
		e.Err = le.Err
	}
	return e
}
