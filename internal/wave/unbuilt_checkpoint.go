package wave

import (
	"encoding/json"

	"github.com/wavehub/wavehub/internal/hub"
)

// restored, evidence, readCheckpoint, matchCheckpoint and checkFolder are built by
// the piece checkpoint. matchCheckpoint is checkpoint_mismatch for tasks that are
// not those of the checkpoint.
type restored struct {
	Entries   []hub.WaveEntry
	Policy    hub.WavePolicy
	Goal      string
	Iteration int
	Exhausted bool
	Done      map[string]evidence
	Warnings  []hub.Finding
}

type evidence struct{ CompletedAt hub.Micros }

func (evidence) taskResult() (string, json.RawMessage) { return "source: checkpoint", nil }

func readCheckpoint(Checkpoint, bool) (restored, error) { return restored{}, errUnbuilt }

func matchCheckpoint(restored, []hub.WaveEntry) error { return errUnbuilt }

func checkFolder(string, hub.WaveID) error { return errUnbuilt }
