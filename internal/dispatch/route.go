package dispatch

import (
	"context"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// Reachable refuses a Dispatch that nothing may be sent to, asked of or taken
// from: its owner is pinned by lineage and store, and is removed here, or
// another hub or store has taken its place. A link that is merely down is no
// reason. Local Dispatches are always reachable.
func Reachable(rx store.PeerReader, d hub.Dispatch) error {
	if d.Local() {
		return nil
	}
	p, err := rx.Peer(d.Server.PeerID)
	if err != nil {
		return err
	}
	code := d.Pin.Fits(p)
	if code == "" && p.State.Trusted() {
		return nil
	}
	if code == "" {
		if code, err = succeeded(rx, p); err != nil {
			return err
		}
	}
	return unreachable(d, p, code)
}

// succeeded is what has taken the place of a peer that is trusted no more.
func succeeded(rx store.PeerReader, gone hub.Peer) (hub.Code, error) {
	same, err := rx.PeersOf(gone.Lineage)
	if err != nil {
		return "", err
	}
	for _, p := range same {
		if p.State.Trusted() {
			return hub.CodePeerStoreChanged, nil
		}
	}
	_, err = rx.PeerByName(gone.Name)
	switch {
	case hub.IsCode(err, hub.CodePeerNotFound):
		return hub.CodePeerRevoked, nil
	case err != nil:
		return "", err
	case gone.State == hub.PeerRemoved:
		return hub.CodePeerChanged, nil
	}
	return hub.CodePeerRevoked, nil // the name is still its own
}

func unreachable(d hub.Dispatch, p hub.Peer, code hub.Code) error {
	e := hub.Errorf(code, "%s is on %s, which is %s", d.ID, p.Name, p.State)
	switch code {
	case hub.CodePeerChanged:
		e = hub.Errorf(code, "%s is on another hub than the one that is paired as %s now", d.ID, p.Name)
	case hub.CodePeerStoreChanged:
		e = hub.Errorf(code, "%s is on the store %s of that hub, which is paired with another one now", d.ID, d.Pin.StoreID)
	}
	e.Hint = "nothing was sent. Pair that hub again, with that store; or give the Dispatch up"
	return e.WithNext("wavehub", "worker", "abandon", string(d.ID))
}

// Routed is Reachable for whoever is about to ask the owner.
func Routed(ctx context.Context, st store.Reader, d hub.Dispatch) error {
	return st.View(ctx, func(rx store.Rx) error { return Reachable(rx, d) })
}
