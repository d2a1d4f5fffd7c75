//go:build unix

package e2e

import (
	"context"
	"errors"
	"fmt"
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

// beginCheck starts a waiting check and returns when it is the mailbox's
// waiter. Looking for that takes the waiter's place for a moment, so the check
// is repeated when it came just then.
func beginCheck(t testing.TB, run Coordinator, in client.CheckOptions, opts ...client.Option) background[*api.CheckResult] {
	t.Helper()
	c := run.hub.Client(run.Token)
	b := begin(t, func() (*api.CheckResult, error) {
		for {
			out, err := c.Check(t.Context(), run.Box(), in, opts...)
			if !isCode(err, client.CodeWaiterExists) {
				return out, err
			}
		}
	})
	awaitWaiter(t, run)
	return b
}

func awaitWaiter(t testing.TB, run Coordinator) {
	t.Helper()
	c := run.hub.Client(run.Token)
	eventually(t, "a waiter is registered", 20*time.Second, func() bool { return !waiterFree(t, c, run) })
}

// waiterFree says whether nobody waits on the mailbox.
func waiterFree(t testing.TB, c *client.Client, run Coordinator) bool {
	t.Helper()
	_, err := c.Check(t.Context(), run.Box(), client.CheckOptions{Wait: time.Millisecond})
	if err != nil && !isCode(err, client.CodeWaiterExists) {
		t.Fatal(err)
	}
	return err == nil
}

// send puts one message into the Run's mailbox.
func send(t testing.TB, run Coordinator, kind, body string) api.SendResult {
	t.Helper()
	out, err := run.hub.Client("").Send(t.Context(), message(run, kind, body))
	must(t, err)
	return *out
}

func message(run Coordinator, kind, body string) api.MessageSend {
	return api.MessageSend{To: run.Box(), Type: api.MessageSendType(kind), Subject: "test", Body: body}
}

// drain checks and acknowledges until the mailbox stays empty for idle, and
// returns all messages in order.
func drain(ctx context.Context, c *client.Client, box string, idle time.Duration) ([]api.Message, error) {
	var all []api.Message
	in := client.CheckOptions{Wait: idle}
	for {
		b, err := c.Check(ctx, box, in)
		if err != nil || b.DeliveryId == nil {
			return all, err
		}
		if b.Count > 50 || b.Count != len(b.Messages) {
			return all, fmt.Errorf("a batch of %d has %d messages", b.Count, len(b.Messages))
		}
		all, in.Ack = append(all, b.Messages...), *b.DeliveryId
	}
}
