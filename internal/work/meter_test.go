package work_test

import (
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// used is what the attachment's agent was counted to have used, 0 for nothing.
func (r *reader) used() int64 {
	if u := r.attached().Agent.Usage; u != nil && u.OutputTokens != nil {
		return *u.OutputTokens
	}
	return 0
}

func (r *reader) comesToUse(want int64) {
	r.t.Helper()
	changed, cancel := r.bus.Subscribe(string(hub.TopicAttachment), hub.AttachmentKey("", r.id))
	defer cancel()
	limit := time.After(10 * time.Second)
	for r.used() != want {
		select {
		case <-changed:
		case <-limit:
			r.t.Fatalf("%d tokens were counted, want %d", r.used(), want)
		}
	}
}

// An agent that tells of its usage in its transcript alone is counted at the end of
// each turn; a record that is not there counts nothing.
func TestAgentsAreCountedByTheirTranscripts(t *testing.T) {
	r := newReader(t, "other")
	r.notes.write("/t", "one", "two")
	r.hear("session_started", "/t")
	r.hear("turn_ended", "/t")
	r.comesToUse(2)
	r.notes.write("/t", "three")
	r.hear("turn_ended", "/t")
	r.comesToUse(3)
	r.hear("turn_ended", "/gone")
	r.hear("turn_ended", "/t")
	r.comesToUse(3)
}
