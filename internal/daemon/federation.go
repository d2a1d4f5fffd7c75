package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/metrics"
	"github.com/wavehub/wavehub/internal/peer"
	"github.com/wavehub/wavehub/internal/signal"
	"github.com/wavehub/wavehub/internal/work"
	"github.com/wavehub/wavehub/relay"
	"github.com/wavehub/wavehub/relay/wire"
)

// federation is everything that talks to other hubs.
type federation struct {
	peers  *peer.Service
	links  *peer.Links
	client *peer.Client
	home   *relay.Home              // relays that this hub dials, as home
	desk   *relay.Desk              // relays that homes open, with this hub as owner
	lot    *peer.Lot                // streams that worker hubs have parked here
	parker *peer.Parker             // streams that this hub parks at homes
	cut    func(fingerprint string) // ends the connections that a key has opened
	pins   map[hub.PeerID]string    // the keys that shed has seen; used by follow only
	relays *relay.Session
	log    *slog.Logger

	dispatch *dispatch.Service
}

// source is the relay's view of the store; it adds its identity.
type source struct {
	*dispatch.Service
	id    string
	epoch int64
}

func (s source) Store() (string, int64) { return s.id, s.epoch }

// importer counts what comes too late.
type importer struct {
	*dispatch.Service
	meter *metrics.Metrics
}

func (i importer) Import(ctx context.Context, peer hub.PeerID, dir hub.Direction, feed hub.FeedState, items []hub.Item) (hub.ImportResult, error) {
	out, err := i.Service.Import(ctx, peer, dir, feed, items)
	for _, ack := range out.Acks {
		for _, v := range ack.Verdicts {
			if v.Verdict == hub.VerdictStale {
				i.meter.Late()
			}
		}
	}
	return out, err
}

// feed wakes a relay sender when something was queued for its peer.
type feed struct{ bus *signal.Bus }

func (f feed) Subscribe(id hub.PeerID) (<-chan struct{}, func()) {
	return f.bus.Subscribe(string(hub.TopicRelay), string(id))
}

func newFederation(peers *peer.Service, src source, bus *signal.Bus, h home, nonce string, says relay.Presence, changed func(hub.PeerID, relay.LinkState), adopt adopter, meter *metrics.Metrics, log *slog.Logger) (*federation, error) {
	f := &federation{peers: peers, dispatch: src.Service, pins: map[hub.PeerID]string{}, log: log}
	if err := f.link(h, adopt); err != nil {
		return nil, err
	}
	session, err := relay.NewSession(relay.Config{
		Source: src, Importer: importer{src.Service, meter}, Feed: feed{bus}, Nonce: nonce, Presence: says, Silent: f.parker.RenewAt,
		Check: func(ctx context.Context, id hub.PeerID, theirs wire.Hello) error {
			if err := noted(ctx, peers, id, peers.SawStore(ctx, id, theirs.StoreID, theirs.Epoch)); err != nil {
				return err
			}
			if ahead := theirs.Feed.Seen - src.epoch; theirs.Feed.StoreID == src.id && 0 < ahead && ahead <= maxEpochsAhead {
				return src.SeenEpoch(ctx, theirs.Feed.Seen)
			}
			return nil
		},
	})
	if err != nil {
		return nil, err
	}
	f.relays = session
	if f.desk, err = relay.NewDesk(session); err != nil {
		return nil, err
	}
	f.home, err = relay.NewHome(relay.HomeConfig{Session: session, Links: f.links, Changed: changed})
	return f, err
}

// maxEpochsAhead bounds how far a peer can move this store's next epoch.
const maxEpochsAhead = 1000

// follow keeps the set of pulled peers equal to the registry's.
func (f *federation) follow(ctx context.Context, bus *signal.Bus) error {
	woken, cancel := bus.Subscribe(string(hub.TopicPeer), "")
	defer cancel()
	for {
		if err := f.refresh(ctx); err != nil && ctx.Err() == nil {
			f.log.Error("reading the peers", "error", err)
		}
		select {
		case <-woken:
		case <-ctx.Done():
			return nil
		}
	}
}

