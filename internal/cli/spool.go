package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/id"
	"github.com/wavehub/wavehub/internal/safefile"
	"github.com/wavehub/wavehub/internal/spool"
)

// spoolOperation is the one operation that is spooled.
const spoolOperation = "sendMessage"

// spoolWait bounds the wait for a spool that the hub drains or another command
// appends to.
const spoolWait = 30 * time.Second

// spooled is how a message ends that no hub has answered and that is on the disk
// under its request id: no error to who sent it.
type spooled string

func (s spooled) Error() string { return "spooled as " + string(s) }

// courier brings one message of a Dispatch to its hub or into its spool, always
// under the same request id.
type courier struct {
	a       *app
	s       *session
	in      client.MessageSend
	request string
	body    *json.RawMessage
}

// hand sends a message. Inside a Dispatch it goes behind what is spooled already,
// and into the spool when no hub answers it: then the error is spooled.
func (a *app) hand(ctx context.Context, s *session, in client.MessageSend, body *json.RawMessage) (*client.SendResult, error) {
	if !s.spools(in) {
		return s.Send(ctx, in, a.options(body)...)
	}
	c := courier{a, s, in, cmp.Or(a.flags.retryRequest, id.New(requestPrefix)), body}
	switch waits, err := c.behind(ctx); {
	case err != nil:
		return nil, err
	case waits:
		return nil, spooled(c.request)
	}
	out, err := c.send(ctx)
	if !unanswered(ctx, err) {
		return out, err
	}
	moved, failed := c.reread()
	if moved {
		if out, err = c.send(ctx); !unanswered(ctx, err) {
			return out, err
		}
	}
	return nil, c.spool(ctx, err, failed)
}

// spools reports whether a message may be spooled: one of a Dispatch whose hub
// gave it a spool, and no question, whose answer nobody would wait for.
func (s *session) spools(in client.MessageSend) bool {
	return s.dispatch != nil && s.dispatch.Spool != "" && in.Type != client.MessageSendTypeQuestion
}

func (c courier) send(ctx context.Context) (*client.SendResult, error) {
	return c.s.Send(ctx, c.in, client.WithBody(c.body), client.WithRequestID(c.request))
}

// unanswered reports whether no whole answer came, or one that only says that the
// hub is about to be gone. Whoever interrupts a command wants it to end.
func unanswered(ctx context.Context, err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	if !ok || ctx.Err() != nil {
		return false
	}
	switch e.Code {
	case client.CodeHubUnreachable, client.CodeHubIdentityMismatch, client.CodeHubDraining:
		return true
	}
	return e.Code == client.CodeOutcomeUnknown && e.Status == 0
}

// reread reads the capability once more: a hub that was started again may be at
// another address, which is tried then.
func (c *courier) reread() (moved bool, err error) {
	file, err := readCapability(c.s.path)
	if err != nil {
		return false, err
	}
	was := *c.s.dispatch
	c.s.dispatch = &file
	if file.URL == was.URL && file.Fingerprint == was.Fingerprint && file.Token == was.Token {
		return false, nil
	}
	next, err := c.a.workerClient(file, c.s.timeout)
	if err != nil {
		return false, err
	}
	c.s.Close()
	c.s.Client = next
	return true, nil
}

// behind appends to a spool that is not empty: what is sent now must not overtake
// what was sent before. It asks no hub.
func (c courier) behind(ctx context.Context) (bool, error) {
	place, err := spool.PlaceOf(c.s.dispatch.Spool)
	if err != nil {
		return false, nil // a spool of another hub's making: it is not looked into
	}
	if waits, err := spool.Pending(place); err != nil || !waits {
		return false, c.failed(err, nil)
	}
	line, err := c.line()
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, spoolWait)
	defer cancel()
	appended, err := spool.AppendBehind(ctx, place, c.s.dispatch.Token, line)
	return appended, c.failed(err, nil)
}

// spool appends what no hub answered; it always returns an error, which is
// spooled where that worked. broken is why the capability could not be read again.
func (c courier) spool(ctx context.Context, cause, broken error) error {
	if broken != nil {
		return c.failed(broken, cause)
	}
	line, err := c.line()
	if err != nil {
		return err
	}
	place, err := spool.PlaceOf(c.s.dispatch.Spool)
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, spoolWait)
		defer cancel()
		err = spool.Append(ctx, place, c.s.dispatch.Token, line)
	}
	if err != nil {
		return c.failed(err, cause)
	}
	return spooled(c.request)
}

// failed is the error for a message that is neither answered nor spooled. Where a
// part of it may have got anywhere its outcome is unknown; else nothing happened.
func (c courier) failed(err, cause error) error {
	if err == nil {
		return nil
	}
	code, why := client.CodeHubUnreachable, "earlier messages wait in the spool"
	e, sent := errors.AsType[*client.Error](cause)
	if sent {
		why = e.Error()
	}
	if sent && e.Code == client.CodeOutcomeUnknown || errors.Is(err, safefile.ErrUncertain) {
		code = client.CodeOutcomeUnknown
	}
	out := client.Errorf(code, "%s; and it cannot be spooled: %v", why, err)
	out.Status, out.RequestID, out.Err = 0, c.request, err
	out.Hint = "repeat it under the same request id when the hub is back: it has at most one effect"
	return out
}

// line is the message as a spooled line, if a hub would take it: what it would
// refuse is refused here, where somebody still reads the answer.
func (c courier) line() (spool.Line, error) {
	if err := checkSpooled(c.in, *c.s.dispatch); err != nil {
		return spool.Line{}, err
	}
	if !hub.ValidID(hub.PrefixRequest, c.request) {
		return spool.Line{}, usage("Idempotency-Key", "--retry-request must be req_ and 26 characters as they were printed")
	}
	body, err := json.Marshal(c.in)
	if err != nil {
		return spool.Line{}, fmt.Errorf("encoding the message: %w", err)
	}
	return spool.Line{Request: hub.RequestID(c.request), Operation: spoolOperation, Body: body}, nil
}

// printSpooled shows a message that is on the disk.
func (a *app) printSpooled(in client.MessageSend, request string) error {
	raw, err := json.Marshal(map[string]any{
		"message": map[string]any{"message_id": nil, "seq": 0}, "state": "spooled", "verdict": nil,
		"mutation": map[string]any{"request_id": request, "replayed": false},
	})
	if err != nil {
		return err
	}
	a.say("no hub answered: the %s is on disk and goes out when the hub is back", in.Type)
	return a.emit(raw, func(p *printer) { p.line("%s  spooled", request) })
}
