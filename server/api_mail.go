package server

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/mail"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/openapi/api"
)

// SendMessage accepts a message, a report or a question.
func (s apiHandlers) SendMessage(w http.ResponseWriter, r *http.Request, params api.SendMessageParams) {
	mutate(s.Server, w, r, verb[api.MessageSend, dispatch.Sent]{
		key: params.IdempotencyKey,
		do: func(ctx context.Context, q receipt.Request, b api.MessageSend) (dispatch.Sent, error) {
			if err := s.drained(ctx, q.Principal); err != nil {
				return dispatch.Sent{}, err
			}
			return s.cfg.Dispatch.Send(ctx, q, sendInput(b))
		},
		show: answered(http.StatusCreated, sendResult),
	})
}

// SendMessages accepts several messages at once.
func (s apiHandlers) SendMessages(w http.ResponseWriter, r *http.Request, params api.SendMessagesParams) {
	mutate(s.Server, w, r, verb[api.MessageBatch, dispatch.SentBatch]{
		key: params.IdempotencyKey,
		do: func(ctx context.Context, q receipt.Request, b api.MessageBatch) (dispatch.SentBatch, error) {
			if err := s.drained(ctx, q.Principal); err != nil {
				return dispatch.SentBatch{}, err
			}
			return s.cfg.Dispatch.SendBatch(ctx, q, each(b.Messages, sendInput))
		},
		show: answered(http.StatusCreated, batchResult),
	})
}

// ListQuestions shows questions, newest first.
func (s apiHandlers) ListQuestions(w http.ResponseWriter, r *http.Request, params api.ListQuestionsParams) {
	l := list{"questions", params.Run, string(params.State)}
	f := store.QuestionFilter{Run: hub.RunID(params.Run), State: hub.QuestionState(params.State)}
	page(s.Server, w, r, l, params.Cursor, params.Limit, func(rx store.Rx, p store.Page) (paged, int64, error) {
		if err := ownRun(rx, callOf(r).principal, &f.Run); err != nil {
			return nil, 0, err
		}
		if err := exist(rx, f.Run, ""); err != nil {
			return nil, 0, err
		}
		asked, next, err := mail.Asked(rx, f, p)
		return func(c *string) any { return api.QuestionPage{Questions: each(asked, questionOf), NextCursor: c} }, next, err
	})
}

// ReplyMessage answers a question or sends guidance.
func (s apiHandlers) ReplyMessage(w http.ResponseWriter, r *http.Request, id api.MessageParam, params api.ReplyMessageParams) {
	mutate(s.Server, w, r, verb[api.Reply, dispatch.Sent]{
		key: params.IdempotencyKey, path: id,
		do: func(ctx context.Context, q receipt.Request, b api.Reply) (dispatch.Sent, error) {
			return s.cfg.Dispatch.Reply(ctx, q, dispatch.ReplyInput{Message: hub.MessageID(id), Subject: b.Subject, Body: b.Body})
		},
		show: answered(http.StatusCreated, sendResult),
	})
}

// CheckMailbox acknowledges, then returns or waits for the next batch.
func (s apiHandlers) CheckMailbox(w http.ResponseWriter, r *http.Request, box api.BoxParam, params api.CheckMailboxParams) {
	mutate(s.Server, w, r, verb[api.Check, mail.Batch]{
		key: params.IdempotencyKey, path: box,
		do: func(ctx context.Context, q receipt.Request, b api.Check) (mail.Batch, error) {
			return s.cfg.Mail.Check(ctx, q, mail.CheckInput{
				Box: hub.Box(box), Ack: hub.DeliveryID(b.Ack), WaitMS: b.WaitMs, Limit: b.Limit, Types: messageTypes(b.Types),
			})
		},
		show:  answered(http.StatusOK, checkResult),
		waits: func(b api.Check) bool { return b.WaitMs > 0 },
	})
}

