package peer

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/keystore"
	"github.com/wavehub/wavehub/openapi/peerapi"
)

// The stages at which a connection can fail, in order.
const (
	StageResolve  = "resolve"
	StageDial     = "dial"
	StageTLS      = "tls"
	StagePin      = "pin"
	StageHello    = "hello"
	StageContract = "contract"
)

// LinkError is a failure to connect: nothing of a request has been sent.
type LinkError struct {
	At  string // one of the stages
	Err error
}

// Error names the stage.
func (e *LinkError) Error() string { return e.At + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *LinkError) Unwrap() error { return e.Err }

// Stage returns At; the relay shows it.
func (e *LinkError) Stage() string { return e.At }

// atStage adds a stage to an error that has none.
func atStage(stage string, err error) error {
	if le, ok := errors.AsType[*LinkError](err); ok {
		return le
	}
	return &LinkError{stage, err}
}

// Directory is where Links looks peers up; Service implements it.
type Directory interface {
	Get(ctx context.Context, id hub.PeerID) (hub.Peer, error)
	// SawHello refuses a peer whose lineage, store or contracts are not those
	// of its record.
	SawHello(ctx context.Context, id hub.PeerID, h hub.Hello) error
}

// LinksConfig configures Links.
type LinksConfig struct {
	Identity keystore.Identity
	Peers    Directory
	// Dial makes TCP connections; nil means the net package, without proxies.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Timeout bounds each stage of connecting; 10 s when 0.
	Timeout time.Duration
	// Lot holds the streams that peers have parked here; nil: there are none.
	Lot *Lot
}

// Links connects to peers, over streams that they have parked or directly: one
// http.Transport per peer, no proxies, no redirects. Every connection has
// passed pin, lineage, store and contract before a request goes over it. It is
// safe for concurrent use.
type Links struct {
	cfg  LinksConfig
	dial dialer

	mu         sync.Mutex
	transports map[hub.PeerID]*http.Transport // guarded by mu
}

// NewLinks validates cfg; it starts nothing.
func NewLinks(cfg LinksConfig) (*Links, error) {
	if cfg.Identity.Cert.Leaf == nil || cfg.Peers == nil {
		return nil, errors.New("peer: Links needs Identity and Peers")
	}
	if cfg.Lot == nil {
		cfg.Lot = NewLot(LotConfig{})
	}
	d := dialer{id: cfg.Identity, dial: cfg.Dial, timeout: cfg.Timeout}
	return &Links{cfg: cfg, dial: d, transports: map[hub.PeerID]*http.Transport{}}, nil
}

// Open opens the relay socket of a peer. Its errors are LinkErrors.
func (l *Links) Open(ctx context.Context, peer hub.PeerID) (Conn, error) {
	over := ""
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { over = transportOf(i.Conn) }})
	ws, err := dialSocket(ctx, l.transport(peer), "/peer/v1/relay", RelayProtocol)
	if err != nil {
		return nil, err
	}
	return newFrames(ws, over), nil
}

// Drop forgets a peer that was removed or changed: idle connections close.
// Its live sockets are the relay's to end.
func (l *Links) Drop(peer hub.PeerID) {
	l.mu.Lock()
	t := l.transports[peer]
	delete(l.transports, peer)
	l.mu.Unlock()
	if t != nil {
		t.CloseIdleConnections()
	}
}

// Close closes the idle connections of all peers.
func (l *Links) Close() {
	l.mu.Lock()
	all := l.transports
	l.transports = map[hub.PeerID]*http.Transport{}
	l.mu.Unlock()
	for _, t := range all {
		t.CloseIdleConnections()
	}
}

func (l *Links) transport(peer hub.PeerID) *http.Transport {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t, ok := l.transports[peer]; ok {
		return t
	}
	t := &http.Transport{
		Proxy: nil, DisableCompression: true, MaxIdleConnsPerHost: 4,
		IdleConnTimeout: 90 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return l.connect(ctx, peer) },
	}
	l.transports[peer] = t
	return t
}

// connect is a fresh connection to a peer that is trusted.
func (l *Links) connect(ctx context.Context, id hub.PeerID) (net.Conn, error) {
	p, err := l.trusted(ctx, id)
	if err != nil {
		return nil, err
	}
	conn, err := l.route(ctx, p)
	if err != nil {
		return nil, err // not a nil *tls.Conn in an interface
	}
	return conn, nil
}

func (l *Links) trusted(ctx context.Context, id hub.PeerID) (hub.Peer, error) {
	p, err := l.cfg.Peers.Get(ctx, id)
	switch {
	case err != nil:
		return p, &LinkError{StageResolve, err}
	case !p.State.Trusted():
		return p, &LinkError{StagePin, hub.Errorf(hub.CodePeerRevoked, "%s is %s", p.Name, p.State)}
	}
	return p, nil
}

