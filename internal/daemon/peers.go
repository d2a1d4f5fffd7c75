package daemon

import (
	"context"
	"slices"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/peer"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/work"
	"github.com/wavehub/wavehub/server"
)

// pairing fits the peer registry to server.PeerService.
type pairing struct {
	*federation
	work     *work.Service
	dispatch *dispatch.Service
	git      git
	store    store.Reader
}

// granted completes the grants of a side that serves: all verbs, canonical
// paths, and repositories among them registered, so that a home can name them
// at once.
func (p pairing) granted(ctx context.Context, r receipt.Request, g hub.Grants, serves bool) (hub.Grants, error) {
	if len(g.Verbs) == 0 && serves {
		g.Verbs = []string{hub.GrantStart, hub.GrantRead, hub.GrantProxy}
	}
	roots := slices.Clone(g.Repos)
	for i, root := range roots {
		canonical, err := p.grantRoot(ctx, r, root)
		if err != nil {
			return g, err
		}
		roots[i] = canonical
	}
	g.Repos = roots
	return g, nil
}

// grantRoot registers the root if it is a repository. Registering is idempotent
// by path, so it needs no receipt of its own to be repeated.
func (p pairing) grantRoot(ctx context.Context, r receipt.Request, root string) (string, error) {
	canonical, err := p.git.Canonical(root)
	if err != nil {
		return "", err
	}
	f, err := p.git.Inspect(ctx, canonical)
	if err != nil || f.Kind != hub.RepoGit || f.Path != canonical {
		return canonical, err
	}
	in := work.RepoInput{Path: canonical}
	add, err := receipt.New(r.Principal, "", "repo.add", in)
	if err != nil {
		return "", err
	}
	_, err = p.work.AddRepo(ctx, add, in)
	return canonical, err
}

func (p pairing) Invite(ctx context.Context, r receipt.Request, in server.InviteInput) (server.Invited, error) {
	grants, err := p.granted(ctx, r, in.Grants, in.Mutual || in.As != hub.RoleHome)
	if err != nil {
		return server.Invited{}, err
	}
	out, err := p.peers.Invite(ctx, r, peer.InviteInput{As: in.As, Mutual: in.Mutual, Grants: grants, TTL: in.TTL})
	if err != nil {
		return server.Invited{}, err
	}
	v := out.Invite
	shown := server.Invited{
		Invite:    hub.Invite{ID: v.ID, ExpiresAt: v.ExpiresAt, Grants: v.Grants, Used: v.SecretState == "used"},
		Addresses: v.Addresses, Fingerprint: v.Fingerprint, Warnings: out.Warnings, Mutation: out.Mutation,
	}
	if v.Code != nil {
		shown.Code = *v.Code
	}
	return shown, nil
}

func (p pairing) Join(ctx context.Context, r receipt.Request, in server.JoinInput) (server.Joined, error) {
	grants, err := p.granted(ctx, r, in.Grants, in.Mutual || in.Serve)
	if err != nil {
		return server.Joined{}, err
	}
	out, err := p.peers.Join(ctx, r, peer.JoinInput{
		Name: in.Name, URL: in.URL, Code: in.Code, Serve: in.Serve, Mutual: in.Mutual, Grants: grants,
	})
	return joined(out), err
}

func (p pairing) Get(ctx context.Context, idOrName string) (hub.Peer, server.Link, error) {
	found, err := p.find(ctx, idOrName)
	if err != nil {
		return found, server.Link{}, err
	}
	p.kick(found.ID)
	link := p.linkOf(found)
	link.Relay, err = p.dispatch.RelayState(ctx, found.ID)
	return found, link, err
}
