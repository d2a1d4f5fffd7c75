package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/mail"
	"github.com/wavehub/wavehub/internal/metrics"
	pairs "github.com/wavehub/wavehub/internal/peer"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/wave"
	"github.com/wavehub/wavehub/internal/work"
)

// PeerServerName is the TLS server name that selects the peer mux.
const PeerServerName = "peer.wavehub.internal"

// Tokens checks and hashes credentials; both methods are pure.
type Tokens interface {
	// CheckToken reports whether s has the prefix and the shape of a token.
	CheckToken(prefix, s string) bool
	// Sum is the hash under which the store knows a token.
	Sum(token string) string
}

// PeerService pairs hubs and knows their links.
type PeerService interface {
	Invite(context.Context, receipt.Request, InviteInput) (Invited, error)
	Join(context.Context, receipt.Request, JoinInput) (Joined, error)
	List(context.Context) ([]hub.Peer, error)
	// SetReverse says whether this hub keeps streams parked at a home.
	SetReverse(ctx context.Context, r receipt.Request, idOrName string, on bool) (Joined, error)
	// Get finds a peer by its id or by its name.
	Get(ctx context.Context, idOrName string) (hub.Peer, Link, error)
	PeerLife
	// Ping connects to a peer anew, and says how far that came.
	Ping(ctx context.Context, idOrName string) (pairs.Ping, error)
	// Rotate makes a new key of this hub.
	Rotate(context.Context, receipt.Request, pairs.RotateInput) (pairs.RotateResult, error)
	// FollowRotation takes the new key of the peer that calls.
	FollowRotation(*http.Request, hub.Peer, hub.Rotation) (hub.RotationTaken, error)
}

// InviteInput asks for an invite. As is the role this hub takes, "" for the
// default; TTL 0 is the default. Grants.Verbs is nil: the service chooses.
type InviteInput struct {
	As     hub.Role
	Mutual bool
	Grants hub.Grants
	TTL    time.Duration
}

// Invited is an invite as it is shown. Code is "" once it cannot be used any
// more: Invite.Used then tells used from expired.
type Invited struct {
	Invite      hub.Invite
	Code        string
	Addresses   []string
	Fingerprint string
	Warnings    []string
	Mutation    hub.Mutation
}

// JoinInput pairs with the hub that gave the code. The code is never part of
// the receipt's payload. Grants.Verbs is nil: the service chooses.
type JoinInput struct {
	Name, URL, Code string
	Serve, Mutual   bool
	Grants          hub.Grants
}

// Joined is the peer of a pairing; one that is still pending is answered 202.
type Joined struct {
	Peer     hub.Peer
	Warnings []string
	Mutation hub.Mutation
}

// Link is the state of the link to a peer: State is up, down or connecting,
// Transport direct or reverse; Stage and LastError are "" when there was no
// failure, ConnectedAt is 0 when it is not up. Parked counts the streams of this
// hub that wait at the peer.
type Link struct {
	State, Transport, Stage, LastError string
	ConnectedAt                        hub.Micros
	Refused                            *pairs.Refusal // the last connection of the peer that was refused here
	Parked                             int
	Relay                              hub.RelayState
}

// Info is what GET /v1/hub says of this hub.
type Info struct {
	HubID, Name, Version, URL, Fingerprint, StoreID string
	StoreEpoch                                      int64
	Features                                        []string
	StartedAt                                       hub.Micros
}

// Config is what a Server needs. All of it is required but Hosts, Unspool, Ready,
// Metrics and Log.
type Config struct {
	Runs     *run.Service
	Mail     *mail.Service
	Dispatch *dispatch.Service
	Work     *work.Service
	Waves    *wave.Service
	Store    store.Store
	Peers    PeerService
	Tokens   Tokens

	// CursorKey signs the cursors of lists; at least 16 bytes.
	CursorKey []byte
	Hub       Info
	// Fingerprint is that of the present key; nil: Hub has it, for good.
	Fingerprint func() string
	// Hosts are accepted in the Host header beside the loopback names, without
	// regard to their port.
	Hosts []string
	// APIRemote serves the API to other machines too.
	APIRemote bool

	// APITLS and PeerTLS are used for connections to any name and to
	// PeerServerName. They are cloned; HTTP/1.1 is all that is offered.
	APITLS, PeerTLS *tls.Config

	// Unspool takes what the worker of a Dispatch wrote down while no hub
	// answered; it costs next to nothing where there is nothing.
	Unspool func(context.Context, hub.DispatchID) error
	// Ready tells why the hub takes no new work, nil if it does.
	Ready   func() error
	Metrics *metrics.Metrics
	Log     *slog.Logger

	// PeerRelay and PeerPair serve the two websockets of the peer mux.
	PeerRelay, PeerPair http.Handler
	// PeerPark keeps the streams that worker hubs park.
	PeerPark http.Handler
	// PeerOf returns the peer whose key a connection has proved, and false for
	// a key that is not paired.
	PeerOf func(*http.Request) (hub.Peer, bool, error)
	// Forward sends a request to the peer of that name or id and returns its
	// answer; see Forwarded.
	Forward func(ctx context.Context, peer string, q Forwarded) (Returned, error)
	// PeerHello is what this hub says of itself to the peer that asks.
	PeerHello func(*http.Request) (hub.Hello, error)
}

const minCursorKey = 16

func (c Config) check() error {
	switch {
	case c.Runs == nil, c.Mail == nil, c.Dispatch == nil, c.Work == nil, c.Waves == nil, c.Store == nil, c.Peers == nil, c.Tokens == nil:
		return errors.New("server: a use-case is missing")
	case len(c.CursorKey) < minCursorKey:
		return errors.New("server: the cursor key is too short")
	case c.APITLS == nil, c.PeerTLS == nil:
		return errors.New("server: a TLS configuration is missing")
	case c.PeerRelay == nil, c.PeerPair == nil, c.PeerPark == nil, c.PeerOf == nil, c.PeerHello == nil, c.Forward == nil:
		return errors.New("server: a handler of the peer mux is missing")
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.Ready == nil {
		c.Ready = func() error { return nil }
	}
	if c.Fingerprint == nil {
		c.Fingerprint = func() string { return c.Hub.Fingerprint }
	}
	if c.Unspool == nil {
		c.Unspool = func(context.Context, hub.DispatchID) error { return nil }
	}
	if c.Metrics == nil {
		c.Metrics = metrics.New()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}
