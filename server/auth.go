package server

import (
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
)

// The headers that prove a binding; they count with the operator's token only.
const (
	contextHeader  = "Wavehub-Context"
	consumerHeader = "Wavehub-Consumer"
	maxContext     = 512

	// generationHeader says which loop of an attached worker calls.
	generationHeader = "Wavehub-Generation"
)

// errToken is the one answer to every credential that is not valid: it tells
// nothing of what was wrong.
var errToken = hub.Errorf(hub.CodeInvalidToken, "the credential is missing or not valid")

// authenticate finds out who calls, then whether the operation is theirs. A
// failed credential is answered late, as far as there is room to wait; a valid
// one never is.
func (s *Server) authenticate(r *http.Request, c *call) error {
	p, err := s.principal(r)
	if hub.IsCode(err, hub.CodeInvalidToken) {
		s.stall(r)
	}
	if err != nil {
		return err
	}
	c.principal = p
	if err := c.op.permits(p); err != nil {
		return err
	}
	c.hub, err = elsewhere(r.Header, c)
	return err
}

func (s *Server) stall(r *http.Request) {
	select {
	case s.failures <- struct{}{}:
		defer func() { <-s.failures }()
	default:
		return
	}
	t := time.NewTimer(s.delay)
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.Context().Done():
	}
}

func (s *Server) principal(r *http.Request) (hub.Principal, error) {
	token, kind := s.bearer(r.Header)
	if token == "" {
		return hub.Principal{}, errToken
	}
	var p hub.Principal
	err := s.cfg.Store.View(r.Context(), func(rx store.Rx) (err error) {
		p, err = s.resolve(rx, token, kind, r.Header)
		return err
	})
	return p, err
}

// bearer returns the request's one token if it has the shape of a credential.
func (s *Server) bearer(h http.Header) (token string, kind store.CredentialKind) {
	if len(h["Authorization"]) != 1 {
		return "", ""
	}
	scheme, token, _ := strings.Cut(h["Authorization"][0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", ""
	}
	for prefix, kind := range map[string]store.CredentialKind{
		"whu_": store.CredOperator, "whr_": store.CredReader, "whd_": store.CredDispatch, "whw_": store.CredWorker,
	} {
		if s.cfg.Tokens.CheckToken(prefix, token) {
			return token, kind
		}
	}
	return "", ""
}

func (s *Server) resolve(rx store.Rx, token string, kind store.CredentialKind, h http.Header) (hub.Principal, error) {
	sum := s.cfg.Tokens.Sum(token)
	cred, ok, err := rx.Credential(sum)
	switch {
	case err != nil:
		return hub.Principal{}, err
	case !ok || cred.Kind != kind:
		return hub.Principal{}, errToken
	}
	p := hub.Principal{Kind: hub.PrincipalKind(cred.Kind), ID: cred.Subject, Credential: sum}
	if cred.Kind == store.CredDispatch {
		return p, s.asCoordinator(rx, &p, cred)
	}
	if cred.Kind == store.CredWorker {
		p.Generation, err = generationOf(h)
		return p, err
	}
	if cred.Kind != store.CredOperator {
		return p, nil
	}
	if p.Context, err = callerContext(h); err != nil {
		return hub.Principal{}, err
	}
	p.Consumer, err = s.consumer(rx, h)
	return p, err
}

// asCoordinator gives a worker that may coordinate its context. It is never read
// from a header: it is the terminal in which this hub started the worker.
func (s *Server) asCoordinator(rx store.AttachmentReader, p *hub.Principal, cred store.Credential) error {
	a, ok, err := rx.Attachment(cred.Home, hub.DispatchID(cred.Subject))
	if err != nil || !ok || !a.Spec.MayCoordinate {
		return err
	}
	p.Coordinator, p.Context = true, run.ContextOf(a)
	return nil
}

// generationOf is the generation of an attached worker's loop, 0 for none.
func generationOf(h http.Header) (int64, error) {
	v := h.Get(generationHeader)
	if v == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 1 || len(h[generationHeader]) > 1 {
		return 0, hub.Invalid(generationHeader, "must be one number, as attach returned it")
	}
	return n, nil
}

func callerContext(h http.Header) (string, error) {
	v := h.Get(contextHeader)
	printable := utf8.ValidString(v) && strings.IndexFunc(v, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
	if len(h[contextHeader]) > 1 || len(v) > maxContext || !printable {
		return "", hub.Invalid(contextHeader, "must be one value of at most %d printable characters", maxContext)
	}
	return v, nil
}

// consumer resolves a consumer token; one that has been fenced still stands
// for its generation, so that the use-case can say so. One that is not known
// here, another hub's for instance, proves nothing and forbids nothing: who
// needs a consumer is told so.
func (s *Server) consumer(rx store.CredentialReader, h http.Header) (hub.ConsumerProof, error) {
	values := h[consumerHeader]
	if len(values) == 0 {
		return hub.ConsumerProof{}, nil
	}
	if len(values) > 1 {
		return hub.ConsumerProof{}, hub.Invalid(consumerHeader, "must be one value")
	}
	cred, ok, err := rx.Credential(s.cfg.Tokens.Sum(values[0]))
	if err != nil || !ok || cred.Kind != store.CredConsumer {
		return hub.ConsumerProof{}, err
	}
	return hub.ConsumerProof{Run: hub.RunID(cred.Subject), Generation: cred.Generation}, nil
}

// authenticatePeer takes the key that the connection has proved. A key that is
// not paired reaches pairing only.
func (s *Server) authenticatePeer(r *http.Request, c *call) error {
	if c.op.allowed&strangers != 0 {
		return nil
	}
	p, known, err := s.cfg.PeerOf(r)
	switch {
	case err != nil:
		return err
	case !known:
		return errToken
	case !p.State.Trusted():
		return hub.Errorf(hub.CodePeerRevoked, "the pairing is %s", p.State)
	}
	c.peer = p
	c.principal = hub.Principal{Kind: hub.PeerKey, ID: p.Lineage, Credential: string(p.ID)}
	return c.op.permits(c.principal)
}
