package server

import (
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/work"
	"github.com/wavehub/wavehub/openapi/api"
)

func repoOf(r hub.Repo) api.Repo {
	return api.Repo{
		RepoId: string(r.ID), Name: r.Name, Path: r.Path, Kind: api.RepoKind(r.Kind), Setup: r.Setup, CreatedAt: at(r.CreatedAt),
	}
}

func repoResult(r work.RepoAdded) api.RepoResult {
	return api.RepoResult{Repo: repoOf(r.Repo), Mutation: mutationOf(r.Mutation)}
}

func worktreeOf(w hub.Worktree) api.Worktree {
	return api.Worktree{
		WorktreeId: string(w.ID), RepoId: string(w.Repo), Name: w.Name, Path: w.Path, Branch: w.Branch, BaseCommit: w.Base,
		ParentWorktreeId: null(w.Parent), State: api.WorktreeState(w.State), DisplayName: w.DisplayName, Comment: w.Comment,
		Setup: setupOf(w.Setup.Report), CreatedAt: at(w.CreatedAt),
	}
}

func worktreeInput(b api.WorktreeCreate) work.WorktreeInput {
	return work.WorktreeInput{
		Repo: b.Repo, Name: b.Name, Base: b.Base, Parent: b.Parent, CurrentDir: b.CurrentDir, Setup: string(b.Setup),
		DisplayName: b.DisplayName, Comment: b.Comment, RepoHooks: string(b.RepoHooks) == hub.SetupRun, TimeoutMS: b.TimeoutMs,
	}
}

func worktreeReceipt(r hub.WorktreeReceipt) api.WorktreeReceipt {
	return api.WorktreeReceipt{
		Worktree: worktreeOf(r.Worktree), State: api.WorktreeReceiptState(r.State), Stage: string(r.Stage), TimeoutMs: r.TimeoutMS,
		Effects: each(r.Effects, resourceOf), ResidualResources: each(r.Residuals, resourceOf), Defaults: each(r.Defaults, defaultOf),
		FailedStage: null(r.FailedStage), LastError: null(r.LastError), Mutation: mutationOf(r.Mutation),
	}
}

// shownLosses bounds the losses that are shown of a worktree.
const shownLosses = 200

func worktreeDetail(s work.WorktreeShown) api.WorktreeDetail {
	losses := s.Found.Losses
	return api.WorktreeDetail{
		Worktree: worktreeOf(s.Worktree), Repo: repoOf(s.Repo), Children: each(s.Children, worktreeOf), Dispatches: texts(s.Users),
		Present: s.Found.Present, Head: null(s.Found.Head), Branch: null(s.Found.Branch),
		Losses: each(losses[:min(len(losses), shownLosses)], lossOf), LossCount: len(losses), Unknown: null(s.Unknown),
	}
}

// lossOf shows a name of a file, which may hold any bytes, as text.
func lossOf(l hub.Loss) api.WorktreeLoss {
	return api.WorktreeLoss{Kind: api.WorktreeLossKind(l.Kind), Name: hub.PlainText([]byte(l.Name))}
}

func worktreeRemoval(r hub.WorktreeRemoval) api.WorktreeRemoval {
	return api.WorktreeRemoval{
		WorktreeId: string(r.Worktree), Name: r.Name, Path: r.Path, Branch: r.Branch, BranchKept: r.BranchKept,
		Saved: each(r.Saved, func(x hub.SavedRef) api.WorktreeSaved {
			return api.WorktreeSaved{Ref: x.Ref, Commit: x.Commit, Of: api.WorktreeSavedOf(x.Of)}
		}),
		NotSaved: each(r.NotSaved, lossOf), Mutation: mutationOf(r.Mutation),
	}
}

func grantsOf(g hub.Grants) api.Grants {
	return api.Grants{
		Verbs: each(g.Verbs, func(v string) api.GrantsVerbs { return api.GrantsVerbs(v) }), Repos: texts(g.Repos), MaxWorkers: g.MaxWorkers,
	}
}

func peerOf(p hub.Peer) api.Peer {
	return api.Peer{
		PeerId: string(p.ID), Name: p.Name, HubId: p.Lineage, Fingerprint: p.Fingerprint, Addresses: texts(p.Addresses),
		Role: api.PeerRole(p.Role), Grants: grantsOf(p.Grants), State: api.PeerState(p.State), StoreId: p.StoreID,
		StoreEpoch: p.StoreEpoch, CreatedAt: at(p.CreatedAt), Contracts: p.Contracts, Features: p.Features, KnowsFingerprint: p.Knows,
		Condition: string(p.Condition), Reverse: p.Reverse,
	}
}

func peerResult(j Joined) api.PeerResult {
	return api.PeerResult{Peer: peerOf(j.Peer), Warnings: j.Warnings, Mutation: mutationOf(j.Mutation)}
}

func peerDetail(p hub.Peer, l Link, holds hub.PeerHolds) api.PeerDetail {
	out := api.PeerDetail{Peer: peerOf(p), Holds: holdsOf(holds)}
	out.Link.State, out.Link.Transport = api.PeerDetailLinkState(l.State), api.PeerDetailLinkTransport(l.Transport)
	out.Link.Parked = l.Parked
	out.Link.Stage, out.Link.LastError, out.Link.ConnectedAt = null(l.Stage), null(l.LastError), maybeAt(l.ConnectedAt)
	out.Relay = api.PeerRelay{
		QueuedItems: l.Relay.Items, QueuedBytes: l.Relay.Bytes, ParkedCount: l.Relay.ParkedCount,
		Parked: each(l.Relay.Parked, func(q hub.ParkedQueue) api.RelayParked {
			return api.RelayParked{DispatchId: string(q.Dispatch), Sending: q.Sending, Waiting: q.Waiting, Reason: q.Reason}
		}),
	}
	if r := l.Refused; r != nil {
		out.Refused = &api.PeerRefusal{At: at(r.At), Stage: api.PeerRefusalStage(r.Stage), Code: string(r.Code), Error: r.Error}
	}
	return out
}

func inviteResult(v Invited) api.InviteResult {
	out := api.InviteResult{Warnings: texts(v.Warnings), Mutation: mutationOf(v.Mutation)}
	i := &out.Invite
	i.InviteId, i.Code, i.Addresses, i.Fingerprint = string(v.Invite.ID), null(v.Code), texts(v.Addresses), v.Fingerprint
	i.ExpiresAt, i.Grants = at(v.Invite.ExpiresAt), grantsOf(v.Invite.Grants)
	switch {
	case v.Code != "":
	case v.Invite.Used:
		i.SecretState = api.InviteResultInviteSecretStateUsed
	default:
		i.SecretState = api.InviteResultInviteSecretStateExpired
	}
	return out
}
