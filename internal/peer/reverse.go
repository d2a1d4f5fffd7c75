package peer

import (
	"context"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

// SetReverse says whether this hub keeps streams parked at a home, over which
// the home reaches it. The peer is an id or a name.
func (s *Service) SetReverse(ctx context.Context, r receipt.Request, idOrName string, on bool) (PeerResult, error) {
	return receipt.Do(ctx, s.cfg.Store, store.New, r, func(tx store.Tx) (PeerResult, error) {
		p, err := find(tx, idOrName)
		switch {
		case err != nil:
			return PeerResult{}, err
		case !p.State.Trusted():
			return PeerResult{}, hub.Errorf(hub.CodePeerRevoked, "%s is %s", p.Name, p.State)
		case !p.Role.CanBe(hub.RoleHome):
			return PeerResult{}, notServed(p)
		}
		p.Reverse = on
		tx.Signal(hub.Signal{Topic: hub.TopicPeer, Key: string(p.ID)})
		return PeerResult{Peer: p}, tx.SavePeer(p)
	})
}

func notServed(p hub.Peer) error {
	e := hub.Invalid("peer", "%s is served by nobody here: only the worker's side parks streams", p.Name)
	e.Hint = "give the command on the hub that runs the workers"
	return e
}