// direct tries the peer's addresses in turn. A wrong key or store is the
// answer at once; an address that does not answer gives way to the next.
func (l *Links) direct(ctx context.Context, p hub.Peer) (*tls.Conn, hub.Hello, error) {
	last := error(&LinkError{StageResolve, fmt.Errorf("%s has no address", p.Name)})
	for _, a := range p.Addresses {
		u, err := parseAddress(a)
		if err != nil {
			last = &LinkError{StageResolve, err}
			continue
		}
		conn, h, err := l.greet(ctx, p, direct{l.dial, u.Host})
		if err == nil {
			return conn, h, nil
		}
		if last = err; definite(err) {
			break
		}
	}
	return nil, hub.Hello{}, last
}

func definite(err error) bool {
	e, ok := errors.AsType[*hub.Error](err)
	return ok && e.Code != hub.CodeRemoteRuntimeUnavailable
}

// greet takes a stream of the transport, makes it the peer's and asks for the
// hello on it.
func (l *Links) greet(ctx context.Context, p hub.Peer, t transport) (*tls.Conn, hub.Hello, error) {
	raw, over, err := t.dial(ctx, p)
	if err != nil {
		return nil, hub.Hello{}, err
	}
	conn, err := l.dial.secure(ctx, carried{raw, over}, p.Fingerprint)
	if err != nil {
		return nil, hub.Hello{}, err
	}
	h, err := l.meet(ctx, p, conn)
	if err != nil {
		conn.Close()
		return nil, h, err
	}
	return conn, h, nil
}

func (l *Links) meet(ctx context.Context, p hub.Peer, conn net.Conn) (hub.Hello, error) {
	h, err := askHello(ctx, conn, l.dial.limit())
	if err != nil {
		if refusedKey(err) { // in TLS 1.3 the refusal comes with the first read
			return h, &LinkError{StageTLS, err}
		}
		return h, &LinkError{StageHello, err}
	}
	if err := l.cfg.Peers.SawHello(ctx, p.ID, h); err != nil {
		if hub.IsCode(err, hub.CodeCapabilityUnsupported) {
			return h, &LinkError{StageContract, err}
		}
		return h, &LinkError{StageHello, err}
	}
	return h, nil
}

const maxHello = 64 << 10

// refusedBy is what a peer answered instead of what we asked for.
func refusedBy(resp *http.Response) error {
	e, err := problemOf(resp)
	if err != nil {
		return err
	}
	return e
}

// askHello sends GET /peer/v1/hello and leaves the connection as it was.
func askHello(ctx context.Context, conn net.Conn, limit time.Duration) (h hub.Hello, err error) {
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return h, err
	}
	req, err := peerapi.NewPeerHelloRequest("https://" + ServerName)
	if err != nil {
		return h, err
	}
	if err := req.Write(conn); err != nil {
		return h, err
	}
	br := bufio.NewReader(conn)
	resp, err := http.ReadResponse(br, req)
	if err != nil {
		return h, err
	}
	if resp.StatusCode != http.StatusOK {
		return h, refusedBy(resp)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxHello+1))
	switch {
	case err != nil:
		return h, err
	case len(raw) > maxHello || br.Buffered() > 0 || resp.Close:
		return h, errors.New("the peer's hello is not one")
	}
	if err := json.Unmarshal(raw, &h); err != nil {
		return h, fmt.Errorf("reading the peer's hello: %w", err)
	}
	return h, conn.SetDeadline(time.Time{})
}

// dialer makes pinned TLS connections, stage by stage.
type dialer struct {
	id      keystore.Identity
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	timeout time.Duration
}

func (d dialer) limit() time.Duration {
	if d.timeout <= 0 {
		return 10 * time.Second
	}
	return d.timeout
}

// dialTLS connects to host:port; pin "" accepts any key.
func (d dialer) dialTLS(ctx context.Context, host, pin string) (*tls.Conn, error) {
	raw, err := d.dialTCP(ctx, host)
	if err != nil {
		return nil, err
	}
	return d.secure(ctx, raw, pin)
}

// secure runs the pinned TLS over raw, as the client; it closes raw if that
// fails.
func (d dialer) secure(ctx context.Context, raw net.Conn, pin string) (*tls.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.limit())
	defer cancel()
	conn := tls.Client(raw, ClientConfig(d.id, pin))
	if err := conn.HandshakeContext(ctx); err != nil {
		raw.Close()
		if hub.IsCode(err, hub.CodePeerChanged) {
			return nil, &LinkError{StagePin, err}
		}
		return nil, &LinkError{StageTLS, err}
	}
	return conn, nil
}

func (d dialer) dialTCP(ctx context.Context, host string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.limit())
	defer cancel()
	dial := d.dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	conn, err := dial(ctx, "tcp", host)
	if err == nil {
		return conn, nil
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return nil, &LinkError{StageResolve, err}
	}
	return nil, &LinkError{StageDial, err}
}

// refusedKey reports whether the other side ended the handshake because of
// our key: then it has read nothing of what we sent. crypto/tls does not
// export the alerts of stream connections, so their texts have to do.
func refusedKey(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	if !ok || op.Op != "remote error" {
		return false
	}
	switch op.Err.Error() {
	case "tls: bad certificate", "tls: unknown certificate authority", "tls: certificate required":
		return true
	}
	return false
}
