package server

import (
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/work"
	"github.com/wavehub/wavehub/openapi/api"
)

func agentOf(a work.AgentShown) api.Agent {
	return api.Agent{
		Name: a.Name, BuiltIn: a.BuiltIn, Modes: texts(a.Modes), DefaultMode: a.DefaultMode, Program: null(a.Program), Missing: null(a.Missing),
		Completion: a.Completion, Version: null(a.Version), ClosedUntil: maybeAt(a.Pool.Until), ClosedBecause: null(a.Pool.Class),
	}
}

// agentForPeer leaves out where programs lie.
func agentForPeer(a work.AgentShown) api.Agent {
	a.Program = ""
	if a.Missing != "" {
		a.Missing = "it cannot be started on this hub"
	}
	return agentOf(a)
}

func agentTested(t work.AgentTested) api.AgentTested {
	return api.AgentTested{Agent: agentOf(t.Agent), Mutation: mutationOf(t.Mutation)}
}

func outputPage(p hub.OutputPage) api.OutputPage {
	out := api.OutputPage{
		DispatchId: string(p.Dispatch), Source: api.OutputPageSource(p.Source), SourceIdentity: p.SourceIdentity, Provider: p.Provider,
		Server: serverOf(p.Server), OwnerEpoch: p.OwnerEpoch, Archived: p.Archived, Cursor: p.Cursor, FallbackReason: p.FallbackReason,
		Warnings: texts(p.Warnings),
	}
	if p.Terminal != nil {
		out.Terminal = &api.OutputTerminal{Text: p.Terminal.Text, Truncated: p.Terminal.Truncated}
	}
	if p.Transcript != nil {
		out.Transcript = &api.OutputTranscript{
			Messages: each(p.Transcript.Messages, transcriptMessage), NextCursor: p.Cursor, Limited: p.Transcript.Limited,
			ReturnedMessageCount: len(p.Transcript.Messages),
		}
	}
	out.Status.Worker, out.Status.Terminal = api.DispatchState(p.Status.Worker), api.Liveness(p.Status.Terminal)
	return out
}

func transcriptMessage(m hub.TranscriptMessage) api.TranscriptMessage {
	out := api.TranscriptMessage{Id: m.ID, Role: api.TranscriptMessageRole(m.Role), At: maybeAt(m.At), Blocks: each(m.Blocks, transcriptBlock)}
	if m.Usage != nil {
		u := usageOf(*m.Usage)
		out.Usage = &u
	}
	return out
}

func transcriptBlock(b hub.TranscriptBlock) api.TranscriptBlock {
	return api.TranscriptBlock{
		Kind: api.TranscriptBlockKind(b.Kind), Text: b.Text, Name: b.Name, CallId: b.Call, Input: b.Input, IsError: b.Error,
	}
}

func usageOf(u hub.Usage) api.Usage {
	return api.Usage{
		InputTokens: u.InputTokens, CachedInputTokens: u.CachedInputTokens, OutputTokens: u.OutputTokens, ReasoningTokens: u.ReasoningTokens,
		CostUsd: u.CostUSD, Source: api.UsageSource(u.Source),
	}
}
