//go:build unix

package e2e

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/openapi/api"
)

// outcome is what a call in the background returned.
type outcome[T any] struct {
	value T
	err   error
}

// background is a call under way; its goroutine ends with the call.
type background[T any] chan outcome[T]

func begin[T any](t testing.TB, call func() (T, error)) background[T] {
	t.Helper()
	b := make(background[T], 1)
	go func() {
		v, err := call()
		b <- outcome[T]{v, err}
	}()
	return b
}

func (b background[T]) get(t testing.TB, limit time.Duration) outcome[T] {
	t.Helper()
	select {
	case o := <-b:
		return o
	case <-time.After(limit):
		t.Fatalf("the call has not returned within %s", limit)
		panic("unreachable")
	}
}

func isCode(err error, code client.Code) bool {
	e, ok := errors.AsType[*client.Error](err)
	return ok && e.Code == code
}

// awaitWaiter returns when somebody waits on the Run's mailbox: a second
// waiter is then refused.
func awaitWaiter(t testing.TB, h *Hub, run Coordinator) {
	t.Helper()
	c := h.Client(run.Token)
	eventually(t, "a waiter is registered", 20*time.Second, func() bool {
		_, err := c.Check(t.Context(), run.Box(), client.CheckOptions{Wait: time.Millisecond})
		return isCode(err, client.CodeWaiterExists)
	})
}

// sendStatus puts one status message into the Run's mailbox.
func sendStatus(t testing.TB, h *Hub, run Coordinator, body string) api.SendResult {
	t.Helper()
	return sendSilently(t, h, run, "status", body)
}

func sendSilently(t testing.TB, h *Hub, run Coordinator, kind, body string) api.SendResult {
	t.Helper()
	out, err := h.Client("").Send(t.Context(), message(run, kind, body))
	must(t, err)
	return *out
}

func message(run Coordinator, kind, body string) api.MessageSend {
	return api.MessageSend{To: run.Box(), Type: api.MessageSendType(kind), Subject: "test", Body: body}
}

// drain checks and acknowledges until the mailbox stays empty for idle, and
// returns all messages in order.
func drain(ctx context.Context, t testing.TB, c *client.Client, box string, idle time.Duration) []api.Message {
	t.Helper()
	var all []api.Message
	in := client.CheckOptions{Wait: idle}
	for {
		b, err := c.Check(ctx, box, in)
		must(t, err)
		if b.DeliveryId == nil {
			return all
		}
		if b.Count > 50 || b.Count != len(b.Messages) {
			t.Fatalf("a batch of %d with %d messages", b.Count, len(b.Messages))
		}
		all, in.Ack = append(all, b.Messages...), *b.DeliveryId
	}
}
