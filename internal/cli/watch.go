package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

// watchFlags say what is watched.
type watchFlags struct {
	wave   string
	all    bool
	cursor int64
}

func (f *watchFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.wave, "wave", "", "events of this wave")
	cmd.Flags().BoolVar(&f.all, "all", false, "events of everything on this hub")
	cursorFlag(cmd, &f.cursor)
}

func cursorFlag(cmd *cobra.Command, cursor *int64) {
	cmd.Flags().Int64Var(cursor, "cursor", 0, "begin behind the event with this seq, instead of with the oldest that is kept")
}

// filter is exactly one of --wave, --run and --all.
func (f *watchFlags) filter(cmd *cobra.Command, run string) (client.EventFilter, error) {
	given := 0
	for _, is := range []bool{f.wave != "", run != "", f.all} {
		if is {
			given++
		}
	}
	if given != 1 {
		return client.EventFilter{}, misused(cmd, "takes exactly one of --wave, --run and --all")
	}
	return client.EventFilter{Wave: f.wave, Run: run, All: f.all}, nil
}

// behind is the cursor that was given, nil for none.
func behind(cmd *cobra.Command, cursor int64) (*int64, error) {
	if !cmd.Flags().Changed("cursor") {
		return nil, nil
	}
	if cursor < 0 {
		return nil, misused(cmd, "--cursor: %d is no seq of an event", cursor)
	}
	return &cursor, nil
}

func (a *app) watchCommand() *cobra.Command {
	var f watchFlags
	cmd := mark(&cobra.Command{
		Use: "watch (--wave W | --run RUN | --all)", Short: "Show events as they happen, until interrupted", Args: exactly(),
		Long: "Shows the events that are kept, and then each one as it happens: one line each on a terminal,\n" +
			"one JSON document a line elsewhere and with --json. It survives the hub: what happens while the\n" +
			"hub is away, or this program, comes once with --cursor and the seq of the last event seen.\n" +
			"With --timeout it ends after that time.",
		Example: "wavehub watch --wave w1\nwavehub watch --all --cursor 1200",
	}, isWait, isLongWait)
	f.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.followEvents(cmd, &f, client.EventOptions{}, a.eventLine())
	}
	return cmd
}

func (a *app) eventsCommand() *cobra.Command {
	var f watchFlags
	var follow bool
	cmd := mark(&cobra.Command{
		Use: "events (--wave W | --run RUN | --all)", Short: "Print the events that are kept, one JSON document a line", Args: exactly(),
		Long:    "Prints what the log of events has and ends; with --follow it goes on as watch does.",
		Example: "wavehub events --all\nwavehub events --wave w1 --follow",
	}, isWait, isLongWait)
	f.add(cmd)
	cmd.Flags().BoolVar(&follow, "follow", false, "go on with what happens, until interrupted")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return a.followEvents(cmd, &f, client.EventOptions{Once: !follow}, a.printJSON)
	}
	return cmd
}

// followEvents hands the events to show until it is interrupted or the time is over.
func (a *app) followEvents(cmd *cobra.Command, f *watchFlags, o client.EventOptions, show func(client.Event) error) error {
	if _, err := f.filter(cmd, a.flags.run); err != nil {
		return err
	}
	after, err := behind(cmd, f.cursor)
	if err != nil {
		return err
	}
	s, err := a.connect(0)
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := a.expand(cmd.Context(), s, cmd, nil); err != nil {
		return err
	}
	filter, err := f.filter(cmd, a.flags.run) // the Run in full
	if err != nil {
		return err
	}
	ctx, cancel := a.limited(cmd.Context())
	defer cancel()
	o.After, o.Cut = after, a.sayCut
	err = s.Events(ctx, filter, o, show)
	if errors.Is(context.Cause(ctx), errTimeOver) {
		return nil
	}
	return err
}

var errTimeOver = errors.New("the time is over")

// limited ends with --timeout, if that was given.
func (a *app) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if !a.flags.timed {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, a.flags.timeout, errTimeOver)
}

// sayCut tells a person why nothing comes.
func (a *app) sayCut(cause error) { a.say("the connection was cut, and is made again: %v", cause) }

// eventLine is how events are printed: as lines for people on a terminal, as JSON
// elsewhere.
func (a *app) eventLine() func(client.Event) error {
	if a.flags.json || !isTerminal(a.stdout) {
		return a.printJSON
	}
	return a.printLine
}

// printJSON writes a line in one piece: what is cut off is no line.
func (a *app) printJSON(e client.Event) error {
	return a.printEvent(append(append([]byte(nil), e.Raw...), '\n'))
}

func (a *app) printLine(e client.Event) error {
	return a.printEvent([]byte(plainEvent(e) + "\n"))
}

func (a *app) printEvent(line []byte) error {
	if _, err := a.stdout.Write(line); err != nil {
		return fmt.Errorf("writing an event: %w", err)
	}
	return nil
}
