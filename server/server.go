package server

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/openapi/api"
	"github.com/wavehub/wavehub/openapi/peerapi"
)

// Limits of connections and requests.
const (
	maxConnections    = 2048
	maxWaits          = 4096
	maxHeaderBytes    = 16 << 10
	localHeaderBytes  = 1<<20 + maxHeaderBytes // from this machine only: whatever is wrong gets an answer with a code
	headerTimeout     = 5 * time.Second
	bodyTimeout       = 30 * time.Second
	idleTimeout       = 120 * time.Second
	writeTimeout      = 30 * time.Second
	handshakeTimeout  = 5 * time.Second
	keepAliveInterval = 10 * time.Second
	failureDelay      = 50 * time.Millisecond
	drainTime         = 10 * time.Second
)

// Server is the edge of one hub. Its handlers are safe for concurrent use.
type Server struct {
	cfg    Config
	hosts  map[string]bool
	api    chi.Router
	peer   chi.Router
	apiOps operations
	spec   []byte // of the API, as JSON
	docs   []byte // of the API, as HTML

	apiHTTP, peerHTTP *http.Server
	meter             *meter
	limiter           *limiter
	failures          chan struct{} // one slot per failed credential that is being delayed

	ending  ending
	unused  unused
	adopted *handoff // connections that Serve serves beside its listener's

	peerConns peerConns

	keepAlive time.Duration
	heartbeat time.Duration
	delay     time.Duration
}

// New validates the configuration and builds both muxes; it starts nothing.
func New(cfg Config) (*Server, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	s := &Server{
		cfg: cfg, hosts: hostSet(cfg.Hosts), meter: newMeter(cfg.Metrics), limiter: newLimiter(time.Now),
		failures:  make(chan struct{}, 128),
		adopted:   newHandoff(nil),
		keepAlive: keepAliveInterval, heartbeat: heartbeatInterval, delay: failureDelay,
	}
	if err := s.build(); err != nil {
		return nil, err
	}
	apiHeader := localHeaderBytes
	if cfg.APIRemote {
		apiHeader = maxHeaderBytes
	}
	s.apiHTTP, s.peerHTTP = s.httpServer(s.api, apiHeader), s.httpServer(s.peer, maxHeaderBytes)
	s.peerHTTP.ConnState = func(c net.Conn, state http.ConnState) {
		s.unused.follow(c, state)
		s.peerConns.follow(c, state)
	}
	return s, nil
}

// API is the handler of the API mux.
func (s *Server) API() http.Handler { return s.api }

// Peer is the handler of the peer mux; it needs connections whose key
// Config.PeerOf can tell.
func (s *Server) Peer() http.Handler { return s.peer }

func (s *Server) build() error {
	spec, err := api.GetSpec()
	if err != nil {
		return fmt.Errorf("reading the API document: %w", err)
	}
	if s.spec, err = api.GetSpecJSON(); err != nil {
		return fmt.Errorf("reading the API document: %w", err)
	}
	peerSpec, err := peerapi.GetSpec()
	if err != nil {
		return fmt.Errorf("reading the peer API document: %w", err)
	}
	if s.apiOps, err = operationsOf(spec, apiScopes, apiBody); err != nil {
		return err
	}
	if s.docs, err = renderDocs(spec, s.apiOps); err != nil {
		return fmt.Errorf("rendering the API document: %w", err)
	}
	peerOps, err := operationsOf(peerSpec, peerScopes, peerBody)
	if err != nil {
		return err
	}
	s.api, s.peer = s.apiMux(s.apiOps), s.peerMux(peerOps)
	return nil
}

func (s *Server) apiMux(ops operations) chi.Router {
	root := s.root(s.guardHost, s.guardBrowser)
	root.Get("/openapi.json", s.getDocument)
	root.Get("/openapi.yaml", s.getDocument)
	root.Get("/docs", s.getDocs)
	api.HandlerWithOptions(apiHandlers{s}, api.ChiServerOptions{
		BaseRouter:       root.With(s.admit(ops, s.authenticate)),
		ErrorHandlerFunc: s.badParameter,
	})
	return root
}

func (s *Server) peerMux(ops operations) chi.Router {
	root := s.root()
	peerapi.HandlerWithOptions(peerHandlers{s}, peerapi.ChiServerOptions{
		BaseRouter:       root.With(s.admit(ops, s.authenticatePeer)),
		ErrorHandlerFunc: s.badParameter,
	})
	s.mountProxy(root)
	return root
}

// root is a router whose middlewares see every request, also those for which
// there is no route.
func (s *Server) root(guards ...func(http.Handler) http.Handler) chi.Router {
	root := chi.NewRouter()
	root.Use(s.observe, asSent)
	root.Use(guards...)
	root.NotFound(func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, hub.Errorf(hub.CodeNotFound, "there is nothing at this address"))
	})
	root.MethodNotAllowed(s.methodNotAllowed(root))
	return root
}

func (s *Server) httpServer(h http.Handler, headerBytes int) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytes,
		DisableGeneralOptionsHandler: true, // "OPTIONS *" passes the guards too
		ErrorLog:                     slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug),
		ConnContext:                  withConn, ConnState: s.unused.follow,
	}
}

// draining reports whether the hub stops.
func (s *Server) draining() bool {
	return s.ending.isOver()
}

// Drain ends waits, refuses mutations from now on with hub_draining, and has
// Serve accept no more and return once the calls that run have ended. It may be
// called more than once, and before Serve.
func (s *Server) Drain() { s.ending.end() }
