package wave

// Checkpoint is the text of the files of a checkpoint folder (design page 6.5):
// Done by level; Exhausted says that MAX_ITERATIONS_REACHED is there.
type Checkpoint struct {
	Graph, State string
	Done         map[int]string
	Exhausted    bool
}

// Files writes files of checkpoint folders.
type Files interface {
	// Write replaces a file durably: it is never seen in part.
	Write(path string, data []byte) error
	// Rename moves a file, if it is there.
	Rename(from, to string) error
}
