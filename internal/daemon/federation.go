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
	home   *relay.Home // relays that this hub dials, as home
	desk   *relay.Desk // relays that homes open, with this hub as owner
	log    *slog.Logger
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

func newFederation(peers *peer.Service, src source, bus *signal.Bus, h home, nonce string, changed func(hub.PeerID, relay.LinkState), meter *metrics.Metrics, log *slog.Logger) (*federation, error) {
	links, err := peer.NewLinks(peer.LinksConfig{Identity: h.identity, Peers: peers})
	if err != nil {
		return nil, err
	}
	f := &federation{peers: peers, links: links, client: peer.NewClient(links), log: log}
	session, err := relay.NewSession(relay.Config{
		Source: src, Importer: importer{src.Service, meter}, Feed: feed{bus}, Nonce: nonce,
		Check: func(ctx context.Context, id hub.PeerID, theirs wire.Hello) error {
			if err := peers.SawStore(ctx, id, theirs.StoreID, theirs.Epoch); err != nil {
				return err
			}
			if ahead := theirs.Feed.Epoch - src.epoch; theirs.Feed.StoreID == src.id && 0 < ahead && ahead <= maxEpochsAhead {
				return src.SeenEpoch(ctx, theirs.Feed.Epoch)
			}
			return nil
		},
	})
	if err != nil {
		return nil, err
	}
	if f.desk, err = relay.NewDesk(session); err != nil {
		return nil, err
	}
	f.home, err = relay.NewHome(relay.HomeConfig{Session: session, Links: links, Changed: changed})
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
	for _, p := range ps {
		switch trusted := p.State.Trusted(); {
		case trusted && p.Role.CanBe(hub.RoleWorker):
			f.home.Add(p.ID)
		case !trusted:
			f.home.Remove(p.ID)
			f.desk.Drop(p.ID)
			f.links.Drop(p.ID)
		}
	}
	return nil
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
		if err := f.desk.Serve(ctx, conn, p.ID); err != nil && !errors.Is(err, context.Canceled) {
			f.log.Info("a relay ended", "peer", p.Name, "error", err)
		}
	})
}

func (f *federation) tls(ctx context.Context, h home) *tls.Config {
	return peer.ServerConfig(ctx, h.identity, f.peers)
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
