package work

import (
	"context"
	"errors"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/safetext"
)

// OutputQuery asks for a page of output.
type OutputQuery struct {
	Source string // auto, transcript, terminal; "" means auto
	Limit  int    // messages of a transcript, lines of a terminal; 0: the default
	Cursor string
	WaitMS int64 // how long to wait for something behind the cursor
}

// Limits of a page: in messages or lines, and in bytes of text.
const (
	DefaultMessages = 100
	DefaultLines    = 500
	MaxOutputLimit  = 1000
	maxOutputBytes  = 512 << 10
)

// Check refuses what cannot be asked.
func (q OutputQuery) Check() error {
	switch {
	case q.Source != "" && q.Source != sourceAuto && q.Source != sourceTranscript && q.Source != sourceTerminal:
		return hub.Invalid("source", "must be auto, transcript or terminal")
	case q.Limit < 0 || q.Limit > MaxOutputLimit:
		return hub.Invalid("limit", "must be 1 to %d", MaxOutputLimit)
	case q.WaitMS < 0 || q.WaitMS > 600_000:
		return hub.Invalid("wait_ms", "must be 0 to 600000")
	case q.WaitMS > 0 && q.Cursor == "":
		return hub.Invalid("wait_ms", "there is nothing to wait for without a cursor: the first page comes at once")
	}
	return nil
}

// A peer is given readTimeout to answer, beyond what it waits, which is
// maxPeerWait at most: its answer carries no sign of life before its end.
const (
	readTimeout = 15 * time.Second
	maxPeerWait = 20 * time.Second
)

// Read returns a worker's output, read by the hub that owns it.
func (s *Service) Read(ctx context.Context, id hub.DispatchID, q OutputQuery) (hub.OutputPage, error) {
	if err := q.Check(); err != nil {
		return hub.OutputPage{}, err
	}
	rec, err := s.recorded(ctx, id)
	if err != nil {
		return hub.OutputPage{}, err
	}
	d := rec.Dispatch
	if d.Local() {
		a, err := s.attachment(ctx, "", id)
		if err != nil {
			return hub.OutputPage{}, err
		}
		page, err := s.page(ctx, a, q)
		page.Status.Worker = d.State
		return page, err
	}
	if err := dispatch.Routed(ctx, s.Store, d); err != nil {
		return hub.OutputPage{}, err
	}
	q.WaitMS = min(q.WaitMS, maxPeerWait.Milliseconds())
	ctx, cancel := context.WithTimeout(ctx, readTimeout+time.Duration(q.WaitMS)*time.Millisecond)
	defer cancel()
	page, err := s.Remote.Output(ctx, d.Server.PeerID, id, q)
	page.Server, page.Status.Worker = d.Server, d.State
	return page, err
}

// page reads a worker's output at its owner. With a cursor it waits, if it is
// asked to, until there is something behind it.
func (s *Service) page(ctx context.Context, a hub.Attachment, q OutputQuery) (hub.OutputPage, error) {
	if err := q.Check(); err != nil {
		return hub.OutputPage{}, err
	}
	waiting, cancel := context.WithTimeout(ctx, time.Duration(q.WaitMS)*time.Millisecond)
	defer cancel()
	for {
		page, seen, err := s.pageNow(ctx, a, q)
		if err != nil || !empty(page) || !s.awaitMore(waiting, a, seen) {
			return page, err
		}
	}
}

// pageNow is the page as it is, and how much terminal output there was before it
// was read.
func (s *Service) pageNow(ctx context.Context, a hub.Attachment, q OutputQuery) (page hub.OutputPage, seen int64, err error) {
	obs, err := s.observe(ctx, a)
	if err != nil {
		return page, 0, err
	}
	if seen, err = s.written(ctx, a); err != nil {
		return page, 0, err
	}
	page = hub.OutputPage{
		Dispatch: a.Dispatch, Server: hub.Server{Name: s.Name}, OwnerEpoch: s.Epoch,
		Status: hub.OutputStatus{Terminal: obs.Process}, Warnings: []string{},
	}
	page, err = s.fill(ctx, a, q, page)
	return page, seen, err
}

// fill reads from the source that the cursor pins, or that the query names, or
// that there is.
func (s *Service) fill(ctx context.Context, a hub.Attachment, q OutputQuery, page hub.OutputPage) (hub.OutputPage, error) {
	var at outputPlace
	if q.Cursor != "" {
		var err error
		if at, err = s.unseal(a, q.Cursor); err != nil {
			return page, err
		}
		if q.Source != "" && q.Source != sourceAuto && q.Source != at.Source {
			return page, badCursor(hub.CodeSourceChanged, "the cursor is of the "+at.Source)
		}
		q.Source = at.Source
	}
	if q.Source == sourceTerminal {
		return s.terminalPage(ctx, a, q, at, page)
	}
	out, err := s.transcriptPage(ctx, a, q, at, page)
	none, ok := errors.AsType[noTranscript](err)
	switch {
	case !ok:
		return out, err
	case q.Cursor != "":
		return page, badCursor(hub.CodeSourceChanged, "the transcript that the cursor is of is gone")
	case q.Source == sourceTranscript:
		e := hub.Errorf(hub.CodeTranscriptRequired, "there is no transcript of this worker (%s)", none.reason)
		e.Hint = "read with --source auto, which takes the terminal then"
		return page, e
	}
	page.FallbackReason = &none.reason
	return s.terminalPage(ctx, a, q, at, page)
}

// empty reports whether a page says nothing.
func empty(p hub.OutputPage) bool {
	return (p.Transcript == nil || len(p.Transcript.Messages) == 0) && (p.Terminal == nil || p.Terminal.Text == "")
}

// lookInterval is how often a transcript is looked at while its agent says
// nothing on its terminal.
const lookInterval = time.Second

// awaitMore waits until the worker's terminal has more output than seen, or it is
// time to look again; false when nothing more will come, or ctx has ended.
func (s *Service) awaitMore(ctx context.Context, a hub.Attachment, seen int64) bool {
	if a.Process == nil || ctx.Err() != nil {
		return false
	}
	st, err := s.Terminals.Observe(ctx, *a.Process)
	if err != nil || st.Liveness != hub.Live {
		return false
	}
	look, cancel := context.WithTimeout(ctx, lookInterval)
	defer cancel()
	if _, err := s.Terminals.AwaitOutput(look, *a.Process, seen); err != nil {
		<-look.Done() // a supervisor that cannot say it: look at the files
	}
	return ctx.Err() == nil
}

// redact makes output text that a message may carry, without anything that
// looks like a token.
func redact(raw []byte) string { return safetext.Redact(hub.PlainText(raw)) }
