package work

import (
	"context"
	"regexp"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// OutputQuery asks for a page of output.
type OutputQuery struct {
	Source string // auto, transcript, terminal
	Limit  int    // bytes; 0 means DefaultOutputBytes
	Cursor string
}

// Sizes of a page of terminal output.
const (
	DefaultOutputBytes = 64 << 10
	MaxOutputBytes     = 512 << 10
)

// Check refuses what cannot be asked.
func (q OutputQuery) Check() error {
	switch {
	case q.Source != "" && q.Source != "auto" && q.Source != "transcript" && q.Source != "terminal":
		return hub.Invalid("source", "must be auto, transcript or terminal")
	case q.Limit < 0 || q.Limit > MaxOutputBytes:
		return hub.Invalid("limit", "must be 1 to %d", MaxOutputBytes)
	case q.Cursor != "":
		return hub.Errorf(hub.CodeCursorInvalid, "terminal output has no pages; leave the cursor away")
	}
	return nil
}

// readTimeout bounds the question to a peer.
const readTimeout = 15 * time.Second

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
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	page, err := s.Remote.Output(ctx, d.Server.PeerID, id, q)
	page.Server, page.Status.Worker = d.Server, d.State
	return page, err
}

// page reads the end of a worker's output at its owner.
func (s *Service) page(ctx context.Context, a hub.Attachment, q OutputQuery) (hub.OutputPage, error) {
	if err := q.Check(); err != nil {
		return hub.OutputPage{}, err
	}
	if q.Source == "transcript" {
		return hub.OutputPage{}, hub.Errorf(hub.CodeTranscriptRequired, "the agent %q has no transcript that can be associated", a.Spec.Agent)
	}
	obs, err := s.observe(ctx, a)
	if err != nil {
		return hub.OutputPage{}, err
	}
	limit := q.Limit
	if limit == 0 {
		limit = DefaultOutputBytes
	}
	var tail hub.OutputTail
	if a.Process != nil {
		if tail, err = s.Terminals.Tail(ctx, a.Terminal, limit); err != nil {
			return hub.OutputPage{}, err
		}
	}
	page := hub.OutputPage{
		Dispatch: a.Dispatch, Source: "terminal", SourceIdentity: string(a.Terminal), Server: hub.Server{Name: s.Name},
		OwnerEpoch: s.Epoch, Status: hub.OutputStatus{Terminal: obs.Process}, Warnings: []string{},
		Terminal: hub.TerminalText{Text: withoutEscapes(redact(tail.Data)), Truncated: tail.Truncated},
	}
	if a.Attached() {
		page.Warnings = append(page.Warnings, "an attached worker's output is not seen by any hub; see what it reports")
	}
	if q.Source != "terminal" {
		reason := "session_not_reported"
		page.FallbackReason = &reason
	}
	return page, nil
}

var escapes = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~])|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]`)

// withoutEscapes removes what steers a terminal and is no text.
func withoutEscapes(s string) string { return escapes.ReplaceAllString(s, "") }

var secrets = regexp.MustCompile(`wh[urcdw]_[0-9A-Za-z]{20,}`)

// redact makes output text that a message may carry, without anything that
// looks like a token.
func redact(raw []byte) string {
	return secrets.ReplaceAllString(hub.PlainText(raw), "[redacted]")
}