// GetAnswer waits for the answer to a question.
func (s apiHandlers) GetAnswer(w http.ResponseWriter, r *http.Request, id api.MessageParam, params api.GetAnswerParams) {
	p := callOf(r).principal
	ms := int64(mail.MaxWaitMS)
	if params.WaitMs != nil {
		ms = *params.WaitMs
	}
	s.waitFor(w, r, ms, func(ctx context.Context, wait time.Duration) (any, error) {
		out, err := s.cfg.Mail.Await(ctx, p, hub.MessageID(id), wait)
		return answerOf(out), err
	})
}

// GetVerdict waits for the home's verdict on a report.
func (s apiHandlers) GetVerdict(w http.ResponseWriter, r *http.Request, id api.MessageParam, params api.GetVerdictParams) {
	p := callOf(r).principal
	s.waitFor(w, r, params.WaitMs, func(ctx context.Context, wait time.Duration) (any, error) {
		out, err := s.cfg.Mail.AwaitVerdict(ctx, p, hub.MessageID(id), wait)
		return api.VerdictResult{MessageId: id, Verdict: null(out.Verdict), Reason: out.Reason, TimedOut: out.TimedOut}, err
	})
}

// waitFor answers a read that may wait.
func (s *Server) waitFor(w http.ResponseWriter, r *http.Request, ms int64, read func(context.Context, time.Duration) (any, error)) {
	if ms == 0 {
		body, err := read(r.Context(), 0)
		s.reply(w, r, http.StatusOK, body, err)
		return
	}
	s.patiently(w, r, func(ctx context.Context) (int, any, error) {
		body, err := read(ctx, time.Duration(ms)*time.Millisecond)
		return http.StatusOK, body, err
	})
}

// ListMailbox shows a mailbox's history, all of it unless peek is asked for.
func (s apiHandlers) ListMailbox(w http.ResponseWriter, r *http.Request, box api.BoxParam, params api.ListMailboxParams) {
	l := list{"mailbox", box, string(params.Mode), joined(params.Types)}
	after, err := s.position(l, params.Cursor)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	h, err := s.cfg.Mail.History(r.Context(), callOf(r).principal, mail.HistoryInput{
		Box: hub.Box(box), Peek: params.Mode == api.Peek, Types: messageTypes(params.Types), After: after, Limit: pageSize(params.Limit),
	})
	s.reply(w, r, http.StatusOK, api.HistoryPage{
		RunId: string(h.Run), Messages: each(h.Messages, messageOf), NextCursor: s.cursor(l, h.Next),
	}, err)
}

func joined(types []api.MessageType) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = string(t)
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

func messageTypes(types []api.MessageType) []hub.MessageType {
	var out []hub.MessageType
	for _, t := range types {
		out = append(out, hub.MessageType(t))
	}
	return out
}

// GetMessage shows one message and how far it has come.
func (s apiHandlers) GetMessage(w http.ResponseWriter, r *http.Request, id api.MessageParam) {
	out, err := s.cfg.Dispatch.Message(r.Context(), callOf(r).principal, hub.MessageID(id))
	s.reply(w, r, http.StatusOK, api.MessageOnly{
		Message: messageOf(out.Message), Delivery: api.MessageOnlyDelivery(out.Delivery), Verdict: null(out.Verdict), Reason: out.Reason,
	}, err)
}

// sendInput is the use-case's argument; the server never takes a sender.
func sendInput(b api.MessageSend) dispatch.SendInput {
	return dispatch.SendInput{
		To: hub.Box(b.To), Type: hub.MessageType(b.Type), Subject: b.Subject, Body: b.Body, Payload: json.RawMessage(b.Payload),
		Thread: hub.MessageID(b.ThreadId), Options: b.Options, Milestone: b.Milestone,
		Report: hub.Report{
			Task: hub.TaskID(b.TaskId), Dispatch: hub.DispatchID(b.DispatchId), Outcome: hub.Outcome(b.Outcome), Topic: b.Topic,
			Result: json.RawMessage(b.Result), Files: b.FilesModified, ReportPath: b.ReportPath,
			Claim: string(b.VerifyResult), Usage: json.RawMessage(b.Usage),
		},
	}
}
