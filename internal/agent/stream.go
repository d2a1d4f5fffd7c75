package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// MaxRecord bounds one line of an agent's structured output, in bytes. A
// longer one is passed over.
const MaxRecord = 2 << 20

// Stream reads an agent's structured output, one JSON object a line, as it
// comes, for what its end says. It keeps one line, the last text and sums. The
// zero value is not usable.
type Stream struct {
	reader  reader
	line    []byte
	tooLong bool // the present line is passed over
	skipped int
}

// reader takes one kind of record apart. What it cannot read it leaves out.
type reader interface {
	record(line []byte)
	session() string
	// result is false until the output has said what it came to.
	result() (hub.AgentResult, bool)
	// end tells that the process is gone.
	end(exitCode int)
}

// NewStream begins to read output of a kind (StreamClaude and so on); another
// kind is invalid_argument.
func NewStream(kind string) (*Stream, error) {
	r, ok := map[string]reader{
		StreamClaude: &claudeStream{}, StreamCodex: &codexStream{}, StreamGemini: &geminiStream{},
		StreamOpencode: &opencodeStream{}, StreamGrok: &grokStream{},
	}[kind]
	if !ok {
		return nil, hub.Invalid("result", "%q is no kind of output that can be read", kind)
	}
	return &Stream{reader: r}, nil
}

// Write takes the next bytes of the output, cut anywhere. It never fails.
func (s *Stream) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		part, after, ended := bytes.Cut(rest, []byte("\n"))
		s.add(part)
		if ended {
			s.flush()
		}
		rest = after
	}
	return len(p), nil
}

func (s *Stream) add(part []byte) {
	if s.tooLong || len(s.line)+len(part) > MaxRecord {
		s.line, s.tooLong = s.line[:0], true
		return
	}
	s.line = append(s.line, part...)
}

func (s *Stream) flush() {
	line := bytes.TrimSpace(s.line)
	switch {
	case s.tooLong:
		s.skipped++
	case len(line) > 0 && line[0] == '{':
		s.reader.record(line)
	}
	s.line, s.tooLong = s.line[:0], false
}

// End tells the stream that the process is gone with that exit code, after all
// of its output. Agents without a terminal record have their result now;
// nothing changes the result of the others.
func (s *Stream) End(exitCode int) {
	s.flush()
	s.reader.end(exitCode)
}

// Session is the agent's own id of its session, "" until it was said.
func (s *Stream) Session() string {
	if id := s.reader.session(); sessionGrammar.MatchString(id) {
		return id
	}
	return ""
}

// Skipped is how many lines were too long to be read.
func (s *Stream) Skipped() int { return s.skipped }

// Result is what the output says that the attempt came to; false until its
// terminal record has come. Codex counts usage by thread: after a resumed
// session its figures hold the earlier turns too.
func (s *Stream) Result() (hub.AgentResult, bool) {
	r, ok := s.reader.result()
	if !ok {
		return hub.AgentResult{}, false
	}
	r.Session = s.Session()
	if r.Usage.Source == "" {
		r.Usage.Source = hub.UsageUnknown
	}
	return r, true
}

// decode reads what it can of a record: a field of another type than it had
// stays empty, since the end of the output must not be lost for it.
func decode(line []byte, v any) bool {
	err := json.Unmarshal(line, v)
	_, odd := errors.AsType[*json.UnmarshalTypeError](err)
	return err == nil || odd
}

// ending is what a stream came to, once that is known.
type ending struct{ last *hub.AgentResult }

func (e *ending) close(r hub.AgentResult) { e.last = &r }

func (e *ending) result() (hub.AgentResult, bool) {
	if e.last == nil {
		return hub.AgentResult{}, false
	}
	return *e.last, true
}

// judged is a result: failed with its class, or succeeded.
func judged(kind string, failed bool, text string, usage hub.Usage) hub.AgentResult {
	if !failed {
		return hub.AgentResult{Outcome: hub.OutcomeSucceeded, Text: text, Usage: usage}
	}
	r := hub.AgentResult{Outcome: hub.OutcomeFailed, Text: text, Usage: usage}
	r.Class, r.ResetAt = Classify(kind, text, time.Time{})
	return r
}

// sum adds figures of which some may be missing: then it is missing too.
func sum(figures ...*int64) *int64 {
	var total int64
	for _, f := range figures {
		if f == nil {
			return nil
		}
		total += *f
	}
	return &total
}
