package work

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// Transcripts reads the records that agents keep of their sessions. Where a
// session has no file the output of the terminal is its record. It answers with
// ErrNoTranscript where there is none (any more), and with source_changed where
// the record is not the one that Identity names.
type Transcripts interface {
	Read(ctx context.Context, s hub.AgentSession, t hub.TerminalID, q TranscriptQuery) (TranscriptRead, error)
	// Last are the last messages.
	Last(ctx context.Context, s hub.AgentSession, t hub.TerminalID, n int) (ms []hub.TranscriptMessage, identity string, err error)
	// Meter counts what a record says was used.
	Meter(s hub.AgentSession, t hub.TerminalID) Meter
}

// ErrNoTranscript says that a session's record is not there.
var ErrNoTranscript = errors.New("there is no transcript")

// TranscriptQuery asks for messages. At is a position that an earlier read
// returned, nil for the beginning.
type TranscriptQuery struct {
	At       json.RawMessage
	Identity string // "" where any record will do
	Messages int
}

// TranscriptRead is a part of a record, and the position behind it.
type TranscriptRead struct {
	hub.TranscriptPage
	Identity string
	Next     json.RawMessage
	Warnings []string
}

// noTranscript is why a worker has no transcript.
type noTranscript struct{ reason string }

func (n noTranscript) Error() string { return n.reason }

// Reasons for which auto falls back to the terminal.
const (
	reasonUnsupported = "agent_without_transcript"
	reasonNoSession   = "session_not_reported"
	reasonMissing     = "transcript_missing"
)

// transcriptPage is a page of the agent's own record of its session.
func (s *Service) transcriptPage(ctx context.Context, a hub.Attachment, q OutputQuery, at outputPlace, page hub.OutputPage) (hub.OutputPage, error) {
	sess := a.Agent.Session
	switch {
	case !s.Agents.HasTranscript(a.Spec.Agent):
		return page, noTranscript{reasonUnsupported}
	case !recorded(sess) && sess.ID != "":
		return page, noTranscript{reasonMissing}
	case !recorded(sess):
		return page, noTranscript{reasonNoSession}
	}
	page.Source, page.Provider = sourceTranscript, &sess.Provider
	n := q.Limit
	if n == 0 {
		n = DefaultMessages
	}
	got, err := s.Transcripts.Read(ctx, sess, a.Terminal, TranscriptQuery{At: at.At, Identity: at.Identity, Messages: n})
	if errors.Is(err, ErrNoTranscript) && q.Cursor == "" {
		return s.archived(ctx, a, sourceTranscript, page)
	}
	if errors.Is(err, ErrNoTranscript) {
		return page, noTranscript{reasonMissing}
	}
	if err != nil {
		return page, err
	}
	page.Transcript, page.SourceIdentity = &got.TranscriptPage, got.Identity
	page.Warnings = append(page.Warnings, got.Warnings...)
	cursor, err := s.seal(outputPlace{a.Dispatch, processOf(a), sourceTranscript, got.Identity, got.Next})
	page.Cursor = &cursor
	return page, err
}

// recorded reports whether it is known where a session's record is.
func recorded(s hub.AgentSession) bool {
	return s.Provider != "" && (s.Transcript != "" || s.Output)
}

// archived is what was kept of the end of a source that is gone.
func (s *Service) archived(ctx context.Context, a hub.Attachment, source string, page hub.OutputPage) (hub.OutputPage, error) {
	var kept hub.ArchivedOutput
	var ok bool
	err := s.Store.View(ctx, func(rx store.Rx) (err error) {
		kept, ok, err = rx.ArchivedOutput(a.Home, a.Dispatch)
		return err
	})
	if err != nil {
		return page, err
	}
	if !ok || kept.Source != source {
		return page, noTranscript{reasonMissing}
	}
	page.Archived, page.SourceIdentity = true, kept.Identity
	if source == sourceTerminal {
		page.Terminal = &kept.Text
		return page, nil
	}
	page.Transcript = &hub.TranscriptPage{Messages: kept.Messages, Limited: true}
	return page, nil
}

// Sizes of what is kept of a worker's output when its process has ended.
const (
	archivedMessages = DefaultMessages
	archivedBytes    = 256 << 10
)

// archiveAll is what is kept of the outputs of the workers of an ended process.
// Output that cannot be read is left out: it holds no end back.
func (s *Service) archiveAll(ctx context.Context, in hub.Incarnation) (map[attempt]hub.ArchivedOutput, error) {
	as, err := s.workersOf(ctx, in)
	kept := map[attempt]hub.ArchivedOutput{}
	for _, a := range as {
		out, err := s.archive(ctx, a)
		if err != nil {
			s.Log.Error("keeping the end of a worker's output", "dispatch_id", a.Dispatch, "error", err)
			continue
		}
		kept[attempt{a.Home, a.Dispatch}] = out
	}
	return kept, err
}

// workersOf are the attempts that have a part in a process.
func (s *Service) workersOf(ctx context.Context, in hub.Incarnation) (as []hub.Attachment, err error) {
	err = s.Store.View(ctx, func(rx store.Rx) error {
		as, err = rx.AttachedTo(in.Terminal)
		return err
	})
	return slices.DeleteFunc(as, func(a hub.Attachment) bool { return a.Process == nil || *a.Process != in }), err
}

// archive is the end of an ended worker's output.
func (s *Service) archive(ctx context.Context, a hub.Attachment) (hub.ArchivedOutput, error) {
	if sess := a.Agent.Session; recorded(sess) {
		ms, identity, err := s.Transcripts.Last(ctx, sess, a.Terminal, archivedMessages)
		if err == nil {
			return hub.ArchivedOutput{Source: sourceTranscript, Identity: identity, Provider: sess.Provider, Messages: ms}, nil
		}
		if !errors.Is(err, ErrNoTranscript) {
			s.Log.Warn("keeping the end of a transcript", "dispatch_id", a.Dispatch, "error", err)
		}
	}
	out := hub.ArchivedOutput{Source: sourceTerminal, Identity: string(a.Terminal)}
	var err error
	if a.Agent.Mode == hub.ModeTUI {
		_, err = s.screen(ctx, a, MaxOutputLimit, &out.Text)
	} else {
		_, err = s.lastLines(ctx, a, MaxOutputLimit, &out.Text)
	}
	if n := len(out.Text.Text); n > archivedBytes {
		out.Text.Text, out.Text.Truncated = hub.PlainText([]byte(out.Text.Text[n-archivedBytes:])), true
	}
	return out, err
}
