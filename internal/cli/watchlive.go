package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/hub"
)

const (
	leastRefresh = 500 * time.Millisecond // between two reads of a wave that is shown
	mostRefresh  = 10 * time.Second       // what its tasks wait for changes without an event
	// refreshShare is how many times the duration of a read lies between two.
	refreshShare = 5
)

// watchLive shows the wave on the terminal until it has ended or a person leaves.
func (a *app) watchLive(parent context.Context, t *waveTail) error {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	snap, err := t.read(ctx, t.wave)
	if err != nil {
		return err
	}
	model, _ := liveModel{wave: t.wave, colour: !a.flags.noColor && os.Getenv("NO_COLOR") == ""}.Update(liveShown{snap, time.Now()})
	p := tea.NewProgram(model, a.screen()...)
	f := &liveFeed{t: t, send: p.Send, changed: make(chan struct{}, 1)}
	var running sync.WaitGroup
	running.Go(func() { f.follow(ctx) })
	running.Go(func() { f.refresh(ctx) })
	stopped := context.AfterFunc(ctx, func() { p.Send(liveLeft{interrupted}) })
	got, err := p.Run()
	stopped()
	cancel()
	running.Wait()
	if err != nil {
		return fmt.Errorf("showing the wave: %w", err)
	}
	last := got.(liveModel)
	if t.final != nil {
		next, _ := last.Update(liveShown{t.final, time.Now()})
		last = next.(liveModel)
	}
	a.leaveSummary(last)
	switch {
	case f.err != nil && parent.Err() == nil && last.left == stayed:
		return f.err
	case t.final == nil && last.left == interrupted:
		return exitCode(exitInterrupted)
	case t.final == nil && last.left == quit:
		a.sayLeft(t)
	}
	return nil
}

// screen is how the view uses the terminal. Interrupts are the caller's.
func (a *app) screen() []tea.ProgramOption {
	opts := []tea.ProgramOption{tea.WithOutput(a.stdout), tea.WithoutSignalHandler(), tea.WithInput(nil)}
	if isTerminal(a.stdin) {
		opts[2] = tea.WithInput(a.stdin)
	}
	return opts
}

// leaveSummary leaves the last state of the wave on the terminal.
func (a *app) leaveSummary(m liveModel) {
	m.colour = false // whoever prints after the view may not have colours
	width, _ := m.size()
	_, _ = fmt.Fprintln(a.stdout, strings.Join(m.summary(width), "\n")) // nobody could be told
}

// liveFeed reads what the view shows. Its methods are called by one goroutine each.
type liveFeed struct {
	t       *waveTail
	send    func(tea.Msg)
	changed chan struct{} // holds one
	err     error         // of follow, once that has returned

	mu   sync.Mutex
	said map[string]string // guarded by mu; what is to be shown with the next read
	warn string            // guarded by mu
}

// follow takes the wave's events in until it has ended.
func (f *liveFeed) follow(ctx context.Context) {
	cut := false
	f.t.take = func(e client.Event) error {
		if cut {
			cut = false
			f.send(liveCut{})
		}
		f.note(e)
		f.hint()
		return nil
	}
	f.t.cut = func(cause error) {
		cut = true
		f.send(liveCut{cause.Error()})
		f.hint()
	}
	f.t.caughtUp = func() {
		if cut {
			cut = false
			f.send(liveCut{})
		}
	}
	f.err = f.t.run(ctx)
	if f.err == nil || !errors.Is(f.err, context.Canceled) {
		f.send(liveOver{})
	}
}

func (f *liveFeed) hint() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// note keeps what an event says in words.
func (f *liveFeed) note(e client.Event) {
	var data struct{ Name, Detail, Code string }
	if json.Unmarshal(e.Data, &data) != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case e.Type == hub.EventMilestone && e.TaskId != nil:
		if f.said == nil {
			f.said = map[string]string{}
		}
		f.said[*e.TaskId] = data.Name
	case e.Type == hub.EventWarning:
		f.warn = strings.TrimSpace(data.Code + " " + data.Detail)
	}
}

// refresh reads the wave after events, and now and then without any.
func (f *liveFeed) refresh(ctx context.Context) {
	for {
		began := time.Now()
		f.show(ctx)
		gap := max(leastRefresh, refreshShare*time.Since(began))
		if !pause(ctx, gap) {
			return
		}
		select {
		case <-f.changed:
		case <-time.After(max(mostRefresh-gap, 0)):
		case <-ctx.Done():
			return
		}
	}
}

// pause waits; false when ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// show sends what is new. A read that fails is made up for by the next; that the hub
// is away is told by the events.
func (f *liveFeed) show(ctx context.Context) {
	f.mu.Lock()
	words := liveSaid{maps.Clone(f.said), f.warn}
	f.said = nil
	f.mu.Unlock()
	if len(words.said) > 0 || words.warn != "" {
		f.send(words)
	}
	if snap, err := f.t.read(ctx, f.t.wave); err == nil {
		f.send(liveShown{snap, time.Now()})
	}
}
