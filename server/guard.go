package server

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/wavehub/wavehub/internal/hub"
)

func hostSet(hosts []string) map[string]bool {
	set := map[string]bool{"localhost": true}
	for _, h := range hosts {
		set[hostOf(h)] = true
	}
	return set
}

// hostOf is the lower-case name or address of host[:port].
func hostOf(hostport string) string {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// guardHost refuses names that are not this hub's: a page that has its own
// name resolve to this address.
func (s *Server) guardHost(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := hostOf(r.Host)
		if ip := net.ParseIP(host); !s.hosts[host] && (ip == nil || !ip.IsLoopback()) {
			s.fail(w, r, hub.Errorf(hub.CodeHostForbidden, "the Host header names another host"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// documentPaths show no data; browsers may read them.
var documentPaths = []string{"/openapi.json", "/openapi.yaml", "/docs"}

// guardBrowser refuses what only browsers send.
func (s *Server) guardBrowser(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		document := r.Method == http.MethodGet && slices.Contains(documentPaths, r.URL.Path)
		if name := browserHeader(r.Header); name != "" && !document {
			s.fail(w, r, hub.Errorf(hub.CodeOriginForbidden, "a request with the header %s comes from a browser", name))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func browserHeader(h http.Header) string {
	for _, name := range []string{"Origin", "Sec-Fetch-Site", "Sec-Fetch-Dest", "Sec-Fetch-User"} {
		if _, ok := h[name]; ok {
			return name
		}
	}
	for _, mode := range h["Sec-Fetch-Mode"] {
		if mode != "cors" { // what Node's fetch sends
			return "Sec-Fetch-Mode"
		}
	}
	return ""
}

// asSent has a request routed by its path as it was sent, so that a parameter is
// unescaped exactly once, also one that has a percent sign.
func asSent(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.RawPath = r.URL.EscapedPath()
		next.ServeHTTP(w, r)
	})
}

// methodNotAllowed answers 405 with the methods that the path has.
func (s *Server) methodNotAllowed(root chi.Router) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var allowed []string
		for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			if root.Match(chi.NewRouteContext(), m, r.URL.RawPath) {
				allowed = append(allowed, m)
			}
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		s.fail(w, r, hub.Errorf(hub.CodeMethodNotAllowed, "this address takes %s", strings.Join(allowed, " and ")))
	}
}

// admit is the guards of a request whose route is known, in their order.
func (s *Server) admit(ops operations, authenticate func(*http.Request, *call) error) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := s.admitted(w, r, ops, authenticate); err != nil {
				s.fail(w, r, err)
				return
			}
			if callOf(r).hub != "" {
				s.forward(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

func (s *Server) admitted(w http.ResponseWriter, r *http.Request, ops operations, authenticate func(*http.Request, *call) error) error {
	c := callOf(r)
	c.op = ops[r.Method+" "+chi.RouteContext(r.Context()).RoutePattern()]
	if c.op == nil {
		return fmt.Errorf("the route %s %s is in no document", r.Method, chi.RouteContext(r.Context()).RoutePattern())
	}
	if key := hub.RequestID(r.Header.Get("Idempotency-Key")); c.op.mutates() && hub.ValidID(hub.PrefixRequest, string(key)) {
		c.key = key // a refusal by the guards names it too
	}
	if c.op.large() {
		return s.admittedLarge(w, r, authenticate)
	}
	if err := receiveBody(w, r, c); err != nil {
		return err
	}
	if c.op.allowed&anyone != 0 {
		return here(r.Header, c.op)
	}
	if err := authenticate(r, c); err != nil {
		return err
	}
	if err := s.admitMutation(c); err != nil {
		return err
	}
	return c.op.check(r, c)
}

// admittedLarge reads the body last: what is large is taken from those only whose
// it is to send.
func (s *Server) admittedLarge(w http.ResponseWriter, r *http.Request, authenticate func(*http.Request, *call) error) error {
	c := callOf(r)
	if err := authenticate(r, c); err != nil {
		return err
	}
	if err := s.admitMutation(c); err != nil {
		return err
	}
	if err := receiveBody(w, r, c); err != nil {
		return err
	}
	return c.op.check(r, c)
}

// admitMutation refuses mutations while the hub stops and over their rate.
func (s *Server) admitMutation(c *call) error {
	if !c.op.mutates() {
		return nil
	}
	if s.draining() {
		return errDraining
	}
	return s.limiter.take(c.principal)
}
