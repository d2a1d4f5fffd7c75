package peer

import (
	"context"
	"errors"
	"net/url"

	"github.com/wavehub/wavehub/internal/hub"
)

// unanswered judges an error of the transport. Once a connection was handed
// out the request counts as sent.
func (c *Client) unanswered(ctx context.Context, peer hub.PeerID, err error, sent bool) error {
	if sent {
		return c.lost(ctx, peer, err)
	}
	if e, ok := errors.AsType[*hub.Error](err); ok {
		return e
	}
	return unavailable(c.nameOf(ctx, peer), err)
}

// lostError shows its cause as text only: a code in it is not the outcome.
type lostError struct {
	peer string
	err  error
}

// Error tells an answer that did not come from a request that was sent again,
// because its first connection had ended, and found nobody.
func (e *lostError) Error() string {
	if _, ok := errors.AsType[*LinkError](e.err); ok {
		return e.peer + " may have got the request and cannot be reached any more: " + e.err.Error()
	}
	return "the answer of " + e.peer + " was lost: " + e.err.Error()
}

func (e *lostError) Is(target error) bool { return target == ErrAnswerLost }

func (c *Client) lost(ctx context.Context, peer hub.PeerID, err error) error {
	return lostOf(c.nameOf(ctx, peer), err)
}

func lostOf(who string, err error) error { return &lostError{who, bare(err)} }

func unavailable(peer string, err error) error {
	return &hub.Error{Code: hub.CodeRemoteRuntimeUnavailable, Message: peer + " cannot be reached", Err: bare(err)}
}

// nameOf is how this hub calls the peer, also when the call's time is over.
func (c *Client) nameOf(ctx context.Context, peer hub.PeerID) string {
	p, err := c.links.cfg.Peers.Get(context.WithoutCancel(ctx), peer)
	if err != nil || p.Name == "" {
		return "the peer"
	}
	return p.Name
}

// bare is an error of a link without the name by which peers call each other
// inside it, which is no address: with the stage, or what the transport met.
func bare(err error) error {
	if e, ok := errors.AsType[*LinkError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
