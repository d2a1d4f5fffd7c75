package work_test

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/work"
)

// screen is a fake pseudo terminal: what was typed into it, and what it wrote.
type screen struct {
	mu     sync.Mutex
	typed  []string          // guarded by mu; one entry for each input
	output []byte            // guarded by mu
	state  hub.TerminalState // guarded by mu
	wrote  chan struct{}     // guarded by mu; closed at the next output
	fail   func(n int) error // guarded by mu; what the n-th input ends with, from 1
}

func newScreen(size hub.TerminalSize) *screen {
	return &screen{state: hub.TerminalState{Size: size}, wrote: make(chan struct{})}
}

// write is output of the process.
func (sc *screen) write(text string) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	sc.output = append(sc.output, text...)
	close(sc.wrote)
	sc.wrote = make(chan struct{})
}

// be changes what the terminal says of itself.
func (sc *screen) be(change func(*hub.TerminalState)) {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	change(&sc.state)
}

func (sc *screen) inputs() []string {
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return append([]string{}, sc.typed...)
}

// pty is the live pseudo terminal of exactly this incarnation.
func (ts *terminals) pty(in hub.Incarnation) (*process, error) {
	p, ok := ts.find(in.Terminal)
	switch {
	case !ok || p.in != in:
		return nil, hub.Errorf(hub.CodePreconditionFailed, "not proven")
	case p.screen == nil:
		return nil, hub.Invalid("data", "it has pipes")
	}
	select {
	case <-p.exited:
		return nil, hub.Errorf(hub.CodeDispatchInactive, "it has ended")
	default:
		return p, nil
	}
}

func (ts *terminals) Input(_ context.Context, in hub.Incarnation, data []byte) error {
	p, err := ts.pty(in)
	if err != nil {
		return err
	}
	p.screen.mu.Lock()
	defer p.screen.mu.Unlock()
	if p.screen.fail != nil {
		err = p.screen.fail(len(p.screen.typed) + 1)
	}
	if err == nil || hub.IsCode(err, hub.CodeOutcomeUnknown) {
		p.screen.typed = append(p.screen.typed, string(data))
	}
	return err
}

func (ts *terminals) State(_ context.Context, in hub.Incarnation) (hub.TerminalState, error) {
	p, ok := ts.find(in.Terminal)
	if !ok || p.in != in {
		return hub.TerminalState{}, hub.Errorf(hub.CodePreconditionFailed, "not proven")
	}
	if p.screen == nil {
		return hub.TerminalState{}, nil
	}
	p.screen.mu.Lock()
	defer p.screen.mu.Unlock()
	st := p.screen.state
	st.Total = int64(len(p.screen.output))
	return st, nil
}

func (ts *terminals) AwaitOutput(ctx context.Context, in hub.Incarnation, after int64) (int64, error) {
	p, ok := ts.find(in.Terminal)
	if !ok || p.in != in {
		return 0, hub.Errorf(hub.CodePreconditionFailed, "not proven")
	}
	if p.screen == nil {
		return ts.pipeAwait(ctx, in, after)
	}
	for {
		p.screen.mu.Lock()
		total, wrote := int64(len(p.screen.output)), p.screen.wrote
		p.screen.mu.Unlock()
		if total > after {
			return total, nil
		}
		select {
		case <-wrote:
		case <-p.exited:
			return total, nil
		case <-ctx.Done():
			return total, ctx.Err()
		}
	}
}

func (ts *terminals) Output(ctx context.Context, id hub.TerminalID, from int64, limit int) (hub.OutputRange, error) {
	p, ok := ts.find(id)
	if !ok {
		return hub.OutputRange{}, hub.Errorf(hub.CodeTerminalNotFound, "it has no directory")
	}
	if p.screen == nil {
		return ts.pipeOutput(ctx, id, from, limit)
	}
	p.screen.mu.Lock()
	defer p.screen.mu.Unlock()
	out := hub.OutputRange{Total: int64(len(p.screen.output))}
	out.From = min(from, out.Total)
	out.Data = append([]byte{}, p.screen.output[out.From:min(out.From+int64(limit), out.Total)]...)
	return out, nil
}

func (ts *terminals) Screen(_ context.Context, id hub.TerminalID, _ hub.ScreenQuery) (hub.Screen, error) {
	p, ok := ts.find(id)
	if !ok || p.screen == nil {
		return hub.Screen{}, hub.Errorf(hub.CodeTerminalNotFound, "it has no directory")
	}
	p.screen.mu.Lock()
	defer p.screen.mu.Unlock()
	return hub.Screen{Size: p.screen.state.Size, Title: p.screen.state.Title, Lines: strings.Split(string(p.screen.output), "\n")}, nil
}

var errLaunch = errors.New("no such program")

func (launchers) Occupy(in work.Occupancy) (hub.LaunchSpec, error) {
	if in.Command == "missing" {
		return hub.LaunchSpec{}, errLaunch
	}
	return hub.LaunchSpec{Terminal: in.Terminal, Argv: []string{"/bin/sh"}, Dir: in.Dir, PTY: &in.Size, Env: []string{in.Env["WAVEHUB_DISPATCH_FILE"]}}, nil
}

func (launchers) Preamble(l work.Launch) string {
	return "work on " + string(l.Dispatch) + "\n" + l.Prompt
}

func (launchers) Pointer(private, _ string) (string, error) {
	return "read " + private + "/prompt.md", nil
}
