package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/hub"
)

func (a *app) waveWatch() *cobra.Command {
	var cursor int64
	var exitStatus bool
	cmd := mark(&cobra.Command{
		Use: "watch WAVE", Short: "Watch a wave until it has ended", Args: exactly("WAVE"),
		Long: "On a terminal it shows the wave as it runs; elsewhere, and with --json, it prints its events, one\n" +
			"JSON document a line. --cursor goes on behind the seq of the last event seen. Leaving it with q or\n" +
			"ctrl-c, or by --timeout, leaves the wave alone.\n\n" +
			"With --exit-status the exit code is 1 when the wave has failed or was cancelled, and 7 on a time-out.",
		Example: "wavehub wave watch w1\nwavehub wave watch w1 --cursor 120 --exit-status",
	}, isWait, isLongWait)
	cursorFlag(cmd, &cursor)
	cmd.Flags().BoolVar(&exitStatus, "exit-status", false, "tell by the exit code how the wave ended")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		after, err := behind(cmd, cursor)
		if err != nil {
			return err
		}
		s, err := a.connect(0)
		if err != nil {
			return err
		}
		defer s.Close()
		if args, err = a.expand(cmd.Context(), s, cmd, args); err != nil {
			return err
		}
		return a.watchWave(cmd.Context(), s, args[0], after, exitStatus)
	}
	return cmd
}

// watchWave watches a wave from behind an event, nil for its first, until it has
// ended: as a live view on a terminal, as JSON lines elsewhere.
func (a *app) watchWave(parent context.Context, s *session, wave string, after *int64, exitStatus bool) error {
	ctx, cancel := a.limited(parent)
	defer cancel()
	t := &waveTail{read: s.Wave, events: s.Events, wave: wave, after: after, take: a.printJSON, cut: a.sayCut}
	var err error
	if a.flags.json || !isTerminal(a.stdout) {
		err = t.run(ctx)
	} else {
		err = a.watchLive(ctx, t)
	}
	over := errors.Is(context.Cause(ctx), errTimeOver)
	if t.final == nil && (over || parent.Err() != nil || errors.Is(err, exitCode(exitInterrupted))) {
		a.sayLeft(t)
	}
	switch {
	case t.final == nil && over && exitStatus:
		return exitCode(exitTimedOut)
	case t.final == nil && over:
		return nil
	case err != nil:
		return err
	case exitStatus && t.final == nil:
		return exitCode(exitInterrupted)
	case exitStatus && hub.WaveStatus(t.final.Wave.Status) != hub.WaveCompleted:
		return exitCode(1)
	}
	return nil
}

// sayLeft tells that the wave goes on, and how to see the rest.
func (a *app) sayLeft(t *waveTail) {
	if t.after == nil {
		a.say("the wave goes on; watch it again with: wavehub wave watch %s", quoted(t.wave))
		return
	}
	a.say("the wave goes on; see the rest with: wavehub wave watch %s --cursor %d", quoted(t.wave), *t.after)
}

// waveTail follows the events of one wave to its end. One goroutine uses it.
type waveTail struct {
	read   func(ctx context.Context, wave string, opts ...client.Option) (*client.WaveSnapshot, error)
	events func(context.Context, client.EventFilter, client.EventOptions, func(client.Event) error) error
	wave   string
	take   func(client.Event) error
	cut    func(error)
	// caughtUp is called at each heartbeat; nil: it is not.
	caughtUp func()

	after  *int64               // the last event that was handed over, nil before the first
	looked bool                 // the wave was read since the events were caught up with
	final  *client.WaveSnapshot // the wave, once it has ended and all of its events were handed over
}

var errWaveOver = errors.New("the wave is over")

// run hands over every event up to the end of the wave. The wave is read when its
// events have been caught up with, and at each event of an end: after one the wave
// may have been run again.
func (t *waveTail) run(ctx context.Context) error {
	var last *client.WaveSnapshot
	look := func() (err error) {
		last, err = t.look(ctx)
		return err
	}
	err := t.events(ctx, client.EventFilter{Wave: t.wave}, client.EventOptions{
		After: t.after, Cut: t.cut,
		Beat: func(seq int64) error {
			t.after = &seq
			if t.caughtUp != nil {
				t.caughtUp()
			}
			if t.looked {
				return nil
			}
			return look()
		},
	}, func(e client.Event) error {
		if err := t.handOver(e); err != nil || !endsWave(e.Type) {
			return err
		}
		err := look()
		t.looked = false // the next heartbeat looks once more
		return err
	})
	if !errors.Is(err, errWaveOver) {
		return err
	}
	err = t.events(ctx, client.EventFilter{Wave: t.wave}, client.EventOptions{After: t.after, Once: true, Cut: t.cut}, t.handOver)
	if err == nil {
		t.final = last
	}
	return err
}

func (t *waveTail) handOver(e client.Event) error {
	err := t.take(e)
	if err == nil {
		t.after = &e.Seq
	}
	return err
}

// look reads the wave; errWaveOver says that it has ended. If the hub is away the
// next heartbeat looks again.
func (t *waveTail) look(ctx context.Context) (*client.WaveSnapshot, error) {
	snap, err := t.read(ctx, t.wave)
	t.looked = err == nil
	switch {
	case err != nil && ctx.Err() == nil && client.Transient(err):
		return nil, nil
	case err != nil:
		return nil, err
	case endedWave(snap.Wave):
		return snap, errWaveOver
	}
	return nil, nil
}

func endsWave(eventType string) bool {
	switch eventType {
	case hub.EventWaveCompleted, hub.EventWaveFailed, hub.EventWaveCancelled:
		return true
	}
	return false
}

func endedWave(w client.Wave) bool { return hub.WaveStatus(w.Status).Final() }
