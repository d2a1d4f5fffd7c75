package relay

import (
	"context"
	"errors"
	"fmt"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/relay/wire"
)

// Stages of a connection that this package adds to those of Links.
const (
	StageHello    = "hello"
	StageContract = "contract"
	StageRelay    = "relay"
)

// ProtocolError is a peer's breach of the protocol; it ends the session only.
type ProtocolError struct{ Text string }

// Error returns the text.
func (e *ProtocolError) Error() string { return "relay protocol: " + e.Text }

func protocolf(format string, args ...any) error {
	return &ProtocolError{fmt.Sprintf(format, args...)}
}

// PeerGone is the goodbye of the peer. Both fields are the peer's words.
type PeerGone struct{ Code, Text string }

// Error returns both.
func (e *PeerGone) Error() string {
	return fmt.Sprintf("the peer ended the link: %s: %s", e.Code, e.Text)
}

// Revoked reports whether the peer has left because it has removed this hub.
func Revoked(err error) bool {
	gone, ok := errors.AsType[*PeerGone](err)
	return ok && gone.Code == string(hub.CodePeerRevoked)
}

// codeOf is the code of a link's failure. Of the codes that a peer names only the
// end of the pairing is taken.
func codeOf(err error) hub.Code {
	if Revoked(err) {
		return hub.CodePeerRevoked
	}
	if gone, ok := errors.AsType[*PeerGone](err); ok && gone.Code == string(hub.CodePeerDuplicate) {
		return hub.CodePeerDuplicate
	}
	return hub.CodeOf(err)
}

type stageError struct {
	stage string
	err   error
}

func (e *stageError) Error() string { return e.stage + ": " + e.err.Error() }
func (e *stageError) Unwrap() error { return e.err }
func (e *stageError) Stage() string { return e.stage }

func staged(stage string, err error) error {
	if err == nil {
		return nil
	}
	return &stageError{stage, err}
}

// stageOf returns the outermost stage that err carries, StageRelay without.
func stageOf(err error) string {
	var s interface {
		error
		Stage() string
	}
	if errors.As(err, &s) {
		return s.Stage()
	}
	return StageRelay
}

// goodbyeFor tells the peer why, without our insides.
func goodbyeFor(err error) wire.Goodbye {
	var proto *ProtocolError
	var e *hub.Error
	switch {
	case errors.As(err, &proto):
		return wire.Goodbye{Code: "protocol", Text: proto.Text}
	case errors.Is(err, errTwin):
		return wire.Goodbye{Code: string(errTwin.Code), Text: errTwin.Message}
	case errors.As(err, &e):
		return wire.Goodbye{Code: string(e.Code), Text: e.Code.Info().Title}
	case errors.Is(err, context.Canceled):
		return wire.Goodbye{Code: string(hub.CodeHubDraining), Text: "the hub is stopping"}
	}
	return wire.Goodbye{Code: string(hub.CodeInternal), Text: "the session failed"}
}
