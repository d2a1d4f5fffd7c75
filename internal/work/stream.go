package work

import (
	"context"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// completeByResult is the completion of a launcher whose structured output ends
// its attempt.
const completeByResult = "result"

// streamChunk is how much structured output is decoded at once.
const streamChunk = 256 << 10

// follower reads a worker's structured output as it is written. It belongs to one
// goroutine; a restarted hub reads from the beginning again.
type follower struct {
	s      *Service
	a      hub.Attachment
	stream Stream
	at     int64 // offset behind what was decoded
	heard  string
	done   bool // the terminal record has been committed
}

// followStreams decodes the structured output of a process to its end, if it has
// any.
func (s *Service) followStreams(ctx context.Context, in hub.Incarnation) error {
	as, err := s.workersOf(ctx, in)
	for _, a := range as {
		if err == nil && a.Agent.Stream != "" {
			err = s.follow(ctx, a)
		}
	}
	return err
}

// follow decodes a worker's structured output until its process has ended. The
// session is known as soon as the stream names it; the terminal record is
// committed at once, and a process that lingers behind it is ended.
func (s *Service) follow(ctx context.Context, a hub.Attachment) error {
	stream, err := s.Agents.Stream(a.Agent.Stream)
	if err != nil {
		return err
	}
	f := &follower{s: s, a: a, stream: stream}
	f.prove(ctx)
	for {
		if err := f.read(ctx); err != nil || f.done {
			return err
		}
		total, err := s.Terminals.AwaitOutput(ctx, *a.Process, f.at)
		if err != nil {
			return err
		}
		if total <= f.at {
			return f.end(ctx)
		}
		s.board.proved(a.Process.Terminal, hub.MicrosOf(time.Now()))
	}
}

// prove has a worker that writes nothing yet be known to live. Not being able to
// look proves nothing.
func (f *follower) prove(ctx context.Context) {
	if st, err := f.s.Terminals.Observe(ctx, *f.a.Process); err == nil && st.Liveness == hub.Live {
		f.s.board.proved(f.a.Process.Terminal, st.LastOutputAt)
	}
}

// end decodes what is left when the process has ended. Of an agent without a
// terminal record the exit code tells what its output came to.
func (f *follower) end(ctx context.Context) error {
	if err := f.read(ctx); err != nil || f.done {
		return err
	}
	st, err := f.s.Terminals.Wait(ctx, *f.a.Process)
	if err != nil || st.Liveness != hub.Exited || st.ExitCode == nil {
		return err
	}
	if err := f.read(ctx); err != nil || f.done { // what came before the end was told
		return err
	}
	f.stream.End(*st.ExitCode)
	return f.commit(ctx)
}

// read decodes what has been written and commits what it says.
func (f *follower) read(ctx context.Context) error {
	for {
		r, err := f.s.Terminals.Output(ctx, f.a.Terminal, f.at, streamChunk)
		if err != nil {
			return err
		}
		if len(r.Data) == 0 {
			return f.commit(ctx)
		}
		if _, err := f.stream.Write(r.Data); err != nil {
			return err
		}
		f.at = r.From + int64(len(r.Data))
	}
}

func (f *follower) commit(ctx context.Context) error {
	if id := f.stream.Session(); id != "" && id != f.heard {
		if err := f.s.noteSession(ctx, f.a, id); err != nil {
			return err
		}
		f.heard = id
	}
	r, ok := f.stream.Result()
	if !ok || f.done {
		return nil
	}
	if err := f.s.Unspool(ctx, f.a.Dispatch); err != nil {
		return err
	}
	f.done = true
	if err := f.s.commitResult(ctx, f.a, r); err != nil {
		return err
	}
	return f.s.endLingering(ctx, f.a)
}

// noteSession keeps which session the worker's own output says that it is.
func (s *Service) noteSession(ctx context.Context, a hub.Attachment, id string) error {
	return s.Store.Update(ctx, store.Settle, func(tx store.Tx) error {
		return dispatch.Streamed(tx, a.Home, a.Dispatch, id)
	})
}

func (s *Service) commitResult(ctx context.Context, a hub.Attachment, r hub.AgentResult) error {
	return s.Store.Update(ctx, store.Settle, func(tx store.Tx) error {
		return dispatch.Resulted(tx, a.Home, a.Dispatch, r)
	})
}

// endLingering gives a process that has said its last word the grace to leave,
// and ends its tree after that. Only a launcher that completes by its result is
// known to have nothing left to do.
func (s *Service) endLingering(ctx context.Context, a hub.Attachment) error {
	if a.Completion != completeByResult {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, s.Agents.Grace(a.Spec.Agent))
	st, err := s.Terminals.Wait(waiting, *a.Process)
	cancel()
	if ctx.Err() != nil || err == nil && st.Liveness == hub.Exited {
		return ctx.Err()
	}
	release, err := s.hands.take(ctx, attempt{a.Home, a.Dispatch})
	if err != nil {
		return err
	}
	defer release()
	_, err = s.Terminals.Stop(ctx, *a.Process, s.Agents.Grace(a.Spec.Agent))
	return err
}
