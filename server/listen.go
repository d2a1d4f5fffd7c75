package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/wavehub/wavehub/internal/keystore"
)

// Serve accepts connections on ln until ctx ends or Shutdown is called, and
// returns when everything that it started has ended; it closes ln. After ctx
// handlers have ten seconds to end. One port serves both muxes: a connection
// goes, after its TLS handshake, to the one that its server name selects; one
// that was adopted may go to the peer mux only.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	api, peer := newHandoff(ln.Addr()), newHandoff(ln.Addr())
	var group sync.WaitGroup
	errs := make(chan error, 3)
	defer s.ending.whenOver(cancel)()
	group.Go(func() { errs <- s.apiHTTP.Serve(api) })
	group.Go(func() { errs <- s.peerHTTP.Serve(peer) })
	group.Go(func() {
		<-ctx.Done() // also ends the handshakes
		_, _, _, _ = ln.Close(), s.adopted.Close(), api.Close(), peer.Close()
	})
	group.Go(func() { errs <- s.accept(ctx, s.adopted, s.adoptedTLS(), nil, peer) })
	err := s.accept(ctx, ln, s.tlsConfig(), api, peer)
	cancel()
	rest, done := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer done()
	err = errors.Join(err, s.Shutdown(rest))
	group.Wait()
	return errors.Join(err, served(<-errs), served(<-errs), served(<-errs))
}

func served(err error) error {
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// Shutdown stops accepting and waits until the handlers have ended; when ctx
// ends first their connections are cut. Waits and connections without a request
// end at once. It may be called more than once, and before Serve.
func (s *Server) Shutdown(ctx context.Context) error {
	s.Drain()
	s.unused.close()
	var both sync.WaitGroup
	errs := make([]error, 2)
	for i, srv := range []*http.Server{s.apiHTTP, s.peerHTTP} {
		both.Go(func() {
			if errs[i] = srv.Shutdown(ctx); errs[i] != nil {
				errs[i] = errors.Join(errs[i], srv.Close())
			}
		})
	}
	both.Wait()
	return errors.Join(errs...)
}

// accept hands connections over until ln is closed, and waits for handshakes.
func (s *Server) accept(ctx context.Context, ln net.Listener, config *tls.Config, api, peer *handoff) error {
	var handshakes sync.WaitGroup
	defer handshakes.Wait()
	pause := time.Duration(0)
	for {
		raw, err := ln.Accept()
		if ctx.Err() != nil {
			return closeLate(raw, err)
		}
		if err != nil {
			if pause, err = backOff(ctx, pause, err); err != nil {
				return err
			}
			continue
		}
		pause = 0
		c := &conn{Conn: raw, meter: s.meter}
		if s.meter.addOpen(1) > maxConnections {
			s.cfg.Metrics.Refused("limit")
			_ = c.Close()
			continue
		}
		handshakes.Go(func() { s.handshake(ctx, tls.Server(c, config), api, peer) })
	}
}

// closeLate ends accepting: its error is that the listener was closed.
func closeLate(raw net.Conn, err error) error {
	if err == nil {
		return raw.Close()
	}
	return nil
}

const longestPause = time.Second

// backOff waits after a failure to accept, longer each time: descriptors may
// have run out. A closed listener ends the accepting.
func backOff(ctx context.Context, pause time.Duration, err error) (time.Duration, error) {
	if errors.Is(err, net.ErrClosed) {
		return 0, err
	}
	pause = min(max(2*pause, 5*time.Millisecond), longestPause)
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
	return pause, nil
}

// handshake completes one connection and hands it to its mux.
func (s *Server) handshake(ctx context.Context, c *tls.Conn, api, peer *handoff) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	if err := c.HandshakeContext(ctx); err != nil {
		s.cfg.Metrics.Refused("handshake")
		s.cfg.Log.Debug("a handshake failed", "remote", c.RemoteAddr().String(), "error", err)
		_ = c.Close()
		return
	}
	to := api
	if keystore.Named(c.ConnectionState().ServerName, PeerServerName) {
		to = peer
	}
	to.hand(ctx, c)
}

var errRemote = errors.New("the API is served to this machine only")

// tlsConfig chooses by server name. A remote client that may not use the API
// does not even see its certificate.
func (s *Server) tlsConfig() *tls.Config {
	api, peer := s.cfg.APITLS.Clone(), s.cfg.PeerTLS.Clone()
	api.NextProtos, peer.NextProtos = []string{"http/1.1"}, []string{"http/1.1"}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			if keystore.Named(hello.ServerName, PeerServerName) {
				return peer, nil
			}
			if !s.cfg.APIRemote && !loopback(hello.Conn.RemoteAddr()) {
				s.cfg.Metrics.Refused("remote")
				return nil, errRemote
			}
			return api, nil
		},
	}
}

// Adopt serves the peer mux on a connection that this hub has opened itself, and
// that a peer speaks TLS on as client. It returns when Serve, which may begin
// later, has taken c, or has ended or ctx has, and c is closed.
func (s *Server) Adopt(ctx context.Context, c net.Conn) { s.adopted.hand(ctx, c) }

var errAdopted = errors.New("on a connection of this hub's own only peers are served")

// adoptedTLS knows the peers' server name only: whoever is at the other end, it
// is not this machine.
func (s *Server) adoptedTLS() *tls.Config {
	peer := s.cfg.PeerTLS.Clone()
	peer.NextProtos = []string{"http/1.1"}
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			if !keystore.Named(hello.ServerName, PeerServerName) {
				s.cfg.Metrics.Refused("remote")
				return nil, errAdopted
			}
			return peer, nil
		},
	}
}

func loopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
