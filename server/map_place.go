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
		ParentWorktreeId: null(w.Parent), CreatedAt: at(w.CreatedAt),
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
		StoreEpoch: p.StoreEpoch, CreatedAt: at(p.CreatedAt),
	}
}

func peerResult(j Joined) api.PeerResult {
	return api.PeerResult{Peer: peerOf(j.Peer), Mutation: mutationOf(j.Mutation)}
}

func peerDetail(p hub.Peer, l Link) api.PeerDetail {
	out := api.PeerDetail{Peer: peerOf(p)}
	out.Link.State, out.Link.Transport = api.PeerDetailLinkState(l.State), api.PeerDetailLinkTransport(l.Transport)
	out.Link.Stage, out.Link.LastError, out.Link.ConnectedAt = null(l.Stage), null(l.LastError), maybeAt(l.ConnectedAt)
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
		i.SecretState = api.Used
	default:
		i.SecretState = api.Expired
	}
	return out
}
