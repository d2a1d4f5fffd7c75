package client

import (
	"context"
	"net/http"
	"time"

	"github.com/wavehub/wavehub/openapi/api"
)

// MaxWait is the longest wait of one request. Longer waits for an answer or a
// verdict are made of several; a check has at most this one.
const MaxWait = 10 * time.Minute

// Send sends a message, a report or a question.
func (c *Client) Send(ctx context.Context, in api.MessageSend, opts ...Option) (*api.SendResult, error) {
	return mutate[api.SendResult](ctx, c, 0, opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.SendMessage(ctx, &api.SendMessageParams{IdempotencyKey: key}, in)
	})
}

// SendBatch sends up to 100 messages, all of them or none, in their order.
func (c *Client) SendBatch(ctx context.Context, in []api.MessageSend, opts ...Option) (*api.BatchResult, error) {
	return mutate[api.BatchResult](ctx, c, 0, opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.SendMessages(ctx, &api.SendMessagesParams{IdempotencyKey: key}, api.MessageBatch{Messages: in})
	})
}

// Questions lists questions, newest first; run and state select, "" is any.
func (c *Client) Questions(ctx context.Context, run, state string, page Page, opts ...Option) (*api.QuestionPage, error) {
	return read[api.QuestionPage](ctx, c, 0, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.ListQuestions(ctx, &api.ListQuestionsParams{
			Run: run, State: api.QuestionState(state), Cursor: page.Cursor, Limit: page.Limit,
		})
	})
}

// Message returns one message, how far it got, and the verdict on it.
func (c *Client) Message(ctx context.Context, message string, opts ...Option) (*api.MessageOnly, error) {
	return read[api.MessageOnly](ctx, c, 0, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.GetMessage(ctx, message)
	})
}

// Reply answers a question, or sends guidance to the sender of another message.
func (c *Client) Reply(ctx context.Context, message string, in api.Reply, opts ...Option) (*api.SendResult, error) {
	return mutate[api.SendResult](ctx, c, 0, opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.ReplyMessage(ctx, message, &api.ReplyMessageParams{IdempotencyKey: key}, in)
	})
}

// Answer waits up to wait for the answer to a question of the caller's; a
// time-out is a result with TimedOut, not an error.
func (c *Client) Answer(ctx context.Context, message string, wait time.Duration, opts ...Option) (*api.Answer, error) {
	return inParts(wait, func(part time.Duration) (*api.Answer, bool, error) {
		out, err := read[api.Answer](ctx, c, part, opts, func(ctx context.Context) (*http.Response, error) {
			return c.api.GetAnswer(ctx, message, &api.GetAnswerParams{WaitMs: new(milliseconds(part))})
		})
		return out, err == nil && out.TimedOut, err
	})
}

// Verdict waits up to wait for the verdict on a report of the caller's.
func (c *Client) Verdict(ctx context.Context, message string, wait time.Duration, opts ...Option) (*api.VerdictResult, error) {
	return inParts(wait, func(part time.Duration) (*api.VerdictResult, bool, error) {
		out, err := read[api.VerdictResult](ctx, c, part, opts, func(ctx context.Context) (*http.Response, error) {
			return c.api.GetVerdict(ctx, message, &api.GetVerdictParams{WaitMs: milliseconds(part)})
		})
		return out, err == nil && out.TimedOut, err
	})
}

// inParts waits in requests of at most MaxWait each until one does not time
// out or the whole wait is over.
func inParts[T any](wait time.Duration, one func(part time.Duration) (*T, bool, error)) (*T, error) {
	for {
		part := min(max(wait, 0), MaxWait)
		out, timedOut, err := one(part)
		wait -= part
		if err != nil || !timedOut || wait <= 0 {
			return out, err
		}
	}
}

// Question is what Ask sends, and how long it waits for the answer.
type Question struct {
	Subject, Body string
	Options       []string
	// Dispatch is needed of an attached worker that has several.
	Dispatch string
	Wait     time.Duration
	// Asked, if set, is called once the question is stored, before the wait:
	// what it says about resuming is then true, whatever happens next.
	Asked func(api.SendResult)
}

// Ask sends a question and waits for its answer. The same pending question is
// joined, not asked twice. Once asked, Answer with the message id resumes.
func (c *Client) Ask(ctx context.Context, q Question, opts ...Option) (*api.Answer, error) {
	sent, err := c.Send(ctx, api.MessageSend{
		Type: api.MessageSendTypeQuestion, Subject: q.Subject, Body: q.Body, Options: q.Options, DispatchId: q.Dispatch,
	}, opts...)
	if err != nil {
		return nil, err
	}
	if q.Asked != nil {
		q.Asked(*sent)
	}
	return c.Answer(ctx, sent.Message.MessageId, q.Wait, opts...)
}

// CheckOptions says what a check acknowledges and how long it waits.
type CheckOptions struct {
	Ack   string        // Delivery id to acknowledge first
	Wait  time.Duration // at most MaxWait; 0 returns at once
	Limit int           // messages per batch; 0: the hub's 50
	Types []string      // when to wake; never what is returned
}

// Check acknowledges, then returns the outstanding batch of the mailbox
// (run:<id>, dispatch:<id> or worker:<id>) or waits for one. Receiving never consumes.
func (c *Client) Check(ctx context.Context, box string, in CheckOptions, opts ...Option) (*api.CheckResult, error) {
	if in.Wait < 0 || in.Wait > MaxWait {
		return nil, Errorf(CodeInvalidArgument, "a check waits at most %s", MaxWait)
	}
	body := api.Check{Ack: in.Ack, WaitMs: milliseconds(in.Wait), Limit: in.Limit, Types: messageTypes(in.Types)}
	return mutate[api.CheckResult](ctx, c, in.Wait, opts, func(ctx context.Context, key string) (*http.Response, error) {
		return c.api.CheckMailbox(ctx, box, &api.CheckMailboxParams{IdempotencyKey: key}, body)
	})
}

// History reads a mailbox without consuming. Mode is peek (unacknowledged
// mail) or all.
func (c *Client) History(ctx context.Context, box, mode string, types []string, page Page, opts ...Option) (*api.HistoryPage, error) {
	return read[api.HistoryPage](ctx, c, 0, opts, func(ctx context.Context) (*http.Response, error) {
		return c.api.ListMailbox(ctx, box, &api.ListMailboxParams{
			Mode: api.ListMailboxParamsMode(mode), Types: messageTypes(types), Cursor: page.Cursor, Limit: page.Limit,
		})
	})
}

func messageTypes(names []string) []api.MessageType {
	out := make([]api.MessageType, len(names))
	for i, name := range names {
		out[i] = api.MessageType(name)
	}
	return out
}

// milliseconds rounds up: a wait that was asked for is never none.
func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
