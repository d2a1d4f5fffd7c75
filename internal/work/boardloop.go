package work

import (
	"context"
	"slices"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// refreshBatch bounds how many attachments one read transaction reads again.
const refreshBatch = 500

// Presences keeps this hub's word on its live Dispatches until ctx ends. It reads
// what has changed in the store and sweeps for silence; nothing is asked of a
// process.
func (s *Service) Presences(ctx context.Context) error {
	changed, changes, cancel := s.Bus.Gather(string(hub.TopicAttachment))
	defer cancel()
	heard, speakers, mute := s.Bus.Gather(string(hub.TopicHeard))
	defer mute()
	l := boardLoop{s: s}
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		l.left = append(l.left, changes()...)
		if err := l.refresh(ctx); err != nil && ctx.Err() == nil {
			s.Log.Error("reading the live Dispatches", "error", err) // the next sweep reads them again
		}
		select {
		case <-changed:
		case <-heard:
			s.heardOf(speakers())
		case <-tick.C:
			s.sweep()
		case <-ctx.Done():
			return nil
		}
	}
}

// boardLoop is what Presences has to read.
type boardLoop struct {
	s      *Service
	filled bool     // all that was live at the start is on the board
	left   []string // keys of attachments that are to be read
}

func (l *boardLoop) refresh(ctx context.Context) error {
	if !l.filled {
		if err := l.s.fillBoard(ctx); err != nil {
			return err
		}
		l.filled = true
	}
	slices.Sort(l.left)
	l.left = slices.Compact(l.left)
	for len(l.left) > 0 {
		n := min(len(l.left), refreshBatch)
		if err := l.s.readRows(ctx, l.left[:n]); err != nil {
			return err
		}
		l.left = l.left[n:]
	}
	l.left = nil
	return nil
}

// fillBoard puts all live Dispatches on the board.
func (s *Service) fillBoard(ctx context.Context) error {
	open, err := s.open(ctx)
	if err != nil {
		return err
	}
	keys := make([]string, len(open))
	for i, a := range open {
		keys[i] = hub.AttachmentKey(a.Home, a.Dispatch)
	}
	for chunk := range slices.Chunk(keys, refreshBatch) {
		if err := s.readRows(ctx, chunk); err != nil {
			return err
		}
	}
	return nil
}

// readRows brings the board up to date with the store.
func (s *Service) readRows(ctx context.Context, keys []string) error {
	return s.Store.View(ctx, func(rx store.Rx) error {
		for _, key := range keys {
			home, id, ok := hub.ParseAttachmentKey(key)
			if !ok {
				continue
			}
			if err := s.readRow(rx, attempt{home, id}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Service) readRow(rx store.Rx, who attempt) error {
	a, ok, err := rx.Attachment(who.home, who.id)
	if err != nil || !ok {
		return err
	}
	h, open, err := rx.Hold(who.home, who.id)
	if err != nil {
		return err
	}
	r, live, err := liveRecord(a, open && !h.Fenced())
	if err != nil {
		return err
	}
	if !live {
		s.beats.forget(who)
		s.meters.forget(who)
		s.board.end(who, a.ExitDone && a.Process != nil)
		return nil
	}
	s.board.put(who, r)
	return nil
}

// heardOf notes that workers have sent messages.
func (s *Service) heardOf(speakers []string) {
	for _, key := range speakers {
		if home, id, ok := hub.ParseAttachmentKey(key); ok {
			s.board.heard(attempt{home, id})
			continue
		}
		s.board.heardWorker(hub.WorkerID(key), false)
	}
}

// sweep looks for silence and has the terminals asked for more output that were
// told of last time long enough ago.
func (s *Service) sweep() {
	there := map[hub.WorkerID]PresenceState{}
	for _, w := range s.board.identities() {
		there[w] = s.Seen(w).State
	}
	for _, again := range s.board.sweep(there) {
		again()
	}
}

// signsOf are the signs of life of a terminal's process, for the board: the first
// output after a pause is told at once.
func (s *Service) signsOf(in hub.Incarnation) func(hub.Micros, func()) {
	first := true
	return func(at hub.Micros, again func()) {
		s.board.proved(in.Terminal, at)
		if first {
			first = false
			again()
			return
		}
		s.board.askLater(again)
	}
}
