package terminal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/proc"
)

// indexDir, beside the root, has one file per supervisor that runs, named by its
// pid: whoever descends from a supervisor finds its terminal there.
const indexDir = "supervisors"

func indexFile(root string, pid int) string {
	return filepath.Join(filepath.Dir(root), indexDir, strconv.Itoa(pid))
}

// entry is what the index says of a supervisor. A pid may have been taken over
// since: the identity decides.
type entry struct {
	Terminal   hub.TerminalID `json:"terminal"`
	Supervisor proc.Identity  `json:"supervisor"`
}

// enlist enters a supervisor before its process runs, and returns what takes it
// out again. An entry that stays after a crash names nobody that lives.
func enlist(root string, e entry) (leave func() error, err error) {
	path := indexFile(root, e.Supervisor.PID)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("making the index of supervisors: %w", err)
	}
	raw, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		return nil, fmt.Errorf("entering the supervisor: %w", err)
	}
	return func() error { return os.Remove(path) }, nil
}

// Within returns the terminal of root whose supervisor is one of the processes,
// the nearest first, and false if none is.
func Within(root string, chain []proc.Identity) (hub.TerminalID, bool, error) {
	for _, p := range chain {
		raw, err := os.ReadFile(indexFile(root, p.PID))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", false, fmt.Errorf("reading the index of supervisors: %w", err)
		}
		var e entry // whole before the first descendant lives: a torn one is of a former boot
		if json.Unmarshal(raw, &e) == nil && e.Supervisor == p {
			return e.Terminal, true, nil
		}
	}
	return "", false, nil
}
