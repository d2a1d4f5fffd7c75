package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

const (
	// maxAwaited bounds how many Dispatches one command waits for: each is a
	// connection.
	maxAwaited = 100
	// exitCancelled is the exit code of work that was called off.
	exitCancelled = 8
	// exitUnverified is the exit code of work that was not verified.
	exitUnverified = 9
)

// reasonUnverified is the reason of a Dispatch whose verification failed.
const reasonUnverified = "verification_failed"

// awaited is what worker wait prints: the Dispatches as they were named.
type awaited struct {
	Dispatches []json.RawMessage `json:"dispatches"`
	TimedOut   bool              `json:"timed_out"`
}

func (a *app) workerWait() *cobra.Command {
	var anyOne, exitStatus bool
	cmd := mark(&cobra.Command{
		Use:   "wait DISPATCH...",
		Short: "Wait until Dispatches have ended",
		Long: "Waits until all of the Dispatches have ended, or with --any one of them. Without --timeout\n" +
			"it waits as long as that takes. A time-out exits 0 with timed_out true.\n\n" +
			"With --exit-status the exit code is 0 when those that ended have succeeded, 1 when one has\n" +
			"failed, 9 when one was not verified, 8 when one was stopped or abandoned, in this order, and\n" +
			"7 on a time-out.",
		Example: "wavehub worker wait " + exampleDispatch + " --timeout 30m\nwavehub worker wait " + exampleDispatch + " --any --exit-status",
		Args:    dispatchArgs,
	}, isWait, isLongWait)
	cmd.Flags().BoolVar(&anyOne, "any", false, "until one of them has ended")
	cmd.Flags().BoolVar(&exitStatus, "exit-status", false, "tell by the exit code how they ended")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := a.connect(0)
		if err != nil {
			return err
		}
		defer s.Close()
		if args, err = a.expand(cmd.Context(), s, cmd, args); err != nil {
			return err
		}
		stop := a.progress("waiting for " + dispatches(len(args)))
		found, err := awaitAll(cmd.Context(), s, args, a.wait(math.MaxInt64), anyOne)
		stop()
		if err != nil {
			return err
		}
		return a.finishWait(found, anyOne, exitStatus)
	}
	return cmd
}

func dispatches(n int) string {
	if n == 1 {
		return "1 Dispatch"
	}
	return fmt.Sprintf("%d Dispatches", n)
}

// dispatchArgs demands at least one Dispatch and each only once.
func dispatchArgs(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 || slices.Contains(args, ""):
		return misused(cmd, "takes one DISPATCH or more")
	case len(args) > maxAwaited:
		return misused(cmd, "takes at most %d Dispatches, got %d", maxAwaited, len(args))
	case len(slices.Compact(slices.Sorted(slices.Values(args)))) < len(args):
		return misused(cmd, "names a Dispatch twice")
	}
	return nil
}

// ended is one Dispatch as the hub last showed it.
type ended struct {
	client.Dispatch
	raw json.RawMessage
}

// awaitAll waits for the Dispatches side by side. The first error ends all of the
// waits; with anyOne so does the first end, and the others are then read as they
// are. It returns when all of its goroutines have ended.
func awaitAll(parent context.Context, s *session, ids []string, wait time.Duration, anyOne bool) ([]ended, error) {
	ctx, enough := context.WithCancel(parent)
	defer enough()
	type answer struct {
		ended
		at  int
		err error
	}
	answers, found := make(chan answer, len(ids)), make([]ended, len(ids))
	for i, id := range ids {
		go func() {
			e, err := await(ctx, s, id, wait)
			answers <- answer{e, i, err}
		}()
	}
	var failed error
	over := false // nobody is waited for any more
	for range ids {
		got := <-answers
		found[got.at] = got.ended
		if got.err != nil && !over {
			failed, over = got.err, true
		}
		if over = over || anyOne && client.Final(got.State); over {
			enough()
		}
	}
	if failed != nil {
		return nil, failed
	}
	return found, readRest(parent, s, ids, found)
}

// readRest reads those whose wait was ended before there was an answer.
func readRest(ctx context.Context, s *session, ids []string, found []ended) (err error) {
	for i, id := range ids {
		if found[i].raw == nil && err == nil {
			found[i], err = await(ctx, s, id, 0)
		}
	}
	return err
}

// await waits for one Dispatch; 0 reads it as it is.
func await(ctx context.Context, s *session, id string, wait time.Duration) (ended, error) {
	var raw json.RawMessage
	detail, err := s.AwaitDispatch(ctx, id, wait, client.WithBody(&raw))
	if err != nil {
		return ended{}, err
	}
	var doc struct {
		Dispatch json.RawMessage `json:"dispatch"`
	}
	err = json.Unmarshal(raw, &doc)
	return ended{detail.Dispatch, doc.Dispatch}, err
}

func (a *app) finishWait(found []ended, anyOne, exitStatus bool) error {
	finals := slices.DeleteFunc(slices.Clone(found), func(e ended) bool { return !client.Final(e.State) })
	out := awaited{TimedOut: len(finals) < len(found) && (!anyOne || len(finals) == 0)}
	for _, e := range found {
		out.Dispatches = append(out.Dispatches, e.raw)
	}
	err := a.emitValue(out, func(p *printer) {
		rows := make([][]string, len(found))
		for i, e := range found {
			rows[i] = []string{e.DispatchId, string(e.State), serverName(e.Server), e.TaskId, or(e.Reason, "-")}
		}
		p.table([]string{"DISPATCH", "STATE", "HUB", "TASK", "REASON"}, rows)
		if out.TimedOut {
			p.line("not ended within the time")
		}
	})
	if err != nil || !exitStatus {
		return err
	}
	if code := waitStatus(finals, out.TimedOut); code != 0 {
		return exitCode(code)
	}
	return nil
}

// waitStatus is the exit code of the worst end.
func waitStatus(finals []ended, timedOut bool) int {
	has := func(is func(ended) bool) bool { return slices.ContainsFunc(finals, is) }
	failed := func(e ended) bool { return e.State == client.DispatchStateFailed }
	unverified := func(e ended) bool { return failed(e) && or(e.Reason, "") == reasonUnverified }
	switch {
	case timedOut:
		return exitTimedOut
	case has(func(e ended) bool { return failed(e) && !unverified(e) }):
		return 1
	case has(unverified):
		return exitUnverified
	case has(func(e ended) bool { return e.State != client.DispatchStateSucceeded && !failed(e) }):
		return exitCancelled
	}
	return 0
}
