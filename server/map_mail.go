package server

import (
	"encoding/json"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/mail"
	"github.com/wavehub/wavehub/openapi/api"
)

func messageOf(m hub.Message) api.Message {
	return api.Message{
		MessageId: string(m.ID), Seq: m.Seq, RunId: string(m.Run), From: m.From, To: string(m.To), Type: api.MessageType(m.Type),
		Subject: m.Subject, Body: m.Body, Payload: rawOrNull(m.Payload), ThreadId: null(m.Thread), ReplyTo: null(m.ReplyTo),
		Stale: m.Stale, CreatedAt: at(m.CreatedAt),
	}
}

func rawOrNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

func sendResult(s dispatch.Sent) api.SendResult {
	out := api.SendResult{
		State: api.SendResultState(s.State), Verdict: null(s.Verdict), Reason: s.Reason, ThreadId: string(s.Thread),
		PendingQuestion: null(s.Pending), Mutation: mutationOf(s.Mutation),
	}
	out.Message.MessageId, out.Message.Seq = string(s.Message), s.Seq
	return out
}

func sentMessage(s dispatch.Sent) api.SentMessage {
	out := api.SentMessage{
		State: api.SentMessageState(s.State), Verdict: null(s.Verdict), Reason: s.Reason, ThreadId: string(s.Thread),
		PendingQuestion: null(s.Pending),
	}
	out.Message.MessageId, out.Message.Seq = string(s.Message), s.Seq
	return out
}

func batchResult(b dispatch.SentBatch) api.BatchResult {
	return api.BatchResult{Results: each(b.Results, sentMessage), Mutation: mutationOf(b.Mutation)}
}

func questionOf(a mail.AskedQuestion) api.Question {
	q := a.Question
	out := api.Question{
		MessageId: string(q.Message), RunId: string(q.Run), DispatchId: string(q.Dispatch), State: api.QuestionState(q.State),
		Question: a.Text, Options: texts(a.Options), CreatedAt: at(a.At),
	}
	if q.State == hub.QuestionAnswered {
		out.Answer, out.AnswerMessageId = &q.Answer, null(q.AnswerID)
	}
	return out
}

func checkResult(b mail.Batch) api.CheckResult {
	return api.CheckResult{
		RunId: string(b.Run), DeliveryId: null(b.Delivery), Messages: each(b.Messages, messageOf), Count: len(b.Messages),
		Replayed: b.Replayed, WaitingBehind: b.WaitingBehind, Acknowledged: null(b.Acknowledged), TimedOut: b.TimedOut,
		Cancelled: b.Cancelled, ConnectionLost: b.ConnectionLost, Mutation: mutationOf(b.Mutation),
	}
}

func answerOf(a mail.AnswerResult) api.Answer {
	q := a.Question
	out := api.Answer{
		MessageId: string(q.Message), ThreadId: string(q.Message), TimedOut: a.TimedOut,
		ResumeCommand: []string{"wavehub", "ask", "--resume", string(q.Message)},
	}
	if q.State == hub.QuestionAnswered {
		out.Answer, out.AnswerMessageId, out.ResumeCommand = &q.Answer, null(q.AnswerID), []string{}
	}
	return out
}
