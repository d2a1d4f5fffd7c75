package server

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/work"
	"github.com/wavehub/wavehub/openapi/api"
)

// hubHeader names the paired hub that a request is for, instead of this one.
const hubHeader = "Wavehub-Hub"

// Forwarded is a request as another hub is to get it: Path is of the API and
// escaped, Body is JSON or empty. Key is the request id of a mutation, "" for a
// read. Nothing else of the caller's request travels, its credential least.
type Forwarded struct {
	Method, Path, Query string
	Key                 string
	Body                []byte
}

// Returned is the other hub's answer: a status below 300 and a JSON document
// without commands. Its refusals are errors.
type Returned struct {
	Status int
	Body   []byte
}

// elsewhere is the hub that a request is for, "" for this one. Only the operator
// may send one on, and only what the other hub does for a peer.
func elsewhere(h http.Header, c *call) (string, error) {
	names := h[hubHeader]
	switch {
	case len(names) == 0:
		return "", nil
	case c.principal.Kind != hub.Operator:
		return "", hub.Errorf(hub.CodeOutOfScope, "the credential of a %s does not reach other hubs", c.principal.Kind)
	case len(names) > 1 || names[0] == "":
		return "", hub.Invalid(hubHeader, "must be one name")
	case c.op.allowed&peer == 0:
		return "", notThrough(c.op)
	}
	return names[0], nil
}

// here refuses to send on what needs no credential.
func here(h http.Header, o *operation) error {
	if _, given := h[hubHeader]; given {
		return notThrough(o)
	}
	return nil
}

func notThrough(o *operation) error {
	e := hub.Errorf(hub.CodeOutOfScope, "%s is not done through another hub", o.id)
	e.Hint = "ask on that hub itself, or leave " + hubHeader + " (--hub) away"
	return e
}

// forward answers with what the other hub answers. The guards have passed the
// request, so that it is whole, within its limits, and in the form of the document.
func (s *Server) forward(w http.ResponseWriter, r *http.Request) {
	c := callOf(r)
	q := Forwarded{Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Body: c.raw}
	if c.op.mutates() {
		if q.Key = r.Header.Get("Idempotency-Key"); q.Key == "" {
			q.Key = string(hub.NewRequestID())
		}
		c.key = hub.RequestID(q.Key) // what became of it can be asked for
	}
	s.patiently(w, r, func(ctx context.Context) (int, any, error) {
		out, err := s.cfg.Forward(ctx, c.hub, q)
		return out.Status, json.RawMessage(out.Body), err
	})
}

// proxyPrefix is where the peer mux serves the API's operations to paired hubs.
const proxyPrefix = "/peer/v1/proxy"

// mountProxy serves the operations of the API to peers: the same handlers behind
// the same guards, with the connection's key as the only credential.
func (s *Server) mountProxy(root chi.Router) {
	api.HandlerWithOptions(apiHandlers{s}, api.ChiServerOptions{
		BaseURL:          proxyPrefix,
		BaseRouter:       root.With(s.admit(proxied(s.apiOps), s.authenticateProxied)),
		ErrorHandlerFunc: s.badParameter,
	})
}

// proxied are the operations as a peer has them: nothing of them is anybody
// else's, and no body is larger than a peer may send.
func proxied(ops operations) operations {
	out := operations{}
	for _, o := range ops {
		p := *o
		p.allowed, p.maxBody = p.allowed&peer, min(p.maxBody, otherBody)
		out[p.method+" "+proxyPrefix+p.pattern] = &p
	}
	return out
}

// authenticateProxied is authenticatePeer for operations of the API: the peer
// needs the grant for them, and sends nothing on to a third hub. Its grants are
// looked at again where they bound what is seen or done.
func (s *Server) authenticateProxied(r *http.Request, c *call) error {
	if err := s.authenticatePeer(r, c); err != nil {
		return err
	}
	if _, given := r.Header[hubHeader]; given {
		return hub.Errorf(hub.CodeOutOfScope, "a peer's request is not sent on to another hub")
	}
	return work.MayProxy(c.peer)
}

// held runs read of a terminal that the caller may read, and looks again when it
// has waited: what was taken away meanwhile is not shown.
func (s *Server) held(ctx context.Context, r *http.Request, id hub.TerminalID, read func(context.Context) error) error {
	who := callOf(r).principal
	if err := s.cfg.Work.MayHold(ctx, who, id); err != nil {
		return err
	}
	if err := read(ctx); err != nil {
		return err
	}
	return s.cfg.Work.MayHold(ctx, who, id)
}

// showOwn shows a peer one of its own Dispatches. How it ends its home knows.
func (s *Server) showOwn(w http.ResponseWriter, r *http.Request, id hub.DispatchID, waitMS int64) {
	if waitMS != 0 {
		s.fail(w, r, hub.Invalid("wait_ms", "a Dispatch is waited for on its home"))
		return
	}
	shown, err := s.cfg.Work.ShowOwn(r.Context(), callOf(r).principal, id)
	s.reply(w, r, http.StatusOK, dispatchDetail(shown), err)
}
