package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/wavehub/wavehub/internal/config"
	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/group"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/keystore"
	"github.com/wavehub/wavehub/internal/mail"
	"github.com/wavehub/wavehub/internal/metrics"
	"github.com/wavehub/wavehub/internal/peer"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/signal"
	"github.com/wavehub/wavehub/internal/sqlite"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/terminal"
	"github.com/wavehub/wavehub/internal/wave"
	"github.com/wavehub/wavehub/internal/work"
	"github.com/wavehub/wavehub/internal/worktree"
	"github.com/wavehub/wavehub/relay"
	"github.com/wavehub/wavehub/server"
)

// parts are what a hub is built of.
type parts struct {
	cfg   config.Config
	build Build
	home  home
	store *sqlite.Store
	bus   *signal.Bus
	meter *metrics.Metrics
	ln    net.Listener
	jobs  *group.Group // operations that outlive their callers
	log   *slog.Logger
}

// hubParts is a built hub.
type hubParts struct {
	parts
	url      string
	storeID  string
	epoch    int64
	draining chan struct{}
	gate     *receipt.Gate
	runs     *run.Service
	mail     *mail.Service
	dispatch *dispatch.Service
	work     *work.Service
	waves    *wave.Service
	fed      *federation
	spools   *spools
	server   *server.Server
}

// assemble builds everything; it starts nothing.
func assemble(ctx context.Context, p parts) (*hubParts, error) {
	x := &hubParts{parts: p, url: reachable(p.ln.Addr()), draining: make(chan struct{})}
	err := p.store.View(ctx, func(rx store.Rx) (err error) {
		x.storeID, x.epoch, err = rx.StoreIdentity()
		return err
	})
	if err != nil {
		return nil, err
	}
	tok := tokens{p.home.tokenKey}
	x.gate = receipt.NewGate(p.store, p.jobs.Go)
	x.runs = &run.Service{Store: p.store, Tokens: tok}
	x.mail = &mail.Service{Store: p.store, Access: dispatch.Access{}, Bus: p.bus, Draining: x.draining}
	x.dispatch = &dispatch.Service{Store: p.store, Tokens: tok}
	x.spools = x.newSpools()
	for _, step := range []func(context.Context) error{x.wireFederation, x.wireWork, x.wireServer} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return x, nil
}

func (x *hubParts) wireFederation(context.Context) error {
	once := nonce()
	peers, err := peer.New(peer.Config{
		Store: x.store, Gate: x.gate, Identity: x.home.ring, Rotator: x.home.ring, Rotated: x.rotated, Features: hub.Features(), TokenKey: x.home.tokenKey, Name: x.cfg.Name,
		Nonce: once, Version: x.build.Version, Addresses: x.addresses, Log: x.log,
		Ended: dispatch.Unpaired,
	})
	if err != nil {
		return err
	}
	src := source{Service: x.dispatch, id: x.storeID, epoch: x.epoch}
	x.fed, err = newFederation(peers, src, x.bus, x.home, once, presences{x}, x.linkChanged, x.adopt, x.meter, x.log)
	x.dispatch.LinkUp = x.flows
	return err
}

// adopt is called once the server is there: its callers run from start on.
func (x *hubParts) adopt(ctx context.Context, conn net.Conn) { x.server.Adopt(ctx, conn) }

// flows reports whether items of a direction flow to a peer.
func (x *hubParts) flows(id hub.PeerID, dir hub.Direction) bool {
	if dir == hub.ToHome {
		return x.fed.desk.Up(id)
	}
	return x.fed.home.State(id).State == relay.LinkUp
}

// addresses are where peers may reach this hub.
func (x *hubParts) addresses() []string {
	if len(x.cfg.Advertise) == 0 {
		return []string{x.url}
	}
	out := make([]string, len(x.cfg.Advertise))
	for i, a := range x.cfg.Advertise {
		out[i] = "https://" + a
	}
	return out
}

// linkChanged inspects what is unknown on a peer as soon as its link is up, and
// tells the Runs that have workers there when a person has to look at it.
func (x *hubParts) linkChanged(id hub.PeerID, st relay.LinkState) {
	if st.State == relay.LinkConnecting {
		return
	}
	x.work.LinkChanged(id, st.State == relay.LinkUp)
	if st.State == relay.LinkDown {
		x.fed.links.Forget(id) // what is pooled is as dead: a request would wait on it, and not know whether it was sent
	}
	x.jobs.Go(func(ctx context.Context) {
		if err := x.noteCondition(ctx, id); err != nil && ctx.Err() == nil {
			x.log.Warn("noting the condition of a peer", "peer", id, "error", err)
		}
		if st.State != relay.LinkUp {
			return
		}
		x.waves.LinkUp(id)
		if err := x.work.Reconcile(ctx, id); err != nil && ctx.Err() == nil {
			x.log.Warn("inspecting a peer's Dispatches", "peer", id, "error", err)
		}
	})
}

