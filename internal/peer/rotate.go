package peer

import (
	"cmp"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"net/http"
	"slices"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/keystore"
	"github.com/wavehub/wavehub/internal/store"
)

// rotateLabel binds the present key's signature to the one TLS connection that
// a former key authenticates.
const rotateLabel = "wavehub-rotate/1"

// The side of the connection that signs: one's signature is not the other's.
const (
	byDialler  = "dialler"
	byListener = "listener"
)

// rotationSum is what the present key signs: both keys, this connection.
func rotationSum(cs *tls.ConnectionState, by string, oldSPKI, newSPKI []byte) ([]byte, error) {
	exp, err := cs.ExportKeyingMaterial("EXPORTER-"+rotateLabel, nil, 32)
	if err != nil {
		return nil, fmt.Errorf("exporting from the TLS connection: %w", err)
	}
	return digest([]byte(rotateLabel), []byte(by), oldSPKI, newSPKI, exp), nil
}

// signRotation is the present key's word on the connection, which shown, a
// former key, authenticates.
func signRotation(cs *tls.ConnectionState, by string, own keystore.Identity, shown keystore.Key) ([]byte, error) {
	sum, err := rotationSum(cs, by, shown.SPKI(), own.Present().SPKI())
	if err != nil {
		return nil, err
	}
	key, ok := own.Cert.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("the hub's key cannot sign")
	}
	return key.Sign(rand.Reader, sum, crypto.SHA256)
}

// checkRotation returns the key that has taken the place of the pinned one,
// which the other side of the connection has proved.
func checkRotation(cs *tls.ConnectionState, by string, p hub.Peer, in hub.Rotation) (string, error) {
	l, err := keystore.ParseLineage(in.Proofs)
	if err != nil || l.Zero() || len(cs.PeerCertificates) == 0 {
		return "", errRotation
	}
	keys, old := l.Keys(), cs.PeerCertificates[0].RawSubjectPublicKeyInfo
	at := slices.Index(keys, p.Fingerprint)
	if keys[0] != p.Lineage || at < 0 || at == len(keys)-1 || keystore.Fingerprint(old) != p.Fingerprint {
		return "", errRotation
	}
	sum, err := rotationSum(cs, by, old, l.Last())
	if err != nil {
		return "", err
	}
	if !keystore.VerifyBy(l.Last(), sum, in.Signature) {
		return "", errRotation
	}
	return keys[len(keys)-1], nil
}

var errRotation = &hub.Error{
	Code: hub.CodePeerChanged, Message: "the proofs of the new key do not follow from the pinned one",
	Hint: "the pinned key stays; pair again if that hub has really lost its key",
}

// leadsTo reports whether the proofs of a hello are of the peer's lineage and
// name its pinned key. A peer that has another key since then shows that one
// only when it is asked for, and proves it.
func leadsTo(proofs []byte, p hub.Peer) bool {
	if proved(p.Lineage, proofs, p.Fingerprint) {
		return true
	}
	l, err := keystore.ParseLineage(proofs)
	return err == nil && slices.Contains(l.Keys(), p.Fingerprint) && l.Keys()[0] == p.Lineage
}

// shown is the key of this hub that a connection which it has accepted shows.
func (s *Service) shown(cs *tls.ConnectionState) keystore.Key {
	own := s.cfg.Identity.Now()
	if cs == nil {
		return own.Present()
	}
	return own.Asked(cs.ServerName, ServerName)
}

// Greet answers a paired hub that asks for the hello: it notes what that one
// offers and which key of this hub it has pinned, and tells it of a new one.
func (s *Service) Greet(r *http.Request) (hub.Hello, error) {
	ctx := r.Context()
	h, err := s.Hello(ctx)
	if err != nil {
		return h, err
	}
	p, err := s.Admit(ctx, KeyOf(r.TLS))
	if err != nil {
		return h, err
	}
	if o := offerOf(r.Header); len(o.Contracts) > 0 {
		err = s.sawOffer(ctx, p, o)
	}
	own, shown := s.cfg.Identity.Now(), s.shown(r.TLS)
	switch {
	case err != nil:
		return h, err
	case shown.Fingerprint != own.Fingerprint:
		h.Rotated, err = signRotation(r.TLS, byListener, own, shown)
	case r.TLS.ServerName == keystore.ServerName(own.Fingerprint, ServerName):
		err = s.SawKnown(ctx, p.ID, own.Fingerprint)
	}
	return h, err
}

// FollowRotation takes the new key of a peer that has connected with the pinned
// one and proves both. Afterwards the pinned one is refused. It is idempotent.
func (s *Service) FollowRotation(ctx context.Context, cs *tls.ConnectionState, p hub.Peer, in hub.Rotation) (hub.RotationTaken, error) {
	return s.follow(ctx, cs, byDialler, p, in)
}

// SawRotation is FollowRotation on a connection that this hub has dialled: the
// hello says whether there is a new key.
func (s *Service) SawRotation(ctx context.Context, cs *tls.ConnectionState, p hub.Peer, h hub.Hello) (moved bool, err error) {
	if len(h.Rotated) == 0 {
		return false, nil
	}
	_, err = s.follow(ctx, cs, byListener, p, hub.Rotation{Proofs: h.Proofs, Signature: h.Rotated})
	return err == nil, err
}

func (s *Service) follow(ctx context.Context, cs *tls.ConnectionState, by string, p hub.Peer, in hub.Rotation) (hub.RotationTaken, error) {
	fp, err := checkRotation(cs, by, p, in)
	if err != nil {
		return hub.RotationTaken{}, err
	}
	err = s.cfg.Store.Update(ctx, store.Settle, func(tx store.Tx) error {
		now, err := tx.Peer(p.ID)
		switch {
		case err != nil:
			return err
		case !lapse(now, tx.Now()).State.Trusted():
			return hub.Errorf(hub.CodePeerRevoked, "%s is %s", now.Name, now.State)
		case now.Fingerprint == fp:
			return nil
		case now.Fingerprint != p.Fingerprint:
			return changed(now.Fingerprint, p.Fingerprint)
		}
		now.Fingerprint, now.Proofs = fp, in.Proofs
		tx.Signal(hub.Signal{Topic: hub.TopicPeer, Key: string(p.ID)})
		return tx.SavePeer(now)
	})
	if err == nil {
		s.cfg.Log.Info("a peer has rotated its key", "peer", p.Name, "from", p.Fingerprint, "to", fp)
	}
	return hub.RotationTaken{Fingerprint: fp}, err
}

// SawKnown notes that the peer has pinned the key of this hub with the
// fingerprint.
func (s *Service) SawKnown(ctx context.Context, id hub.PeerID, fingerprint string) error {
	p, err := s.Get(ctx, id)
	if err != nil || s.knows(p) == fingerprint {
		return err
	}
	return s.cfg.Store.Update(ctx, store.Settle, func(tx store.Tx) error {
		p, err := tx.Peer(id)
		if err != nil {
			return err
		}
		p.Knows = fingerprint
		tx.Signal(hub.Signal{Topic: hub.TopicPeer, Key: string(id)})
		return tx.SavePeer(p)
	})
}

// knows is the fingerprint of the key of this hub that the peer has pinned.
func (s *Service) knows(p hub.Peer) string { return cmp.Or(p.Knows, s.cfg.Identity.Now().HubID) }
