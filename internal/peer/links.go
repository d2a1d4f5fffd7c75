package peer

import (
	"bufio"
	"context"
	"crypto/tls"
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
	// SawRotation takes a new key that the hello proves on this connection.
	SawRotation(ctx context.Context, cs *tls.ConnectionState, p hub.Peer, h hub.Hello) (moved bool, err error)
	// SawKnown notes which key of this hub the peer has pinned.
	SawKnown(ctx context.Context, id hub.PeerID, fingerprint string) error
}

// LinksConfig configures Links.
type LinksConfig struct {
	Identity keystore.Source
	Peers    Directory
	Offer    hub.Offer // what this hub says of itself when it asks for a hello
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
	cfg   LinksConfig
	dial  dialer
	conns tracked

	mu         sync.Mutex
	transports map[hub.PeerID]*http.Transport // guarded by mu
}

// NewLinks validates cfg; it starts nothing.
func NewLinks(cfg LinksConfig) (*Links, error) {
	if cfg.Identity == nil || cfg.Peers == nil {
		return nil, errors.New("peer: Links needs Identity and Peers")
	}
	if cfg.Lot == nil {
		cfg.Lot = NewLot(LotConfig{})
	}
	d := dialer{dial: cfg.Dial, timeout: cfg.Timeout}
	return &Links{cfg: cfg, dial: d, transports: map[hub.PeerID]*http.Transport{}}, nil
}

// Open opens the relay socket of a peer. Its errors are LinkErrors.
func (l *Links) Open(ctx context.Context, peer hub.PeerID) (Conn, error) {
	t := l.newTransport(peer)
	t.DisableKeepAlives = true // a connection of its own, whose hello is of now
	var used net.Conn
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { used = i.Conn }})
	ws, err := dialSocket(ctx, t, "/peer/v1/relay", RelayProtocol)
	if err != nil {
		return nil, err
	}
	l.conns.forRelay(used)
	return newFrames(ws, transportOf(used)), nil
}

// Drop forgets a peer that was removed: its connections close at once, those
// too that a request is under way on. Those of Open are the relay's to end, with
// a goodbye.
func (l *Links) Drop(peer hub.PeerID) {
	l.conns.cut(peer)
	l.Forget(peer)
}

// Rekeyed ends at once what was made with another key of the peer than the one
// that is pinned now, relay sockets too: they are opened anew.
func (l *Links) Rekeyed(peer hub.PeerID, pinned string) { l.conns.cutOthers(peer, pinned) }

// Forget closes the idle connections of a peer; those in use are not used again.
func (l *Links) Forget(peer hub.PeerID) {
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
	t := l.newTransport(peer)
	l.transports[peer] = t
	return t
}

func (l *Links) newTransport(peer hub.PeerID) *http.Transport {
	return &http.Transport{
		Proxy: nil, DisableCompression: true, MaxIdleConnsPerHost: 4,
		IdleConnTimeout: 90 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return l.connect(ctx, peer) },
	}
}

// connect is a fresh connection to a peer that is trusted.
func (l *Links) connect(ctx context.Context, id hub.PeerID) (net.Conn, error) {
	p, err := l.trusted(ctx, id)
	if err != nil {
		return nil, err
	}
	return l.route(ctx, p)
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
func (l *Links) direct(ctx context.Context, p hub.Peer) (net.Conn, hub.Hello, error) {
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

// noHello names the stage at which a peer refused to say what it is. One that
// does not know our key is not paired with us any more; in TLS 1.3 its refusal
// comes with the first read.
func noHello(err error) error {
	switch {
	case refusedKey(err):
		return &LinkError{StageTLS, unpaired(err)}
	case hub.IsCode(err, hub.CodeInvalidToken), hub.IsCode(err, hub.CodePeerRevoked):
		return &LinkError{StageHello, unpaired(err)}
	}
	return &LinkError{StageHello, err}
}

func unpaired(err error) error {
	return &hub.Error{
		Code: hub.CodePeerRevoked, Message: "the other hub does not take this hub's key: it is not paired with this one any more",
		Hint: "nothing was sent; to use that hub again, remove it here with peer remove, and pair the two anew with a code from there", Err: err,
	}
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

// exchange sends one request on a connection and reads its answer of 200, leaving
// the connection as it was.
func exchange(ctx context.Context, conn net.Conn, req *http.Request, limit time.Duration) ([]byte, error) {
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return nil, err
	}
	if err := req.Write(conn); err != nil {
		return nil, err
	}
	br := bufio.NewReader(conn)
	resp, err := http.ReadResponse(br, req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, refusedBy(resp)
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxHello+1))
	switch {
	case err != nil:
		return nil, err
	case len(raw) > maxHello || br.Buffered() > 0 || resp.Close:
		return nil, errors.New("the peer's hello is not one")
	}
	return raw, conn.SetDeadline(time.Time{})
}

// dialer makes pinned TLS connections, stage by stage.
type dialer struct {
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	timeout time.Duration
}

func (d dialer) limit() time.Duration {
	if d.timeout <= 0 {
		return 10 * time.Second
	}
	return d.timeout
}

// dialTLS connects to host:port with a key of this hub; pin "" accepts any key.
func (d dialer) dialTLS(ctx context.Context, host string, own keystore.Key, pin string) (*tls.Conn, error) {
	raw, err := d.dialTCP(ctx, host)
	if err != nil {
		return nil, err
	}
	return d.secure(ctx, raw, own, pin)
}

// secure runs the pinned TLS over raw with a key of this hub, as the client; it
// closes raw if that fails.
func (d dialer) secure(ctx context.Context, raw net.Conn, own keystore.Key, pin string) (*tls.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.limit())
	defer cancel()
	passed(ctx, StageDial)
	conn := tls.Client(raw, ClientConfig(own, pin))
	if err := conn.HandshakeContext(ctx); err != nil {
		raw.Close()
		if hub.IsCode(err, hub.CodePeerChanged) {
			return nil, &LinkError{StagePin, err}
		}
		return nil, &LinkError{StageTLS, err}
	}
	passed(ctx, StageTLS)
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
