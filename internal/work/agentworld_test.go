package work_test

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/work"
)

// screens is the output of fake processes with pipes. The zero value is ready.
type screens struct {
	mu      sync.Mutex
	written map[hub.TerminalID][]byte // guarded by mu
	first   int64                     // guarded by mu; what is before was dropped
	more    chan struct{}             // guarded by mu; closed when something is written
}

func (s *screens) write(id hub.TerminalID, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.written == nil {
		s.written = map[hub.TerminalID][]byte{}
	}
	s.written[id] = append(s.written[id], text...)
	if s.more != nil {
		close(s.more)
		s.more = nil
	}
}

func (s *screens) output(id hub.TerminalID) (data []byte, first int64, more chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.more == nil {
		s.more = make(chan struct{})
	}
	return s.written[id], s.first, s.more
}

func (ts *terminals) pipeOutput(_ context.Context, id hub.TerminalID, from int64, maxBytes int) (hub.OutputRange, error) {
	data, first, _ := ts.screens.output(id)
	total := int64(len(data))
	from = min(max(from, first), total)
	end := min(total, from+int64(maxBytes))
	return hub.OutputRange{Data: data[from:end], From: from, First: first, Total: total}, nil
}

func (ts *terminals) pipeAwait(ctx context.Context, in hub.Incarnation, after int64) (int64, error) {
	p, ok := ts.find(in.Terminal)
	if !ok {
		return 0, errors.New("no such terminal")
	}
	for {
		data, _, more := ts.screens.output(in.Terminal)
		if int64(len(data)) > after {
			return int64(len(data)), nil
		}
		select {
		case <-p.exited:
			data, _, _ := ts.screens.output(in.Terminal)
			return int64(len(data)), nil
		case <-more:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

func (launchers) Event(_, name string, raw []byte) (hub.AgentEvent, string, error) {
	if name == "bad" {
		return hub.AgentEvent{}, "", hub.Invalid("data", "is no JSON")
	}
	return hub.AgentEvent{Kind: hub.AgentEventKind(name), Session: "s1", Transcript: string(raw)}, "codex", nil
}

func (launchers) TitleState(_, title, _ string) (hub.AgentEventKind, bool) {
	return hub.AgentIdle, title == "idle"
}

func (launchers) HasTranscript(agent string) bool { return agent == "other" }

func (launchers) Stream(string) (work.Stream, error) { return &lineStream{}, nil }

func (launchers) List() []hub.AgentFacts {
	return []hub.AgentFacts{{Name: "other", Program: "/bin/other"}, {Name: "sh", Program: "/bin/sh"}}
}

func (l launchers) KnownVersion(ctx context.Context, agent string) (string, error) {
	return l.Version(ctx, agent)
}

func (launchers) Version(_ context.Context, agent string) (string, error) {
	if agent == "sh" {
		return "", hub.Errorf(hub.CodeAgentUnconfigured, "sh says no version")
	}
	return "1.0", nil
}

// lineStream takes the line "session X" for the session and "result X" for the
// terminal record.
type lineStream struct {
	text    string
	session string
	result  *hub.AgentResult
}

func (l *lineStream) Write(p []byte) (int, error) {
	l.text += string(p)
	for {
		line, rest, ok := strings.Cut(l.text, "\n")
		if !ok {
			return len(p), nil
		}
		l.text = rest
		if id, ok := strings.CutPrefix(line, "session "); ok {
			l.session = id
		}
		if text, ok := strings.CutPrefix(line, "result "); ok {
			l.result = &hub.AgentResult{Outcome: hub.OutcomeSucceeded, Text: text, Usage: hub.Usage{Source: hub.UsageReported}}
		}
	}
}

func (l *lineStream) End(int) {}

func (l *lineStream) Session() string { return l.session }

func (l *lineStream) Result() (hub.AgentResult, bool) {
	if l.result == nil {
		return hub.AgentResult{}, false
	}
	return *l.result, true
}

// records is the transcripts of fake agents by their path, a message a line.
type records struct {
	mu    sync.Mutex
	lines map[string][]string // guarded by mu
	id    string              // guarded by mu; identity of them all
}

func (r *records) write(path string, lines ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lines == nil {
		r.lines = map[string][]string{}
	}
	r.lines[path] = append(r.lines[path], lines...)
}

func (r *records) replace(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.id = id
}

func (r *records) drop(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.lines, path)
}

// Read implements work.Transcripts; a position is the number of lines behind it.
func (r *records) Read(_ context.Context, s hub.AgentSession, _ hub.TerminalID, q work.TranscriptQuery) (work.TranscriptRead, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines, ok := r.lines[s.Transcript]
	if !ok {
		return work.TranscriptRead{}, work.ErrNoTranscript
	}
	if q.Identity != "" && q.Identity != r.id {
		return work.TranscriptRead{}, hub.Errorf(hub.CodeSourceChanged, "changed")
	}
	at := 0
	if q.At != nil {
		if err := json.Unmarshal(q.At, &at); err != nil {
			return work.TranscriptRead{}, err
		}
	}
	end := min(len(lines), at+q.Messages)
	out := work.TranscriptRead{Identity: r.id, Next: json.RawMessage(strconv.Itoa(end)), TranscriptPage: hub.TranscriptPage{
		Messages: messages(lines[at:end]), Limited: end < len(lines),
	}}
	return out, nil
}

func (r *records) Last(_ context.Context, s hub.AgentSession, _ hub.TerminalID, n int) ([]hub.TranscriptMessage, string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines, ok := r.lines[s.Transcript]
	if !ok {
		return nil, "", work.ErrNoTranscript
	}
	return messages(lines[max(0, len(lines)-n):]), r.id, nil
}

func messages(lines []string) []hub.TranscriptMessage {
	out := make([]hub.TranscriptMessage, len(lines))
	for i, l := range lines {
		out[i] = hub.TranscriptMessage{ID: l, Role: "assistant", Blocks: []hub.TranscriptBlock{{Kind: hub.BlockText, Text: l}}}
	}
	return out
}

// Meter counts a token for each line.
func (r *records) Meter(s hub.AgentSession, _ hub.TerminalID) work.Meter {
	return func(context.Context) (hub.Usage, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		lines, ok := r.lines[s.Transcript]
		if !ok {
			return hub.Usage{}, work.ErrNoTranscript
		}
		return hub.Usage{OutputTokens: new(int64(len(lines))), Source: hub.UsageReported}, nil
	}
}
