package peer

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/keystore"
	"github.com/wavehub/wavehub/openapi/peerapi"
)

// maxTurns bounds the connections of one attempt: each side may have a new key
// that the other has to learn, and each learns it on a connection of its own.
const maxTurns = 5

// greet takes a stream of the transport, makes it the peer's and asks for the
// hello on it. Where a key was
// rotated it dials again until both sides show their present keys.
func (l *Links) greet(ctx context.Context, p hub.Peer, t transport) (net.Conn, hub.Hello, error) {
	own := l.ownFor(p)
	for range maxTurns {
		conn, h, next, err := l.turn(ctx, p, own, t)
		if err != nil || conn != nil {
			return conn, h, err
		}
		own = next
		if p, err = l.cfg.Peers.Get(ctx, p.ID); err != nil {
			return nil, h, &LinkError{StageResolve, err}
		}
	}
	return nil, hub.Hello{}, &LinkError{StagePin, hub.Errorf(hub.CodeRemoteRuntimeUnavailable, "%s changes its key again and again", p.Name)}
}

// ownFor is the key of this hub that the peer has pinned, the present one if
// that is held no more.
func (l *Links) ownFor(p hub.Peer) keystore.Key {
	own := l.cfg.Identity.Now()
	fp := p.Knows
	if fp == "" {
		fp = own.HubID
	}
	if k, held := own.Held(fp); held {
		return k
	}
	return own.Present()
}

// turn makes one connection. Without an error and without a connection it is to
// be made again, with the key next.
func (l *Links) turn(ctx context.Context, p hub.Peer, own keystore.Key, t transport) (conn net.Conn, h hub.Hello, next keystore.Key, err error) {
	raw, over, err := t.dial(ctx, p)
	if err != nil {
		return nil, h, own, err
	}
	bare, err := l.dial.secure(ctx, carried{raw, over}, own, p.Fingerprint)
	if err != nil {
		return nil, h, own, err
	}
	c := l.conns.add(p.ID, bare) // before its record is looked at again
	h, again, err := l.meet(ctx, bare, p, own)
	if err == nil && !again {
		return c, h, own, nil
	}
	c.Close()
	present := l.cfg.Identity.Now().Present()
	if refusedKey(err) && own.Fingerprint != present.Fingerprint {
		return nil, h, present, nil // the answer that it has pinned the present one was lost
	}
	if again {
		return nil, h, l.ownAfter(ctx, p, own), nil
	}
	return nil, h, own, err
}

// ownAfter is the key to go on with once one side has learned of another key.
func (l *Links) ownAfter(ctx context.Context, p hub.Peer, own keystore.Key) keystore.Key {
	if now, err := l.cfg.Peers.Get(ctx, p.ID); err == nil {
		return l.ownFor(now)
	}
	return own
}

// meet exchanges the hellos on a fresh connection and, where it shows a former
// key of either side, what proves the present one: then it is to be made again.
func (l *Links) meet(ctx context.Context, c *tls.Conn, p hub.Peer, own keystore.Key) (h hub.Hello, again bool, err error) {
	switch now, err := l.cfg.Peers.Get(ctx, p.ID); {
	case err != nil:
		return h, false, &LinkError{StageResolve, err}
	case now.Fingerprint != p.Fingerprint: // it has moved on since this one was begun
		return h, true, nil
	}
	h, err = askHello(ctx, c, l.cfg.Offer, l.dial.limit())
	if err != nil {
		return h, false, noHello(err)
	}
	passed(ctx, StageHello)
	if err := l.cfg.Peers.SawHello(ctx, p.ID, h); err != nil {
		if hub.IsCode(err, hub.CodeCapabilityUnsupported) {
			return h, false, &LinkError{StageContract, err}
		}
		return h, false, &LinkError{StageHello, err}
	}
	cs := c.ConnectionState()
	moved, err := l.cfg.Peers.SawRotation(ctx, &cs, p, h)
	if err != nil {
		return h, false, &LinkError{StagePin, err}
	}
	told, err := l.introduce(ctx, c, p, own, h)
	passed(ctx, StageContract)
	if moved || told {
		l.Forget(p.ID) // what was authenticated by a former key is not used again
	}
	return h, moved || told, err
}

// introduce tells a peer that has pinned a former key of this hub of the present
// one, and notes that it knows that.
func (l *Links) introduce(ctx context.Context, c *tls.Conn, p hub.Peer, own keystore.Key, h hub.Hello) (told bool, err error) {
	id := l.cfg.Identity.Now()
	if own.Fingerprint == id.Fingerprint {
		return false, l.known(ctx, p, id.Fingerprint)
	}
	if !h.Has(hub.FeatureRotation) {
		return false, nil
	}
	cs := c.ConnectionState()
	sig, err := signRotation(&cs, byDialler, id, own)
	if err != nil {
		return false, &LinkError{StageHello, err}
	}
	got, err := askRotate(ctx, c, hub.Rotation{Proofs: id.Lineage.Bytes(), Signature: sig}, l.dial.limit())
	if err == nil && got.Fingerprint != id.Fingerprint {
		err = errors.New("the peer has pinned another key than it was told")
	}
	if err != nil {
		return false, &LinkError{StagePin, err}
	}
	return true, l.known(ctx, p, id.Fingerprint)
}

func (l *Links) known(ctx context.Context, p hub.Peer, fingerprint string) error {
	if err := l.cfg.Peers.SawKnown(ctx, p.ID, fingerprint); err != nil {
		return &LinkError{StageHello, err}
	}
	return nil
}

// askRotate sends POST /peer/v1/rotate on a fresh connection.
func askRotate(ctx context.Context, conn net.Conn, in hub.Rotation, limit time.Duration) (out hub.RotationTaken, err error) {
	req, err := peerapi.NewPeerRotateRequest("https://"+ServerName, in)
	if err != nil {
		return out, err
	}
	raw, err := exchange(ctx, conn, req, limit)
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return out, fmt.Errorf("reading the peer's answer: %w", err)
	}
	return out, nil
}

// askHello sends GET /peer/v1/hello with this hub's offer.
func askHello(ctx context.Context, conn net.Conn, offer hub.Offer, limit time.Duration) (h hub.Hello, err error) {
	req, err := peerapi.NewPeerHelloRequest("https://" + ServerName)
	if err != nil {
		return h, err
	}
	setOffer(req.Header, offer)
	raw, err := exchange(ctx, conn, req, limit)
	if err != nil {
		return h, err
	}
	if err := json.Unmarshal(raw, &h); err != nil {
		return h, fmt.Errorf("reading the peer's hello: %w", err)
	}
	return h, nil
}
