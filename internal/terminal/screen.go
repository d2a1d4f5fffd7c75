package terminal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

const (
	maxFed        = 8 << 20 // bytes of output behind one screen
	maxScrollback = 10_000  // lines
	maxScrollable = 1 << 18 // cells of all scrollback: what a terminal's width leaves in lines
	renderLimit   = 5 * time.Second
	renderings    = 2 // at a time: one that hangs keeps its place
	// resyncWithin is how far a rendering that begins amid the output looks for
	// a place to begin at.
	resyncWithin = 4 << 10
)

// rendering has a place for each emulator that runs.
var rendering = make(chan struct{}, renderings)

// Screen renders the terminal from the output that is kept, at the size that it
// has or last had, also after the process has ended and without a supervisor.
// Pipes are rendered at a size of their own. At most two screens are rendered at
// a time; what takes longer than five seconds, or than ctx, is terminal_busy.
func (m *Manager) Screen(ctx context.Context, terminal hub.TerminalID, q hub.ScreenQuery) (hub.Screen, error) {
	dir, err := m.opened(ctx, terminal)
	if err != nil {
		return hub.Screen{}, err
	}
	view, err := viewOf(dir, q)
	if err != nil {
		return hub.Screen{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, renderLimit)
	defer cancel()
	screen, err := view.render(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		busy := hub.Errorf(hub.CodeTerminalBusy, "the screen was not rendered in time")
		busy.Hint = "read the terminal's output instead, or render less of it"
		return hub.Screen{}, busy
	}
	return screen, err
}

// view is what one screen is rendered from.
type view struct {
	size       hub.TerminalSize
	pipes      bool
	output     []byte
	truncated  bool
	scrollback int // lines
}

// viewOf reads what q asks for; the output ends where it did at the call.
func viewOf(dir string, q hub.ScreenQuery) (view, error) {
	size, pty, err := sizeOf(dir)
	if err != nil {
		return view{}, err
	}
	if !pty {
		size = pipeSize
	}
	limit := q.MaxBytes
	if limit <= 0 || limit > maxFed {
		limit = maxFed
	}
	tail, err := readTail(filepath.Join(dir, outputDir), limit)
	if err != nil {
		return view{}, err
	}
	v := view{size: size, pipes: !pty, output: tail.Data, truncated: tail.Truncated}
	v.scrollback = min(max(q.Scrollback, 0), maxScrollback, maxScrollable/size.Cols)
	if v.truncated {
		v.output = resync(v.output)
	}
	return v, nil
}

// resync leaves out what may be the rest of a character or a sequence: all up
// to the first end of a line or begin of a sequence, if that is near.
func resync(output []byte) []byte {
	at := bytes.IndexAny(output[:min(len(output), resyncWithin)], "\n\x1b")
	if at < 0 {
		return output
	}
	return output[at:]
}

// render runs the emulator in a goroutine of its own: it may panic, or take
// longer than the caller waits. It keeps its place until it has ended.
func (v view) render(ctx context.Context) (hub.Screen, error) {
	select {
	case rendering <- struct{}{}:
	case <-ctx.Done():
		return hub.Screen{}, ctx.Err()
	}
	type result struct {
		screen hub.Screen
		err    error
	}
	done := make(chan result, 1)
	go func() {
		defer func() { <-rendering }()
		var r result
		r.screen, r.err = v.guarded(ctx)
		done <- r
	}()
	select {
	case r := <-done:
		return r.screen, r.err
	case <-ctx.Done():
		return hub.Screen{}, ctx.Err()
	}
}

// guarded turns a panic of the emulator into an error.
func (v view) guarded(ctx context.Context) (s hub.Screen, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("rendering the terminal: the emulator failed: %v", p)
		}
	}()
	return v.emulate(ctx)
}