// refresh pulls from every active peer that runs workers for this hub, and ends
// the connections of those that are active no more.
func (f *federation) refresh(ctx context.Context) error {
	ps, err := f.peers.List(ctx)
	if err != nil {
		return err
	}
	f.shed(ps)
	keys := map[string]bool{} // those that are still taken
	for _, p := range ps {
		keys[p.Fingerprint] = keys[p.Fingerprint] || p.State.Trusted()
	}
	for _, p := range ps {
		switch trusted := p.State.Trusted(); {
		case trusted && p.Role.CanBe(hub.RoleWorker):
			f.home.Add(p.ID)
		case trusted:
			f.home.Remove(p.ID) // it ran workers for us before it was paired anew
		default:
			f.end(p, keys[p.Fingerprint])
		}
		if !p.Role.CanBe(hub.RoleHome) {
			f.desk.Recall(p.ID) // it was a home before it was paired anew
		}
		f.parkAt(p)
	}
	return nil
}

// end closes what is open to and from a peer that is trusted no more: relays with
// a goodbye, everything else at once, unless the key is paired anew.
func (f *federation) end(p hub.Peer, keyTaken bool) {
	f.home.Remove(p.ID)
	f.desk.Drop(p.ID)
	f.links.Drop(p.ID)
	f.lot.Drop(p.ID)
	if !keyTaken {
		f.cut(p.Fingerprint)
	}
}

// relayHandler serves the worker's side of a relay that a home opens, until
// the hub drains.
func (f *federation) relayHandler(draining <-chan struct{}) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := f.peers.Admit(r.Context(), peer.KeyOf(r.TLS))
		if err != nil {
			http.Error(w, "not paired", http.StatusForbidden)
			return
		}
		conn, err := peer.AcceptRelay(w, r)
		if err != nil {
			f.log.Warn("a relay was not accepted", "peer", p.Name, "error", err)
			return
		}
		ctx, stop := context.WithCancel(r.Context())
		defer stop()
		go func() {
			select {
			case <-draining:
				stop()
			case <-ctx.Done():
			}
		}()
		f.hear(ctx, p, p.Condition == hub.CodePeerRevoked, "")
		err = f.desk.Serve(ctx, f.peers.Vet(conn, peer.KeyOf(r.TLS)), p.ID)
		if err != nil && !errors.Is(err, context.Canceled) {
			f.log.Info("a relay ended", "peer", p.Name, "error", err)
		}
		f.hear(ctx, p, relay.Revoked(err), hub.CodePeerRevoked)
	})
}

// hear notes, if so, what a home that opens relays shows of the pairing: that it
// has ended it, or that it has not.
func (f *federation) hear(ctx context.Context, p hub.Peer, so bool, condition hub.Code) {
	if !so {
		return
	}
	if err := f.dispatch.PeerCondition(context.WithoutCancel(ctx), p.ID, condition); err != nil {
		f.log.Warn("noting the condition of a peer", "peer", p.Name, "error", err)
	}
}

func (f *federation) tls(ctx context.Context, h home) *tls.Config {
	return peer.ServerConfig(ctx, h.ring, f.peers)
}

// remote fits the peer API to work.Remote. A command that names a peer ends the
// pause before the next try to reach it; a link that is up is left alone.
type remote struct {
	client *peer.Client
	kick   func(hub.PeerID)
}

func (r remote) Probe(ctx context.Context, id hub.PeerID, body []byte) (hub.Probe, error) {
	r.kick(id)
	return r.client.Probe(ctx, id, body)
}

func (r remote) Start(ctx context.Context, id hub.PeerID, key hub.RequestID, body []byte) (hub.Receipt, error) {
	return r.client.Start(ctx, id, key, body)
}

func (r remote) Show(ctx context.Context, id hub.PeerID, d hub.DispatchID) (hub.PeerShow, error) {
	r.kick(id)
	return r.client.Show(ctx, id, d)
}

func (r remote) Stop(ctx context.Context, id hub.PeerID, key hub.RequestID, d hub.DispatchID, in hub.PeerStop) (hub.StopEvidence, error) {
	r.kick(id)
	return r.client.Stop(ctx, id, key, d, in)
}

func (r remote) Output(ctx context.Context, id hub.PeerID, d hub.DispatchID, q work.OutputQuery) (hub.OutputPage, error) {
	r.kick(id)
	return r.client.Output(ctx, id, d, peer.OutputQuery(q))
}

// answerLost reports whether no answer to a request that was sent has come.
func answerLost(err error) bool { return errors.Is(err, peer.ErrAnswerLost) }

// nonce names this process to its peers.
func nonce() string { return string(hub.NewRequestID()) }
