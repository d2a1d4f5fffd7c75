//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/openapi/api"
)

// facts is what the hub says when all is over.
type facts struct {
	dispatches  map[string]api.Dispatch
	tasks       map[string]api.Task
	questions   map[string]api.Question
	whereabouts map[string]place // of guidance and answers that no worker received
	processes   []string         // those that outlived their ends
	messages    int64            // all that the hub holds
}

// place is how far the hub says that a message came, and when it was accepted.
type place struct{ delivery, at string }

const pageSize = 200

// allSettled waits until no Dispatch is live; what stays live is found again by
// the judgement.
func (s *soak) allSettled(ctx context.Context, all []*coordinator) error {
	deadline := time.Now().Add(time.Minute)
	for _, c := range all {
		for {
			page, err := ask(ctx, c, "worker list", func(ctx context.Context, h *client.Client) (*api.DispatchPage, error) {
				return h.Dispatches(ctx, client.DispatchFilter{Run: c.run, Live: true}, client.Page{Limit: 1})
			})
			if err != nil {
				return err
			}
			if len(page.Dispatches) == 0 || time.Now().After(deadline) || !pause(ctx, 50*time.Millisecond, nil) {
				break
			}
		}
	}
	return nil
}

// ask reads from the hub.
func ask[T any](ctx context.Context, c *coordinator, what string, call func(context.Context, *client.Client) (*T, error)) (*T, error) {
	return insist(ctx, c.book, c.operator, newRequest(what), func(ctx context.Context, h *client.Client, _ client.Option) (*T, error) { return call(ctx, h) })
}

// survey asks the hub for all that it knows.
func (s *soak) survey(ctx context.Context, all []*coordinator) (facts, error) {
	f := facts{
		dispatches: map[string]api.Dispatch{}, tasks: map[string]api.Task{}, questions: map[string]api.Question{}, whereabouts: map[string]place{},
	}
	s.book.effects = s.witness.effects()
	for _, c := range all {
		if err := c.survey(ctx, f); err != nil {
			return f, err
		}
	}
	for _, p := range s.hub.awaitWorkers() {
		f.processes = append(f.processes, fmt.Sprint(p.PID))
	}
	status, err := ask(ctx, all[0], "status", func(ctx context.Context, h *client.Client) (*api.HubStatus, error) { return h.Status(ctx) })
	if err != nil {
		return f, err
	}
	f.messages = status.Counts.Messages
	return f, s.seek(ctx, all[0], f)
}

// survey adds what the hub knows of one Run.
func (c *coordinator) survey(ctx context.Context, f facts) error {
	return errors.Join(
		pages(ctx, c, "worker list", func(ctx context.Context, h *client.Client, p client.Page) (*api.DispatchPage, error) {
			return h.Dispatches(ctx, client.DispatchFilter{Run: c.run}, p)
		}, func(page *api.DispatchPage) *string {
			for _, d := range page.Dispatches {
				f.dispatches[d.DispatchId] = d
			}
			return page.NextCursor
		}),
		pages(ctx, c, "task list", func(ctx context.Context, h *client.Client, p client.Page) (*api.TaskPage, error) {
			return h.Tasks(ctx, c.run, "", p)
		}, func(page *api.TaskPage) *string {
			for _, t := range page.Tasks {
				f.tasks[t.TaskId] = t
			}
			return page.NextCursor
		}),
		pages(ctx, c, "question list", func(ctx context.Context, h *client.Client, p client.Page) (*api.QuestionPage, error) {
			return h.Questions(ctx, c.run, "", p)
		}, func(page *api.QuestionPage) *string {
			for _, q := range page.Questions {
				f.questions[q.MessageId] = q
			}
			return page.NextCursor
		}))
}

// pages reads a list to its end; keep takes a page and returns its next cursor.
func pages[T any](ctx context.Context, c *coordinator, what string, list func(context.Context, *client.Client, client.Page) (*T, error), keep func(*T) *string) error {
	for p := (client.Page{Limit: pageSize}); ; {
		page, err := ask(ctx, c, what, func(ctx context.Context, h *client.Client) (*T, error) { return list(ctx, h, p) })
		if err != nil {
			return err
		}
		next := keep(page)
		if next == nil {
			return nil
		}
		p.Cursor = *next
	}
}

// seek asks where the mail is that workers did not receive.
func (s *soak) seek(ctx context.Context, c *coordinator, f facts) error {
	for _, l := range s.book.lives {
		for _, n := range compare(l.given, l.mail.received()).missing {
			m, err := ask(ctx, c, "message", func(ctx context.Context, h *client.Client) (*api.MessageOnly, error) { return h.Message(ctx, n.id) })
			if err != nil {
				return err
			}
			f.whereabouts[n.id] = place{string(m.Delivery), m.Message.CreatedAt}
		}
	}
	return nil
}
