package daemon

import (
	"context"
	"net"
	"net/http"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/peer"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/wake"
	"github.com/wavehub/wavehub/relay"
	"github.com/wavehub/wavehub/server"
)

// adopter serves peers on a connection that this hub has opened.
type adopter func(context.Context, net.Conn)

// link makes the transports of the links, both ways.
func (f *federation) link(h home, adopt adopter) (err error) {
	f.lot = peer.NewLot(peer.LotConfig{Arrived: func(id hub.PeerID) { f.home.Contact(id) }})
	if f.links, err = peer.NewLinks(peer.LinksConfig{Identity: h.ring, Peers: f.peers, Offer: hub.OwnOffer(), Lot: f.lot}); err != nil {
		return err
	}
	f.client = peer.NewClient(f.links)
	f.parker, err = peer.NewParker(peer.ParkerConfig{Links: f.links, Serve: adopt})
	return err
}

// parkAt keeps streams parked at the peer, or does not any more.
func (f *federation) parkAt(p hub.Peer) {
	if p.Reverse && p.State.Trusted() && p.Role.CanBe(hub.RoleHome) {
		f.parker.Add(p.ID)
		return
	}
	f.parker.Remove(p.ID)
}

func (f *federation) parkHandler(draining <-chan struct{}) http.Handler {
	return f.peers.ParkHandler(f.lot, draining, func(p hub.Peer, err error) {
		f.log.Debug("a parked stream ended", "peer", p.Name, "error", err)
	})
}

// kick is for a command that names the peer: what is missing of the links with
// it is tried now.
func (f *federation) kick(id hub.PeerID) {
	f.home.Kick(id)
	f.parker.Kick(id)
}

// contact is a request of the peer: whoever calls can be called. Its hello only
// announces one, and to park a stream counts once the stream is there.
func (f *federation) contact(r *http.Request, id hub.PeerID) {
	if r.URL.Path == peer.HelloPath || r.URL.Path == peer.ParkPath {
		return
	}
	f.home.Contact(id)
	f.parker.Contact(id)
}

// watch looks after the links when this host has slept or moved: those that are
// up prove themselves, what waits unused is replaced, what is down is tried.
func (f *federation) watch(ctx context.Context) error {
	stir := func() {
		f.log.Info("this host has slept or has other addresses: the links are looked at")
		f.relays.Wake()
		f.links.Close()
		f.lot.Renew()
		f.parker.Renew()
		f.home.KickAll()
	}
	return wake.Watch(ctx, wake.Config{Log: f.log}, stir, stir)
}

// linkOf shows the link with a peer: the one that this hub keeps as home, or
// the one that the peer keeps as this hub's home.
func (f *federation) linkOf(p hub.Peer) server.Link {
	st, parked := f.desk.State(p.ID), f.parker.State(p.ID)
	if p.Role.CanBe(hub.RoleWorker) {
		st = f.home.State(p.ID)
	} else if st.State != relay.LinkUp && p.Reverse {
		st.Stage, st.LastError = parked.Stage, parked.LastError
	}
	if st.Transport == "" {
		st.Transport = wayOf(p)
	}
	link := server.Link{
		State: st.State, Transport: st.Transport, Stage: st.Stage, LastError: st.LastError, ConnectedAt: st.ConnectedAt, Parked: parked.Parked,
	}
	if r, ok := f.peers.LastRefusal(p.ID); ok {
		link.Refused = &r
	}
	return link
}

// wayOf is how a link that is not up would come about.
func wayOf(p hub.Peer) string {
	if p.Reverse || p.Parks {
		return peer.TransportReverse
	}
	return peer.TransportDirect
}

// SetReverse fits the use-case to server.PeerService.
func (p pairing) SetReverse(ctx context.Context, r receipt.Request, idOrName string, on bool) (server.Joined, error) {
	out, err := p.peers.SetReverse(ctx, r, idOrName, on)
	return server.Joined{Peer: out.Peer, Mutation: out.Mutation}, err
}
