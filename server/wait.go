package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/openapi/api"
)

// errLeft ends the wait of a client that no longer reads.
var errLeft = errors.New("the client has left")

var errDraining = hub.Errorf(hub.CodeHubDraining, "the hub is stopping; repeat the request when it is back")

// keepAliveTimeout bounds the writing of one byte to a client that waits.
const keepAliveTimeout = 10 * time.Second

// mayWait counts one more wait, and returns what ends it. One too many is refused,
// and has its answer.
func (s *Server) mayWait(w http.ResponseWriter, r *http.Request) (leave func(), ok bool) {
	if leave, ok = s.meter.enterWait(r); !ok {
		e := hub.Errorf(hub.CodeRateLimited, "%d calls wait already", maxWaits)
		e.AfterMS = 1000
		s.fail(w, r, e)
	}
	return leave, ok
}

// patiently answers with what run returns, however long that takes: every
// interval one white space goes out. Before the first one the answer has its
// real status; after it the status was 200, and a failure is {"problem": …}.
// run's context ends when the client leaves and when the hub stops.
func (s *Server) patiently(w http.ResponseWriter, r *http.Request, run func(context.Context) (int, any, error)) {
	leave, ok := s.mayWait(w, r)
	if !ok {
		return
	}
	defer leave()
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer s.ending.whenOver(func() { cancel(errDraining) })()
	k := s.keep(w, r, cancel)
	status, body, err := func() (int, any, error) {
		defer k.rest()
		return run(ctx)
	}()
	switch cause := context.Cause(ctx); {
	case cause == errLeft:
		return
	case cause == errDraining && errors.Is(err, context.Canceled) && !hub.IsCode(err, hub.CodeOutcomeUnknown):
		err = errDraining
	}
	k.finish(status, body, err)
}

// keeper keeps one waiting client's connection alive with a timer: there is no
// goroutine while nothing is due. turn holds the right to write; it is taken for
// good by rest.
type keeper struct {
	s     *Server
	w     http.ResponseWriter
	r     *http.Request
	leave context.CancelCauseFunc
	turn  chan struct{}
	timer *time.Timer
	begun bool // by whoever has the turn
}

func (s *Server) keep(w http.ResponseWriter, r *http.Request, leave context.CancelCauseFunc) *keeper {
	k := &keeper{s: s, w: w, r: r, leave: leave, turn: make(chan struct{}, 1)}
	k.turn <- struct{}{}
	k.timer = time.AfterFunc(time.Hour, k.beat)
	k.timer.Reset(s.keepAlive) // set in two steps, for beat uses the timer
	return k
}

// beat sends white space and sets the timer again, unless the wait is over or
// the client is gone.
func (k *keeper) beat() {
	select {
	case <-k.turn:
	default:
		return
	}
	if err := k.space(); err != nil {
		k.leave(errLeft)
	} else {
		k.timer.Reset(k.s.keepAlive)
	}
	k.turn <- struct{}{}
}

// rest ends the beats; one that is being written is waited for.
func (k *keeper) rest() {
	k.timer.Stop()
	<-k.turn
	k.timer.Stop() // it may have been set again meanwhile
}

func (k *keeper) space() error {
	if !k.begun {
		k.begun = true
		h := k.w.Header()
		h.Set("Content-Type", jsonType)
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		k.w.WriteHeader(http.StatusOK)
	}
	writeBy(k.w, time.Now().Add(keepAliveTimeout))
	if _, err := k.w.Write([]byte(" ")); err != nil {
		return err
	}
	return http.NewResponseController(k.w).Flush()
}

func (k *keeper) finish(status int, body any, err error) {
	if !k.begun {
		k.s.reply(k.w, k.r, status, body, err)
		return
	}
	if err != nil && clientGone(k.r, err) {
		return
	}
	raw, encErr := encode(body)
	if err == nil {
		err = encErr
	}
	if err != nil {
		if raw, encErr = encode(api.WaitFailure{Problem: k.s.problem(k.r, err)}); encErr != nil {
			panic(encErr) // strings and numbers always marshal
		}
	}
	k.s.send(k.w, k.r, raw)
}
