package wave

import (
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

// A start that is refused for good tells in the log what was wrong with it, and not
// only by its code.
func TestRefusedStartsAreToldInWords(t *testing.T) {
	one := task{refused: hub.CodeInvalidArgument, told: "worktree: there is no /nope"}
	s := &step{view: &view{}}
	for reason, want := range map[string]failure{
		string(hub.CodeInvalidArgument): {Error: "invalid_argument", Output: "worktree: there is no /nope"},
		hub.EndTimeout:                  {Error: "timeout"},
	} {
		got := s.outcome(&one, standing{status: hub.WaveFailed, reason: reason})
		if len(got) != 1 || got[0].kind != hub.EventTaskFailed || got[0].data != want {
			t.Errorf("%s: %+v", reason, got)
		}
	}
}
