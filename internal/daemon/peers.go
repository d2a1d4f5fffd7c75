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

// granted completes the grants of a side that serves: all verbs, and canonical
// paths. Nothing is changed yet.
func (p pairing) granted(g hub.Grants, serves bool) (hub.Grants, error) {
	if len(g.Verbs) == 0 && serves {
		g.Verbs = []string{hub.GrantStart, hub.GrantRead, hub.GrantProxy}
	}
	roots := slices.Clone(g.Repos)
	for i, root := range roots {
		canonical, err := p.git.Canonical(root)
		if err != nil {
			return g, err
		}
		roots[i] = canonical
	}
	g.Repos = roots
	return g, nil
}

// register takes up the repositories among the roots of a request that check
// lets pass, so that a home can name them at once. Of one on record that is done.
func (p pairing) register(ctx context.Context, r receipt.Request, roots []string, check func(context.Context) error) error {
	return receipt.Prepare(ctx, p.store, r, func(ctx context.Context) error {
		err := check(ctx)
		for _, root := range roots {
			if err == nil {
				err = p.registerRoot(ctx, r, root)
			}
		}
		return err
	})
}

// registerRoot registers the root if it is a repository. Registering is idempotent
// by path, so it needs no receipt of its own to be repeated.
func (p pairing) registerRoot(ctx context.Context, r receipt.Request, root string) error {
	f, err := p.git.Inspect(ctx, root)
	if err != nil || f.Kind != hub.RepoGit || f.Path != root {
		return err
	}
	in := work.RepoInput{Path: root}
	add, err := receipt.New(r.Principal, "", "repo.add", in)
	if err != nil {
		return err
	}
	_, err = p.work.AddRepo(ctx, add, in)
	return err
}

func (p pairing) Invite(ctx context.Context, r receipt.Request, in server.InviteInput) (server.Invited, error) {
	grants, err := p.granted(in.Grants, in.Mutual || in.As != hub.RoleHome)
	if err != nil {
		return server.Invited{}, err
	}
	asked := peer.InviteInput{As: in.As, Mutual: in.Mutual, Grants: grants, TTL: in.TTL}
	if err := p.register(ctx, r, grants.Repos, func(context.Context) error { return asked.Check() }); err != nil {
		return server.Invited{}, err
	}
	out, err := p.peers.Invite(ctx, r, asked)
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
	grants, err := p.granted(in.Grants, in.Mutual || in.Serve)
	if err != nil {
		return server.Joined{}, err
	}
	asked := peer.JoinInput{Name: in.Name, URL: in.URL, Code: in.Code, Serve: in.Serve, Mutual: in.Mutual, Grants: grants}
	if err := p.register(ctx, r, grants.Repos, func(context.Context) error { return asked.Check() }); err != nil {
		return server.Joined{}, err
	}
	out, err := p.peers.Join(ctx, r, asked)
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
