package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/proc"
	"github.com/wavehub/wavehub/internal/safefile"
)

// noteState is how far a Dispatch has come with this loop.
type noteState string

// A note is on the disk before what it says happens: noted before the
// session_start is acknowledged, started before the turn's process, ended, with
// the report and its request id, before the report is sent.
const (
	noted   noteState = "noted"
	started noteState = "started"
	over    noteState = "ended"
)

// note is the durable record of one Dispatch of an attached worker.
type note struct {
	Start hub.SessionStart `json:"start"`
	State noteState        `json:"state"`
	// TurnID marks the processes of the turn; Process is its shell, or, until that
	// is known, this program (Spawned false).
	TurnID  string        `json:"turn_id,omitempty"`
	Process proc.Identity `json:"process"`
	Spawned bool          `json:"spawned,omitempty"`
	// Outcome and Body are the report, sent under Request; no Outcome is none.
	Outcome string `json:"outcome,omitempty"`
	Body    string `json:"body,omitempty"`
	Request string `json:"request_id,omitempty"`
}

func (n note) id() string { return string(n.Start.Dispatch) }

// noteBook keeps notes as files of a private folder. Only the loop's goroutine and
// that of the Dispatch's turn use a note, never both at once.
type noteBook struct{ dir string }

const noteSuffix = ".json"

// maxNote bounds a note: the text of a Task may take six bytes for each of its own.
const maxNote = 16 << 20

func (b noteBook) path(id string) string { return filepath.Join(b.dir, id+noteSuffix) }

// put writes the note; when it returns the note is on the disk.
func (b noteBook) put(n note) error {
	raw, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return safefile.WriteAtomic(b.path(n.id()), raw, 0o600)
}

func (b noteBook) drop(id string) error {
	err := os.Remove(b.path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// get returns the note of a Dispatch, false if there is none.
func (b noteBook) get(id string) (note, bool, error) {
	raw, err := safefile.ReadPrivate(b.path(id), maxNote)
	if errors.Is(err, fs.ErrNotExist) {
		return note{}, false, nil
	}
	if err != nil {
		return note{}, false, err
	}
	var n note
	if err := json.Unmarshal(raw, &n); err != nil || n.id() != id {
		return note{}, false, fmt.Errorf("%s is no note of attach: %w", b.path(id), errors.Join(err, fs.ErrInvalid))
	}
	return n, true, nil
}

// all returns every note.
func (b noteBook) all() ([]note, error) {
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		return nil, err
	}
	var out []note
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), noteSuffix)
		if !ok || !hub.ValidID(hub.PrefixDispatch, id) {
			continue
		}
		n, ok, err := b.get(id)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, n)
		}
	}
	return out, nil
}

// private is the folder of a turn's own files.
func (b noteBook) private(turnID string) string { return filepath.Join(b.dir, "turn-"+turnID) }
