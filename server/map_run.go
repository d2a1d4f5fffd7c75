package server

import (
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/openapi/api"
)

func runOf(r hub.Run) api.Run {
	return api.Run{
		RunId: string(r.ID), Objective: r.Objective, Generation: r.Generation, ParentRunId: null(r.Parent), CreatedAt: at(r.CreatedAt),
	}
}

func runBound(b run.Bound) api.RunBound {
	out := api.RunBound{Run: runOf(b.Run), Mutation: mutationOf(b.Mutation)}
	if b.Binding == nil {
		return out
	}
	out.Binding = &api.Binding{
		RunId: string(b.Binding.Run), Generation: b.Binding.Generation, ConsumerToken: null(b.Binding.Token),
	}
	switch {
	case b.Binding.Withheld:
		out.Binding.SecretState = api.BindingSecretStateWithheld
	case b.Binding.Token == "":
		out.Binding.SecretState = api.BindingSecretStateFenced
	}
	return out
}

func runDetail(d run.Detail) api.RunDetail {
	out := api.RunDetail{Run: runOf(d.Run), Audit: each(d.Audit, auditRow)}
	mb := d.Mailbox
	out.Mailbox.Box = string(mb.Box)
	out.Mailbox.Messages, out.Mailbox.Unacknowledged = mb.Seq, mb.Live-mb.Done
	out.Mailbox.DeliveryId = null(mb.Outstanding)
	return out
}

func auditRow(a hub.Audit) api.AuditRow {
	return api.AuditRow{At: at(a.At), Action: a.Action, Principal: a.Principal, Context: a.Context, Generation: a.Generation}
}

func newTask(b api.TaskCreate) hub.Task {
	return hub.Task{
		Title: b.Title, Spec: b.Spec, Dependencies: each(b.Dependencies, func(s string) hub.TaskID { return hub.TaskID(s) }),
		VerifyCmd: b.VerifyCmd, Verify: string(b.Verify), WriteScope: b.WriteScope, Scope: string(b.Scope),
		TimeoutSecs: b.TimeoutSecs, VerifyTimeoutSecs: b.VerifyTimeoutSecs, HandoffPath: b.HandoffPath, Hat: b.Hat, Origin: b.Origin,
	}
}

func taskOf(t hub.Task) api.Task {
	return api.Task{
		TaskId: string(t.ID), RunId: string(t.Run), Title: t.Title, Spec: t.Spec, State: api.TaskState(t.State),
		Dependencies: texts(t.Dependencies), VerifyCmd: t.VerifyCmd, Verify: t.Verify, WriteScope: t.WriteScope, Scope: t.Scope,
		TimeoutSecs: t.TimeoutSecs, VerifyTimeoutSecs: t.VerifyTimeoutSecs, HandoffPath: t.HandoffPath, Hat: t.Hat, Origin: t.Origin, LatestDispatchId: null(t.Latest),
		Result: null(t.Result), ResultData: t.ResultData, Version: t.Version, CreatedAt: at(t.CreatedAt), UpdatedAt: at(t.UpdatedAt),
	}
}

func taskResult(c run.Created) api.TaskResult {
	return api.TaskResult{Task: taskOf(c.Task), Mutation: mutationOf(c.Mutation)}
}
