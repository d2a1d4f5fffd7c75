package wave

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

// Checkpoint is the text of the files of a checkpoint folder (design page 6.5):
// Done by level; Exhausted says that MAX_ITERATIONS_REACHED is there.
type Checkpoint struct {
	Graph, State string
	Done         map[int]string
	Exhausted    bool
}

// Files keeps the files of checkpoint folders. What returns nil is on the disk and
// survives a crash; an error says nothing about what is there. Each wave's folder
// has one user at a time.
type Files interface {
	// Settle makes what lies in a folder durable, and removes what writes that were
	// cut left there. A folder that is not there is none to settle.
	Settle(dir string) error
	// Read is fs.ErrNotExist for a file that is not there, and safefile.ErrTooLarge
	// for one of more than limit bytes.
	Read(path string, limit int64) ([]byte, error)
	// Write replaces a file, and makes its folders: it is never seen in part.
	Write(path string, data []byte) error
	// Rename moves a file, in the place of one that is there.
	Rename(from, to string) error
	// Remove removes a file, if it is there.
	Remove(path string) error
}

// Names of the files of a folder.
const (
	graphName  = "graph.json"
	stateName  = "state.json"
	markerName = "MAX_ITERATIONS_REACHED"
	levelsName = "waves"
)

func doneName(level int) string     { return levelName(level) + "/done.json" }
func failuresName(level int) string { return levelName(level) + "/failures.json" }
func levelName(level int) string    { return levelsName + "/" + strconv.Itoa(level) }

// formerName is what the failures.json of a former iteration becomes.
func formerName(level, iteration int) string {
	return fmt.Sprintf("%s/failures.%d.json", levelName(level), iteration)
}

// waveFolder is the folder of a wave in its checkpoint folder.
func waveFolder(dir string, id hub.WaveID) string {
	return filepath.Join(dir, pathName(string(id)))
}

// pathName is a name as a part of a path on any system: every byte outside of
// [a-z0-9_-] is percent-encoded, so that no two names differ in their case only.
func pathName(name string) string {
	var out strings.Builder
	for i := range len(name) {
		if c := name[i]; c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '-' {
			out.WriteByte(c)
		} else {
			fmt.Fprintf(&out, "%%%02X", c)
		}
	}
	return out.String()
}
