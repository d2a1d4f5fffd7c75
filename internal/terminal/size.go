package terminal

import (
	"github.com/wavehub/wavehub/internal/hub"
)

// The sizes that a pseudo terminal can have.
const (
	maxRows = 300
	minCols = 2 // a wide character
	maxCols = 500
)

// pipeSize is how wide and high the output of pipes is rendered.
var pipeSize = hub.TerminalSize{Rows: 50, Cols: 200}

func checkSize(s hub.TerminalSize) error {
	if s.Rows < 1 || s.Rows > maxRows || s.Cols < minCols || s.Cols > maxCols {
		return hub.Invalid("size", "%d rows and %d columns are not within 1 to %d and %d to %d", s.Rows, s.Cols, maxRows, minCols, maxCols)
	}
	return nil
}

// sizeOf returns the last size of the pseudo terminal in dir, also after its
// process; false for pipes.
func sizeOf(dir string) (hub.TerminalSize, bool, error) {
	var l launch
	if _, err := load(dir, specFile, &l); err != nil || l.PTY == nil {
		return hub.TerminalSize{}, false, err
	}
	size := *l.PTY
	_, err := load(dir, sizeFile, &size) // none before the first resize
	return size, true, err
}
