package terminal

import (
	"bytes"
	"context"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/vt"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/safetext"
)

// fedChunk is how much output the emulator gets between two looks at the clock,
// in bytes: a sequence can cost it thousands of times its length.
const fedChunk = 64

// emulator is a terminal that is written to by one goroutine.
type emulator struct {
	*vt.Emulator
	scanner scanner // knows the title, and which bytes are within a string
	pumped  chan struct{}
}

// newEmulator starts the pump that throws its answers away: one that nobody
// reads would stop it.
func newEmulator(size hub.TerminalSize, scrollback int) *emulator {
	e := &emulator{Emulator: vt.NewEmulator(size.Cols, size.Rows), pumped: make(chan struct{})}
	e.SetScrollbackSize(max(scrollback, 1)) // none is not offered
	go func() {
		defer close(e.pumped)
		_, _ = io.Copy(io.Discard, e.Emulator) // ended by stop
	}()
	return e
}

// stop ends the pump.
func (e *emulator) stop() {
	if pipe, ok := e.InputPipe().(io.Closer); ok {
		_ = pipe.Close() // of a pipe in memory
	}
	<-e.pumped
}

// emulate feeds the output and reads the screen.
func (v view) emulate(ctx context.Context) (hub.Screen, error) {
	e := newEmulator(v.size, v.scrollback)
	defer e.stop()
	for rest := v.output; len(rest) > 0; {
		if err := ctx.Err(); err != nil {
			return hub.Screen{}, err
		}
		n := chunkEnd(rest)
		if _, err := e.Write(v.fed(e.tame(rest[:n]))); err != nil {
			return hub.Screen{}, err
		}
		rest = rest[n:]
	}
	return v.read(e), nil
}

// tame replaces what is not ASCII within strings, such as titles: of its bytes
// the emulator takes some for control characters. No string is on the screen.
func (e *emulator) tame(p []byte) []byte {
	tamed := bytes.Clone(p)
	for i, b := range p {
		if b >= utf8.RuneSelf && (e.scanner.state == inCommand || e.scanner.state == inString) {
			tamed[i] = '?'
		}
		e.scanner.scan(p[i : i+1])
	}
	return tamed
}

// fed makes of a pipe's line ends what a terminal makes of them.
func (v view) fed(p []byte) []byte {
	if !v.pipes {
		return p
	}
	return bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n"))
}

// chunkEnd is where the next chunk of output ends: before a byte that cannot
// continue a character, if there is one near.
func chunkEnd(output []byte) int {
	if len(output) <= fedChunk {
		return len(output)
	}
	for n := fedChunk; n > fedChunk/2; n-- {
		if output[n] < utf8.RuneSelf {
			return n
		}
	}
	return fedChunk
}

func (v view) read(e *emulator) hub.Screen {
	at := e.CursorPosition()
	s := hub.Screen{
		Size: v.size, Title: e.scanner.term.title, Truncated: v.truncated,
		CursorRow: at.Y, CursorCol: at.X,
	}
	for y := range v.size.Rows {
		s.Lines = append(s.Lines, e.row(y))
	}
	for len(s.Lines) > 0 && s.Lines[len(s.Lines)-1] == "" {
		s.Lines = s.Lines[:len(s.Lines)-1]
	}
	if v.scrollback > 0 {
		s.Scrollback = e.above()
	}
	return s
}

// row is the text of a row of the screen. The second half of a wide character
// is a cell without content.
func (e *emulator) row(y int) string {
	var text strings.Builder
	for x := range e.Width() {
		if c := e.CellAt(x, y); c != nil {
			text.WriteString(c.Content)
		}
	}
	return plain(text.String())
}

// above is the text of the lines that have left the screen.
func (e *emulator) above() []string {
	var lines []string
	for _, line := range e.Scrollback().Lines() {
		var text strings.Builder
		for _, c := range line {
			text.WriteString(c.Content)
		}
		lines = append(lines, plain(text.String()))
	}
	return lines
}

// plain is text without trailing blanks and without anything that would move or
// hide text when it is shown.
func plain(text string) string { return strings.TrimRight(safetext.Clean(text), " ") }
