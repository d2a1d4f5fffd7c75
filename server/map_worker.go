package server

import (
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/work"
	"github.com/wavehub/wavehub/openapi/api"
)

func startInput(task hub.TaskID, b api.WorkerStart) work.StartInput {
	return work.StartInput{
		Task: task, On: b.On, RetryOf: hub.DispatchID(b.RetryOf), Quiet: b.Reports == api.History, NoWait: b.NoWait,
		Spec: hub.StartSpec{
			Worktree: b.Worktree, CurrentDir: b.CurrentDir, Repo: b.Repo, Name: b.Name, Base: b.Base, Parent: b.Parent,
			Agent: b.Agent, Mode: string(b.Mode), ResumeSession: b.ResumeSession, Terminal: hub.TerminalID(b.Terminal), Setup: string(b.Setup), DisplayName: b.DisplayName,
			Comment: b.Comment, TimeoutMS: b.TimeoutMs, MayCoordinate: b.MayCoordinate, LivenessSecs: b.LivenessSecs,
		},
	}
}

func startReceipt(r hub.Receipt) api.StartReceipt {
	return api.StartReceipt{
		RunId: string(r.Run), TaskId: string(r.Task), DispatchId: string(r.Dispatch), State: api.StartReceiptState(r.State),
		DispatchState: api.DispatchState(r.DispatchState), Stage: string(r.Stage), Server: serverOf(r.Server), Setup: setupOf(r.Setup),
		ReadinessSource: null(r.ReadinessSource), TimeoutMs: r.TimeoutMS, Effects: each(r.Effects, resourceOf),
		ResidualResources: each(r.Residuals, resourceOf), Defaults: each(r.Defaults, defaultOf), FailedStage: null(r.FailedStage),
		LastError: null(r.LastError), NextCommands: commands(r.NextCommands), Warnings: texts(r.Warnings), Mutation: mutationOf(r.Mutation),
		Worker: r.Worker, Preamble: r.Preamble, DryRun: r.DryRun,
	}
}

func setupOf(s hub.SetupReport) api.Setup {
	return api.Setup{
		Requested: s.Requested, Effective: s.Effective, Source: s.Source, HookFound: s.HookFound,
		StartupPolicy: s.StartupPolicy, State: api.SetupState(s.State), Hash: s.Hash, TerminalId: string(s.Terminal), ExitCode: s.ExitCode,
		LastError: s.LastError,
	}
}

func resourceOf(r hub.Resource) api.Resource {
	return api.Resource{
		Kind: api.ResourceKind(r.Kind), Action: r.Action, Role: r.Role, Id: r.ID, Server: r.Server, State: r.State,
		Liveness: api.Liveness(r.Liveness),
	}
}

func defaultOf(d hub.Default) api.Default {
	return api.Default{Field: d.Field, Value: d.Value, Source: d.Source}
}

func stopResult(r hub.StopResult) api.StopResult {
	action := r.Action
	if action == "" {
		action = hub.ActionUnknown
	}
	return api.StopResult{
		DispatchId: string(r.Dispatch), State: api.DispatchState(r.State), AlreadySettled: r.AlreadySettled,
		ProcessAction: api.StopResultProcessAction(action), ResidualResources: each(r.Residuals, resourceOf),
		NextCommands: commands(r.NextCommands), LastError: null(r.LastError), Warning: r.Warning, Mutation: mutationOf(r.Mutation),
	}
}

func dispatchOf(d hub.Dispatch) api.Dispatch {
	return api.Dispatch{
		DispatchId: string(d.ID), TaskId: string(d.Task), RunId: string(d.Run), State: api.DispatchState(d.State), Reason: null(d.Reason),
		RetryOf: null(d.RetryOf), Server: serverOf(d.Server), Outcome: null(d.Outcome), Evidence: null(d.Evidence), ExitCode: d.ExitCode,
		CreatedAt: at(d.CreatedAt), SettledAt: maybeAt(d.SettledAt), Findings: findingsOf(d.Findings), Usage: d.Usage,
	}
}

// dispatchInList leaves out what makes a page of Dispatches long, and adds what is
// known of a live one.
func (s *Server) dispatchInList(d hub.Dispatch) api.Dispatch {
	if d.Findings != nil && d.Findings.Verification != nil {
		short := *d.Findings
		verification := *short.Verification
		verification.OutputTail = ""
		short.Verification, d.Findings = &verification, &short
	}
	out := dispatchOf(d)
	if o, ok := s.cfg.Work.Known(d); ok {
		known := observationOf(o)
		out.Observation = &known
	}
	return out
}

func findingsOf(f *hub.Findings) *api.Findings {
	if f == nil {
		return nil
	}
	out := &api.Findings{
		VerifyResult: api.FindingsVerifyResult(f.VerifyResult), VerifiedBy: api.FindingsVerifiedBy(f.VerifiedBy),
		ScopeCheck: api.FindingsScopeCheck(f.ScopeCheck), ScopeSource: api.FindingsScopeSource(f.ScopeSource), ScopeReason: f.ScopeReason,
		ScopeViolations: f.Violations, ScopeViolationCount: f.ViolationCount, ScopeShared: f.ScopeShared,
	}
	if v := f.Verification; v != nil {
		out.Verify = &api.Verification{
			Command: v.Command, ExitCode: v.ExitCode, Reason: api.VerificationReason(v.Reason), OutputTail: v.OutputTail,
			DurationMs: v.DurationMS, Attempts: v.Attempts,
		}
	}
	if h := f.Handoff; h != nil {
		out.Handoff = &api.Handoff{Present: h.Present, Bytes: h.Bytes, Sha256: h.SHA256}
	}
	return out
}

func dispatchDetail(s work.Shown) api.DispatchDetail {
	return api.DispatchDetail{
		Dispatch: dispatchOf(s.Dispatch), Observation: observationOf(s.Observation), Receipt: startReceipt(s.Receipt),
		RelayParked: s.Parked,
	}
}

func observationOf(o hub.Observation) api.Observation {
	return api.Observation{
		Link: api.ObservationLink(o.Link), Process: api.Liveness(o.Process), Attachment: api.ObservationAttachment(o.Attachment),
		LastOutputAt: maybeAt(o.LastOutputAt), LastReportAt: maybeAt(o.LastReportAt), WaitingFor: null(o.WaitingFor), Usage: o.Usage, Lost: o.Lost,
		SessionId: o.Session, ExitCode: o.ExitCode, ObservedAt: maybeAt(o.ObservedAt),
		LinkAt: maybeAt(o.LinkAt), ProcessAt: maybeAt(o.ProcessAt), LastProcess: api.Liveness(o.LastProcess),
	}
}
