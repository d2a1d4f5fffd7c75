package daemon

import (
	"context"
	"crypto/tls"
	"net/http"
	"time"

	"github.com/wavehub/wavehub/internal/config"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/keystore"
	"github.com/wavehub/wavehub/internal/peer"
	"github.com/wavehub/wavehub/internal/receipt"
)

// formerGrace is how long a former key that no peer needs is held further on:
// for local callers that have read its pin and connect now.
const formerGrace = 30 * time.Second

// pingTime bounds one ping of a peer.
const pingTime = 30 * time.Second

// apiServerName is below which an API client names the key that it has pinned.
const apiServerName = "api.wavehub.internal"

// apiTLS shows the key that a client asks for by name, else the present one.
func apiTLS(keys keystore.Source) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true,
		GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
			cert := keys.Now().Asked(h.ServerName, apiServerName).Cert
			return &cert, nil
		},
	}
}

func (x *hubParts) fingerprint() string { return x.home.ring.Now().Fingerprint }

// writeEndpoint tells local clients address and key.
func (x *hubParts) writeEndpoint() error {
	id := x.home.ring.Now()
	return config.WriteEndpoint(x.home.dir, config.Endpoint{URL: x.url, Fingerprint: id.Fingerprint, HubID: id.HubID})
}

// rotated brings what pins this hub's key on this machine up to date: the
// endpoint file, and beside the running starts the capability files of its
// workers. A start of the hub does the same.
func (x *hubParts) rotated(context.Context) error {
	x.jobs.Go(func(ctx context.Context) {
		if err := x.work.RewriteAuthority(ctx); err != nil && ctx.Err() == nil {
			x.log.Error("writing the workers' capability files", "error", err)
		}
	})
	return x.writeEndpoint()
}

// rotations tells peers that have pinned a former key of the present one, and
// gives former keys up when no peer needs them any more.
func (x *hubParts) rotations(ctx context.Context) error {
	woken, cancel := x.bus.Subscribe(string(hub.TopicPeer), "")
	defer cancel()
	told := map[hub.PeerID]string{}
	idle := time.NewTimer(formerGrace)
	defer idle.Stop()
	for {
		settle := false
		select {
		case <-ctx.Done():
			return nil
		case <-woken:
			idle.Reset(formerGrace)
		case <-idle.C:
			settle = true
		}
		if err := x.spread(ctx, told, settle); err != nil && ctx.Err() == nil {
			x.log.Error("rotating this hub's key", "error", err)
		}
	}
}

// spread tells each peer once of each key. Who cannot be reached now learns of
// it at its next link-up.
func (x *hubParts) spread(ctx context.Context, told map[hub.PeerID]string, settle bool) error {
	unaware, err := x.fed.peers.Unaware(ctx)
	if err != nil {
		return err
	}
	present := x.fingerprint()
	for _, p := range unaware {
		if told[p.ID] == present {
			continue
		}
		told[p.ID] = present
		x.jobs.Go(func(ctx context.Context) { x.tell(ctx, p) })
	}
	if settle {
		return x.fed.peers.Settle(ctx)
	}
	return nil
}

// tell connects to a peer that is dialled from here, and has one that dials do
// so again: either way a fresh connection proves the present key.
func (x *hubParts) tell(ctx context.Context, p hub.Peer) {
	if p.Role.CanBe(hub.RoleHome) {
		x.fed.desk.Recall(p.ID)
	}
	if !p.Role.CanBe(hub.RoleWorker) {
		return
	}
	got, err := x.fed.ping(ctx, p.ID)
	if e := got.Err(); err == nil && e != nil {
		err = e
	}
	if err != nil && ctx.Err() == nil {
		x.log.Info("a peer does not know this hub's present key yet", "peer", p.Name, "error", err)
	}
}

// shed ends what was made with a key of a peer that another has replaced, whoever
// has opened it. Its record says so before this is called.
func (f *federation) shed(ps []hub.Peer) {
	for _, p := range ps {
		if was := f.pins[p.ID]; was != "" && was != p.Fingerprint {
			f.desk.Recall(p.ID)
			f.links.Rekeyed(p.ID, p.Fingerprint)
			f.lot.Drop(p.ID)
			for _, key := range append(peer.Former(p), was) {
				f.cut(key)
			}
		}
		f.pins[p.ID] = p.Fingerprint
	}
}

// noted notes that a peer's connection was refused at its hello.
func noted(ctx context.Context, peers *peer.Service, id hub.PeerID, err error) error {
	if err == nil {
		return nil
	}
	if p, errGet := peers.Get(ctx, id); errGet == nil {
		peers.Refused(p, peer.StageHello, err)
	}
	return err
}

func (f *federation) ping(ctx context.Context, id hub.PeerID) (peer.Ping, error) {
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	return f.links.Ping(ctx, id)
}

func (p pairing) Ping(ctx context.Context, idOrName string) (peer.Ping, error) {
	found, err := p.peers.Find(ctx, idOrName)
	if err != nil {
		return peer.Ping{}, err
	}
	return p.ping(ctx, found.ID)
}

func (p pairing) Rotate(ctx context.Context, r receipt.Request, in peer.RotateInput) (peer.RotateResult, error) {
	return p.peers.Rotate(ctx, r, in)
}

func (p pairing) FollowRotation(r *http.Request, of hub.Peer, in hub.Rotation) (hub.RotationTaken, error) {
	return p.peers.FollowRotation(r.Context(), r.TLS, of, in)
}
