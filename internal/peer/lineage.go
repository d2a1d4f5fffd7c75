package peer

import (
	"context"
	"slices"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/keystore"
	"github.com/wavehub/wavehub/internal/store"
)

// proved reports whether the proofs say that the key with the fingerprint is
// the present one of the hub hubID. Without proofs it has to be its first key.
func proved(hubID string, proofs []byte, fingerprint string) bool {
	l, err := keystore.ParseLineage(proofs)
	return err == nil && l.Proves(hubID, fingerprint)
}

// formerKeys are the keys that proofs name before the present one, the newest
// first; none for proofs that prove nothing.
func formerKeys(proofs []byte) []string {
	l, err := keystore.ParseLineage(proofs)
	if err != nil || l.Zero() {
		return nil
	}
	keys := l.Keys()
	keys = keys[:len(keys)-1]
	slices.Reverse(keys)
	return keys
}

// Former are the keys that the peer had before its pinned one, the newest first, as
// far as its record proves.
func Former(p hub.Peer) []string { return formerKeys(p.Proofs) }

// enrolled finds the pairing that stands with the hub that p is: under its key,
// or under a key that its proofs have it had before. One of the same lineage
// under a key that is in no such way its own is peer_changed: one of two has left
// the lineage.
func enrolled(rx store.PeerReader, p hub.Peer) (hub.Peer, bool, error) {
	own := append([]string{p.Fingerprint}, formerKeys(p.Proofs)...)
	all, err := rx.PeersOf(p.Lineage)
	for _, old := range all {
		switch {
		case err != nil || old.State == hub.PeerRemoved:
		case slices.Contains(own, old.Fingerprint):
			return old, true, nil
		default:
			return hub.Peer{}, false, changed(old.Fingerprint, p.Fingerprint)
		}
	}
	return hub.Peer{}, false, err
}

// Replaced finds the peer that had the key before another took its place.
func (s *Service) Replaced(ctx context.Context, fp string) (p hub.Peer, was bool, err error) {
	err = s.cfg.Store.View(ctx, func(rx store.Rx) error {
		all, err := rx.PeerList()
		for _, p = range all {
			if was = slices.Contains(formerKeys(p.Proofs), fp); was {
				return err
			}
		}
		return err
	})
	return p, was, err
}

// Refusal is the last connection of a peer that was refused here.
type Refusal struct {
	At    hub.Micros
	Stage string // tls, pin or hello
	Code  hub.Code
	Error string
}

// Refused notes that a connection of the peer was refused at a stage, for
// LastRefusal, and logs it. What is noted does not outlive the process.
func (s *Service) Refused(p hub.Peer, stage string, err error) {
	s.cfg.Log.Warn("a peer was refused", "peer", p.Name, "stage", stage, "error", err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refusals[p.ID] = Refusal{At: s.cfg.Now(), Stage: stage, Code: hub.CodeOf(err), Error: err.Error()}
}

// LastRefusal returns what Refused has noted last of the peer.
func (s *Service) LastRefusal(id hub.PeerID) (Refusal, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.refusals[id]
	return r, ok
}
