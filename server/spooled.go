package server

import (
	"context"
	"net/http"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/openapi/api"
)

// SpooledOperation is the one operation that a worker may spool.
const SpooledOperation = "sendMessage"

// Spooled is a request that a worker wrote down because no hub answered. Token is
// the capability that it was proven with.
type Spooled struct {
	Token     string
	Key       hub.RequestID
	Operation string
	Body      []byte
}

// Deliver takes a spooled request as if it had come over HTTP: the same checks,
// principal, receipt and use-case. One that did come, and whose answer was lost,
// is recognised by its receipt. The error is the problem that would have been
// answered. Rates are not limited: the spool is.
func (s *Server) Deliver(ctx context.Context, in Spooled) error {
	c, err := s.spooledCall(in)
	if err != nil {
		return err
	}
	err = s.cfg.Store.View(ctx, func(rx store.Rx) (err error) {
		c.principal, err = s.resolve(rx, in.Token, store.CredDispatch, http.Header{})
		return err
	})
	if err != nil {
		return err
	}
	if err := c.op.permits(c.principal); err != nil {
		return err
	}
	body, err := decode[api.MessageSend](c)
	if err != nil {
		return err
	}
	if body.Type == api.MessageSendTypeQuestion {
		return hub.Invalid("type", "a question is not spooled: nobody would wait for its answer")
	}
	q, err := receipt.New(c.principal, in.Key, c.op.id, arguments(c, "", "", ""))
	if err == nil {
		_, err = s.cfg.Dispatch.Send(ctx, q, sendInput(body))
	}
	return err
}

// spooledCall checks what the guards check of a body.
func (s *Server) spooledCall(in Spooled) (*call, error) {
	if in.Operation != SpooledOperation || in.Key == "" {
		return nil, hub.Invalid("operation", "only %s is spooled, under a request id", SpooledOperation)
	}
	c := &call{op: s.apiOps[http.MethodPost+" "+"/v1/messages"], raw: in.Body}
	if int64(len(in.Body)) > c.op.maxBody {
		return nil, tooLarge(c.op)
	}
	var err error
	if c.value, err = parseStrict(in.Body); err != nil {
		return nil, err
	}
	return c, c.op.checkBody(c)
}

// drained is what a worker spooled taken before a message that it sends now.
func (s *Server) drained(ctx context.Context, p hub.Principal) error {
	if p.Kind != hub.DispatchCap {
		return nil
	}
	return s.cfg.Unspool(ctx, hub.DispatchID(p.ID))
}
