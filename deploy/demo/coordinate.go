package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// message is what the demo reads of a delivered message.
type message struct {
	ID      string          `json:"message_id"`
	From    string          `json:"from"`
	Type    string          `json:"type"`
	Subject string          `json:"subject"`
	Body    string          `json:"body"`
	Payload json.RawMessage `json:"payload"`
}

type batch struct {
	Delivery *string   `json:"delivery_id"`
	Messages []message `json:"messages"`
}

// delivery is one message as the coordinator got it.
type delivery struct{ from, what string }

// coordinate follows the wave and reads the inbox at once: it answers the question
// and goes on until the hub has said how the wave ended.
func (d *demo) coordinate(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watched := make(chan error, 1)
	go func() {
		err := d.watch(ctx)
		if err != nil {
			cancel()
		}
		watched <- err
	}()
	err := d.readInbox(ctx)
	if err == nil {
		return <-watched
	}
	cancel()
	return errors.Join(<-watched, err)
}

// readInbox takes every batch with the ack of the one before, until the notice that
// the wave is final.
func (d *demo) readInbox(ctx context.Context) error {
	for ack, final := "", false; ; {
		wait := "60s"
		if final {
			wait = "1s" // only to see that nothing more comes
		}
		b, err := d.check(ctx, ack, wait)
		if err != nil {
			return err
		}
		if b.Delivery == nil {
			if final {
				return nil
			}
			return fmt.Errorf("no mail for %s while the wave runs", wait)
		}
		for _, m := range b.Messages {
			ended, err := d.handle(ctx, m)
			if err != nil {
				return err
			}
			final = final || ended
		}
		ack = *b.Delivery
	}
}

func (d *demo) check(ctx context.Context, ack, wait string) (batch, error) {
	args := []string{"check", "--run", d.run, "--wait", "--timeout", wait}
	if ack != "" {
		args = append(args, "--ack", ack)
	}
	var b batch
	err := d.mac.do(ctx, &b, args...)
	return b, err
}

// handle takes one message; final says that the wave has ended.
func (d *demo) handle(ctx context.Context, m message) (final bool, err error) {
	switch m.Type {
	case "question":
		fmt.Printf("  ? %s\n", m.Body)
		return false, d.mac.do(ctx, nil, "reply", "--id", m.ID, "--body", "yes")
	case "worker_done":
		d.delivered = append(d.delivered, delivery{m.From, d.nameOf(m.Payload) + " done"})
	case "notice":
		var about struct{ Kind, Status string }
		if err := json.Unmarshal(m.Payload, &about); err != nil {
			return false, err
		}
		if about.Kind == "wave_state" && about.Status != "completed" {
			return true, fmt.Errorf("the wave %s: %s", about.Status, m.Payload)
		}
		return about.Kind == "wave_state", nil
	default:
		d.delivered = append(d.delivered, delivery{m.From, m.Subject})
	}
	return false, nil
}

// nameOf is the name of the task that a report is about.
func (d *demo) nameOf(payload json.RawMessage) string {
	var report struct {
		Task string `json:"task_id"`
	}
	if err := json.Unmarshal(payload, &report); err != nil {
		return err.Error()
	}
	for _, t := range d.tasks {
		if t.id == report.Task {
			return t.name
		}
	}
	return report.Task
}

// event is what the demo reads of the log of events.
type event struct {
	At   string `json:"at"`
	Type string `json:"type"`
	Task string `json:"task_id"`
	Data struct {
		Dispatch string `json:"dispatch_id"`
		Worker   string `json:"worker"`
		Result   string `json:"result"`
		Error    string `json:"error"`
		Reason   string `json:"reason"`
	} `json:"data"`
}

// time is when it was logged, by the hub's clock.
func (e event) time() time.Time {
	at, err := time.Parse(time.RFC3339Nano, e.At)
	if err != nil {
		return time.Time{}
	}
	return at
}

// watch prints the wave's events as they come. With the first task that has
// completed it kills the windows hub, and starts it again.
func (d *demo) watch(ctx context.Context) error {
	crashed := make(chan error, 1)
	killed := false
	err := d.mac.stream(ctx, func(line []byte) error {
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		if err := d.tell(e); err != nil {
			return err
		}
		if e.Type == "task_completed" && !killed {
			killed = true
			go func() { crashed <- d.crash(ctx) }()
		}
		return nil
	}, "wave", "watch", d.wave())
	if killed {
		err = errors.Join(err, <-crashed)
	}
	return err
}

func (d *demo) crash(ctx context.Context) error {
	fmt.Println("  ✗ SIGKILL to the windows hub, and a restart")
	if err := d.windows.kill(); err != nil {
		return err
	}
	return d.windows.start(ctx)
}

// tell notes what an event says of a task, and prints it.
func (d *demo) tell(e event) error {
	t := d.named(e.Task)
	switch {
	case t == nil:
		fmt.Printf("  • %s\n", strings.ReplaceAll(e.Type, "_", " "))
	case e.Type == "task_dispatched":
		t.dispatch, t.started = e.Data.Dispatch, e.time()
		fmt.Printf("  → %-12s on %s\n", t.name, t.on)
	case e.Type == "task_completed":
		t.outcome, t.settled = "completed", e.time()
		first, _, _ := strings.Cut(e.Data.Result, "\n")
		fmt.Printf("  ✓ %-12s on %-8s %s\n", t.name, t.on, first)
	case e.Type == "task_failed", e.Type == "task_cancelled":
		return fmt.Errorf("%s: %s %s%s", t.name, e.Type, e.Data.Error, e.Data.Reason)
	}
	return nil
}

func (d *demo) named(name string) *task {
	for _, t := range d.tasks {
		if t.name == name {
			return t
		}
	}
	return nil
}
