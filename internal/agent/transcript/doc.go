// Package transcript reads what agents' CLIs write of their own sessions: it
// decodes their records, pages through them in constant memory, and says of
// which session a file is and what it took.
//
// It opens nothing: the caller gives an io.ReaderAt and the size up to which
// the file may be read. All functions are safe for concurrent use; a Meter
// belongs to one goroutine. What comes out is worker text: valid UTF-8 without
// NULs, without capability tokens and local image paths, and bounded; it is not
// yet safe to show on a terminal.
//
// DESIGN.md has the rules of each provider.
package transcript
