package daemon

import (
	"context"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/peer"
	"github.com/wavehub/wavehub/internal/work"
	"github.com/wavehub/wavehub/server"
)

// forward sends a request on to the peer of that name or id. A command that names
// a peer ends the pause before the next try to reach it.
func (x *hubParts) forward(ctx context.Context, name string, q server.Forwarded) (server.Returned, error) {
	p, err := x.fed.peers.Find(ctx, name)
	switch {
	case hub.IsCode(err, hub.CodePeerNotFound) && (name == x.cfg.Name || name == hub.WorktreeCurrent):
		return server.Returned{}, hub.Invalid("hub", "%s is this hub itself: leave --hub away", name)
	case err != nil:
		return server.Returned{}, err
	}
	if err := work.Serves(p); err != nil {
		return server.Returned{}, err
	}
	x.fed.home.Kick(p.ID)
	out, err := x.fed.client.Forward(ctx, p.ID, peer.Forwarded(q))
	return server.Returned(out), err
}