// noteCondition records the condition that the link is in by now: jobs may
// overtake each other. A link that is merely down stays in the one it had.
func (x *hubParts) noteCondition(ctx context.Context, id hub.PeerID) error {
	switch st := x.fed.home.State(id); {
	case st.State == relay.LinkUp:
		return x.dispatch.PeerCondition(ctx, id, "")
	case st.Code == hub.CodePeerChanged, st.Code == hub.CodePeerStoreChanged, st.Code == hub.CodePeerRevoked, st.Code == hub.CodePeerDuplicate:
		return x.dispatch.PeerCondition(ctx, id, st.Code)
	}
	return nil
}

func (x *hubParts) wireWork(context.Context) error {
	bin, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	if bin, err = filepath.EvalSymlinks(bin); err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	terminals, err := terminal.New(terminal.Config{Root: x.home.terminals(), Exe: []string{bin, "supervise"}})
	if err != nil {
		return err
	}
	g, err := x.git()
	if err != nil {
		return err
	}
	launchers, err := newAgents(x.cfg, bin)
	if err != nil {
		return err
	}
	x.work = work.New(work.Config{
		Store: x.store, Gate: x.gate, Terminals: terminals, Git: g, Agents: launchers, Console: launchers,
		Transcripts: transcripts{terminals}, CursorKey: keystore.Derive(x.home.tokenKey, "output-cursor", "", 1, 32),
		Remote: remote{x.fed.client, x.fed.kick}, AnswerLost: answerLost, Bus: x.bus, Spawn: x.jobs.Go,
		Authority: authority{key: x.home.tokenKey, root: x.home.private(), url: x.url, fingerprint: x.fingerprint},
		LinkUp:    func(id hub.PeerID) bool { return x.fed.home.State(id).State == relay.LinkUp },
		Listening: x.mail.Listening, Unspool: x.spools.drain,
		Name: x.cfg.Name, Bin: bin, Workers: x.cfg.Limits.Workers, PerAgent: x.cfg.Limits.PerAgent, StoreID: x.storeID, Epoch: x.epoch, Log: x.log,
		VerifyTimeout: x.cfg.VerifyTimeout, FoldCase: runtime.GOOS == "windows" || runtime.GOOS == "darwin",
	})
	x.waves = wave.New(wave.Config{Store: x.store, Work: x.work, Bus: x.bus, Spawn: x.jobs.Go, LivenessSecs: int64(x.cfg.WaveLivenessSecs), Clock: hostClock(x.log), Log: x.log})
	return nil
}

func (x *hubParts) git() (git, error) {
	g, err := worktree.NewGit(worktree.Config{})
	return git{Git: g, root: x.home.worktrees()}, err
}

func (x *hubParts) wireServer(ctx context.Context) error {
	g, err := x.git()
	if err != nil {
		return err
	}
	id := x.home.ring.Now()
	x.server, err = server.New(server.Config{
		Runs: x.runs, Mail: x.mail, Dispatch: x.dispatch, Work: x.work, Waves: x.waves, Store: x.store,
		Peers: pairing{x.fed, x.work, x.dispatch, g, x.store}, Tokens: tokens{x.home.tokenKey},
		CursorKey: keystore.Derive(x.home.tokenKey, "cursor", "", 1, 32),
		Hub: server.Info{
			HubID: id.HubID, Name: x.cfg.Name, Version: x.build.Version, URL: x.url, Fingerprint: id.Fingerprint,
			StoreID: x.storeID, StoreEpoch: x.epoch, Features: append([]string{hub.ContractFederation}, hub.Features()...), StartedAt: hub.MicrosOf(time.Now()),
		},
		Hosts: x.hosts(), APIRemote: x.cfg.APIRemote,
		Fingerprint: x.fingerprint, APITLS: apiTLS(x.home.ring),
		PeerTLS: x.fed.tls(ctx, x.home),
		Metrics: x.meter, Log: x.log, Unspool: x.spools.drain,
		PeerRelay: x.fed.relayHandler(x.draining), PeerPair: x.fed.peers.PairHandler(), PeerPark: x.fed.parkHandler(x.draining), PeerOf: x.peerOf, PeerHello: x.fed.peers.Greet, Forward: x.forward,
	})
	if err == nil {
		x.fed.cut = x.server.CutPeer
	}
	return err
}

// hosts are the configured names of this hub, without ports.
func (x *hubParts) hosts() (names []string) {
	for _, a := range x.cfg.Advertise {
		if host, _, err := net.SplitHostPort(a); err == nil {
			names = append(names, host)
		}
	}
	return names
}

func (x *hubParts) peerOf(r *http.Request) (hub.Peer, bool, error) {
	p, err := x.fed.peers.Admit(r.Context(), peer.KeyOf(r.TLS))
	if hub.IsCode(err, hub.CodeInvalidToken) {
		return p, false, nil
	}
	if err == nil {
		x.fed.contact(r, p.ID)
	}
	return p, err == nil, err
}

// serve serves until ctx ends, then drains: no new connections, waits end with
// hub_draining, running calls finish.
func (x *hubParts) serve(ctx context.Context, ln net.Listener, ready func()) error {
	if err := x.writeEndpoint(); err != nil {
		return err
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	served := make(chan error, 1)
	go func() { served <- x.server.Serve(serving, ln) }()
	ready()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	close(x.draining)
	x.server.Drain()
	stop()
	return <-served
}
