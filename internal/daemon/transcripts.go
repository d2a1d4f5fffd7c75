package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/wavehub/wavehub/internal/agent/transcript"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/terminal"
	"github.com/wavehub/wavehub/internal/work"
)

// transcripts fits package transcript to work.Transcripts: it opens what that
// decodes.
type transcripts struct{ terminals *terminal.Manager }

// headBytes is how much of a record says whose it is.
const headBytes = 64 << 10

func (t transcripts) Read(ctx context.Context, s hub.AgentSession, id hub.TerminalID, q work.TranscriptQuery) (work.TranscriptRead, error) {
	r, err := t.open(ctx, s, id)
	if err != nil {
		return work.TranscriptRead{}, err
	}
	defer r.close()
	if q.Identity != "" && q.Identity != r.identity {
		return work.TranscriptRead{}, changed()
	}
	var at transcript.Position
	if q.At != nil {
		if err := json.Unmarshal(q.At, &at); err != nil {
			return work.TranscriptRead{}, hub.Errorf(hub.CodeCursorInvalid, "the cursor is of another version of wavehub")
		}
	}
	page, err := transcript.Read(ctx, r, r.size, s.Provider, at, transcript.Query{Messages: q.Messages})
	if errors.Is(err, transcript.ErrChanged) {
		return work.TranscriptRead{}, changed()
	}
	if err != nil {
		return work.TranscriptRead{}, err
	}
	next, err := json.Marshal(page.Next)
	return work.TranscriptRead{
		TranscriptPage: hub.TranscriptPage{Messages: page.Messages, Limited: page.Limited || !page.AtEnd},
		Identity:       r.identity, Next: next, Warnings: page.Warnings,
	}, err
}

func (t transcripts) Last(ctx context.Context, s hub.AgentSession, id hub.TerminalID, n int) ([]hub.TranscriptMessage, string, error) {
	r, err := t.open(ctx, s, id)
	if err != nil {
		return nil, "", err
	}
	defer r.close()
	page, err := transcript.Tail(ctx, r, r.size, s.Provider, n)
	return page.Messages, r.identity, err
}

func (t transcripts) Meter(s hub.AgentSession, id hub.TerminalID) work.Meter {
	var m *transcript.Meter
	return func(ctx context.Context) (hub.Usage, error) {
		r, err := t.open(ctx, s, id)
		if err != nil {
			return hub.Usage{}, err
		}
		defer r.close()
		if m == nil {
			if m, err = transcript.NewMeter(s.Provider); err != nil {
				return hub.Usage{}, err
			}
		}
		for more := true; more && err == nil; {
			more, err = m.Read(ctx, r, r.size)
		}
		return m.Usage(), err
	}
}

func changed() error {
	e := hub.Errorf(hub.CodeSourceChanged, "the transcript is not the one that the cursor is of")
	e.Hint = "read again without a cursor"
	return e
}

// recording is an open record of a session.
type recording struct {
	io.ReaderAt
	size     int64
	identity string
	close    func()
}

// open opens the record of a session, and only if it says itself that it is of
// that session.
func (t transcripts) open(ctx context.Context, s hub.AgentSession, id hub.TerminalID) (recording, error) {
	r, err := t.source(ctx, s, id)
	if err != nil {
		return r, err
	}
	head := make([]byte, min(headBytes, r.size))
	if _, err := r.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		r.close()
		return r, err
	}
	whose, ok := transcript.Identify(s.Provider, head)
	if r.size == 0 || ok && whose != s.ID || !ok && s.Transcript != "" {
		r.close()
		return r, work.ErrNoTranscript
	}
	r.identity = transcript.Fingerprint(s.Provider, head)
	return r, nil
}

func (t transcripts) source(ctx context.Context, s hub.AgentSession, id hub.TerminalID) (recording, error) {
	if s.Transcript == "" {
		return t.output(ctx, id)
	}
	f, err := openRegular(s.Transcript)
	if errors.Is(err, fs.ErrNotExist) {
		return recording{}, work.ErrNoTranscript
	}
	if err != nil {
		return recording{}, fmt.Errorf("opening a transcript: %w", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = work.ErrNoTranscript
	}
	if err != nil {
		return recording{}, errors.Join(err, f.Close())
	}
	return recording{ReaderAt: f, size: info.Size(), close: func() { _ = f.Close() }}, nil // it was only read
}

// output is the record of an agent that keeps none but what it writes to its
// standard output.
func (t transcripts) output(ctx context.Context, id hub.TerminalID) (recording, error) {
	r, err := t.terminals.Output(ctx, id, 0, 0)
	if hub.IsCode(err, hub.CodeTerminalNotFound) || err == nil && r.First > 0 {
		return recording{}, work.ErrNoTranscript
	}
	if err != nil {
		return recording{}, err
	}
	return recording{ReaderAt: outputAt{ctx, t.terminals, id}, size: r.Total, close: func() {}}, nil
}

// outputAt reads a terminal's output by its offsets, for one read of it.
type outputAt struct {
	ctx       context.Context
	terminals *terminal.Manager
	id        hub.TerminalID
}

func (o outputAt) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for n < len(p) {
		r, err := o.terminals.Output(o.ctx, o.id, off+int64(n), len(p)-n)
		switch {
		case err != nil:
			return n, err
		case r.From != off+int64(n) && len(r.Data) > 0:
			return n, work.ErrNoTranscript // its beginning was dropped meanwhile
		case len(r.Data) == 0:
			return n, io.EOF
		}
		n += copy(p[n:], r.Data)
	}
	return n, nil
}

var _ work.Transcripts = transcripts{}
