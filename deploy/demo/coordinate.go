package main

import (
	"context"
	"encoding/json"
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

// coordinate starts what is ready, reads the inbox, answers, and goes on until
// every task is settled and the inbox is empty. It kills the windows hub when
// the first report has come home, and starts it again.
func (d *demo) coordinate(ctx context.Context) error {
	if err := d.startReady(ctx); err != nil {
		return err
	}
	ack, killed := "", false
	for {
		wait := "60s"
		if d.open() == 0 {
			wait = "1s" // only to see that nothing more comes
		}
		b, err := d.check(ctx, ack, wait)
		if err != nil {
			return err
		}
		if b.Delivery == nil {
			if d.open() == 0 {
				return nil
			}
			return fmt.Errorf("no mail for %s while %d tasks run", wait, d.open())
		}
		if ack, err = *b.Delivery, d.handle(ctx, b.Messages); err != nil {
			return err
		}
		if !killed && d.open() < len(d.tasks) {
			killed = true
			if err := d.crash(ctx); err != nil {
				return err
			}
		}
		if err := d.startReady(ctx); err != nil {
			return err
		}
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

func (d *demo) crash(ctx context.Context) error {
	fmt.Println("  ✗ SIGKILL to the windows hub, and a restart")
	if err := d.windows.kill(); err != nil {
		return err
	}
	return d.windows.start(ctx)
}

// startReady starts every task whose dependencies have completed.
func (d *demo) startReady(ctx context.Context) error {
	var starts []func() error
	for _, t := range d.tasks {
		if t.dispatch == "" && t.ready() {
			starts = append(starts, func() error { return t.start(ctx, d) })
		}
	}
	return together(starts...)
}

func (t *task) ready() bool {
	for _, dep := range t.after {
		if dep.outcome != "succeeded" {
			return false
		}
	}
	return true
}

// open counts the tasks that are not settled.
func (d *demo) open() (n int) {
	for _, t := range d.tasks {
		if t.outcome == "" {
			n++
		}
	}
	return n
}

func (d *demo) handle(ctx context.Context, ms []message) error {
	for _, m := range ms {
		var err error
		switch m.Type {
		case "question":
			fmt.Printf("  ? %s\n", m.Body)
			err = d.mac.do(ctx, nil, "reply", "--id", m.ID, "--body", "yes")
		case "worker_done":
			err = d.settle(m)
		default:
			d.delivered = append(d.delivered, delivery{m.From, m.Subject})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) settle(m message) error {
	var report struct {
		Task    string `json:"task_id"`
		Outcome string `json:"outcome"`
	}
	if err := json.Unmarshal(m.Payload, &report); err != nil {
		return err
	}
	for _, t := range d.tasks {
		if t.id != report.Task {
			continue
		}
		t.outcome, t.settled = report.Outcome, time.Now()
		d.delivered = append(d.delivered, delivery{m.From, t.name + " done"})
		first, _, _ := strings.Cut(m.Body, "\n")
		fmt.Printf("  ✓ %-12s on %-8s %s: %s\n", t.name, t.on, t.outcome, first)
		if t.outcome != "succeeded" {
			return fmt.Errorf("%s %s: %s", t.name, t.outcome, m.Body)
		}
		return nil
	}
	return fmt.Errorf("a report on the unknown task %s", report.Task)
}
