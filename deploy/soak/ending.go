//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/openapi/api"
)

// Verdicts on reports.
const (
	accepted  = "accepted"
	duplicate = "duplicate"
	stale     = "stale"
)

// die ends the worker in one of all ways.
func (w *worker) die(ctx context.Context) error {
	if w.rng.IntN(3) == 0 {
		if _, err := w.question(ctx); err != nil { // the end and the answer will race
			return err
		}
	}
	err := w.ending()(ctx)
	return errors.Join(err, os.Remove(w.fifo()))
}

func (w *worker) ending() func(context.Context) error {
	switch lot := w.rng.IntN(100); {
	case lot < 30:
		return w.reported("succeeded")
	case lot < 40:
		return w.reported("failed")
	case lot < 48:
		return w.reported("cancelled")
	case lot < 60:
		return w.reportTwice
	case lot < 72:
		return w.exit
	case lot < 80:
		return w.killed
	case lot < 83:
		return w.killedWhole
	case lot < 93:
		return w.stopped
	default:
		return w.abandoned
	}
}

// reported ends by a report; some workers then think better of it.
func (w *worker) reported(outcome string) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := w.report(ctx, outcome, "the end", onTime, accepted); err != nil {
			return err
		}
		if w.rng.IntN(4) == 0 {
			if err := w.report(ctx, "failed", "no, something else", late, stale); err != nil {
				return err
			}
		}
		return endScript(ctx, w.fifo(), 0)
	}
}

func (w *worker) reportTwice(ctx context.Context) error {
	if err := w.report(ctx, "succeeded", "the end", onTime, accepted); err != nil {
		return err
	}
	for range 1 + w.rng.IntN(3) {
		if err := w.report(ctx, "succeeded", "the end", repeated, duplicate); err != nil {
			return err
		}
	}
	return endScript(ctx, w.fifo(), 0)
}

// exit ends without a report; some workers' report comes while that is noticed.
func (w *worker) exit(ctx context.Context) error {
	if err := endScript(ctx, w.fifo(), w.rng.IntN(3)); err != nil {
		return err
	}
	return w.racingReport(ctx)
}

func (w *worker) killed(ctx context.Context) error {
	if err := syscall.Kill(w.body.pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("killing its process: %w", err)
	}
	return w.racingReport(ctx)
}

// killedWhole ends like killed, and nobody is left to tell the exit code.
func (w *worker) killedWhole(ctx context.Context) error {
	terminal := filepath.Base(filepath.Dir(w.body.capability))
	r, err := w.hub.record(terminal)
	if err != nil {
		return err
	}
	if err := syscall.Kill(r.Supervisor.PID, syscall.SIGKILL); err != nil {
		return fmt.Errorf("killing its supervisor: %w", err)
	}
	return w.killed(ctx)
}

func (w *worker) racingReport(ctx context.Context) error {
	if w.rng.IntN(3) > 0 {
		return nil
	}
	return w.report(ctx, "succeeded", "at the last moment", onTime, accepted, stale)
}

// stopped is ended by its coordinator; some workers report meanwhile.
func (w *worker) stopped(ctx context.Context) error {
	r, told := newRequest("worker stop"), make(chan error, 1)
	var state api.DispatchState
	go func() { // ends with the call, which is waited for
		var err error
		state, err = w.stop(ctx, r)
		told <- err
	}()
	var err error
	if w.rng.IntN(2) == 0 {
		err = w.report(ctx, "succeeded", "while it was stopped", onTime, accepted, stale)
	}
	if err := errors.Join(err, <-told); err != nil {
		return err
	}
	w.ordered(r, state)
	if err := w.report(ctx, "failed", "after the stop", late, stale); err != nil || state == client.DispatchStateStopped {
		return err
	}
	return endScript(ctx, w.fifo(), 0)
}

// stop asks for the end until it is known.
func (w *worker) stop(ctx context.Context, r *request) (api.DispatchState, error) {
	in := api.WorkerStop{TimeoutMs: 20_000, GraceMs: 200}
	out, err := insist(ctx, w.book, w.operator, r, func(ctx context.Context, c *client.Client, key client.Option) (*api.StopResult, error) {
		out, err := c.StopWorker(ctx, w.life.dispatch, in, key)
		if err == nil && (out.State == client.DispatchStateStopUnknown || out.State == client.DispatchStateStopping) {
			err = client.Errorf(client.CodeOutcomeUnknown, "%s", orNone(out.LastError))
		}
		return out, err
	})
	if err != nil {
		return "", err
	}
	return out.State, nil
}

// ordered notes how a stop or abandon was answered; the place is vacant.
func (w *worker) ordered(r *request, state api.DispatchState) {
	w.life.order = toldAtOnce
	if r.cut {
		w.life.order = toldLater
	}
	w.vacate(w.life.dispatch, state != client.DispatchStateSucceeded)
}

// abandoned is given up by its coordinator, while its process goes on and
// reports too late.
func (w *worker) abandoned(ctx context.Context) error {
	r := newRequest("worker abandon")
	out, err := insist(ctx, w.book, w.operator, r, func(ctx context.Context, c *client.Client, key client.Option) (*api.StopResult, error) {
		return c.AbandonWorker(ctx, w.life.dispatch, key)
	})
	if err != nil {
		return err
	}
	w.ordered(r, out.State)
	for range 1 + w.rng.IntN(3) {
		if err := w.report(ctx, "succeeded", "nobody waits for it", late, stale); err != nil {
			return err
		}
	}
	return endScript(ctx, w.fifo(), 0)
}

// report sends a worker_done. want are the verdicts that are right.
func (w *worker) report(ctx context.Context, outcome, body string, kind reportKind, want ...string) error {
	sent, err := w.send(ctx, api.MessageSend{
		Type: client.MessageSendTypeWorkerDone, Subject: outcome, Body: body,
		TaskId: w.task, DispatchId: w.life.dispatch, Outcome: outcome,
	})
	if err != nil {
		return err
	}
	w.life.reports = append(w.life.reports, report{outcome: outcome, verdict: orNone(sent.Verdict), want: want, kind: kind})
	if orNone(sent.Verdict) == accepted {
		w.accepted(note{from: "dispatch:" + w.life.dispatch, kind: kindDone, body: body}, sent.Message.MessageId)
	}
	return nil
}
