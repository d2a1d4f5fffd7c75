package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/wavehub/wavehub/internal/hub"
)

const writeTimeout = 10 * time.Second

// dialSocket opens a websocket over t. Compression is off, redirects are not
// followed.
func dialSocket(ctx context.Context, t http.RoundTripper, path, protocol string) (*websocket.Conn, error) {
	client := &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ws, resp, err := websocket.Dial(ctx, "https://"+ServerName+path, &websocket.DialOptions{
		HTTPClient: client, Subprotocols: []string{protocol}, CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		if _, ok := errors.AsType[*LinkError](err); ok || resp == nil {
			return nil, atStage(StageHello, bare(err))
		}
		return nil, atStage(StageHello, refusedBy(resp))
	}
	if ws.Subprotocol() != protocol {
		ws.CloseNow()
		return nil, &LinkError{StageContract, hub.Errorf(hub.CodeCapabilityUnsupported, "the peer does not speak %s", protocol)}
	}
	return ws, nil
}

// socket carries pairing messages as text.
type socket struct{ ws *websocket.Conn }

func newSocket(ws *websocket.Conn) socket {
	ws.SetReadLimit(maxPairMessage)
	return socket{ws}
}

func (s socket) Send(ctx context.Context, msg []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return s.ws.Write(ctx, websocket.MessageText, msg)
}

func (s socket) Receive(ctx context.Context) ([]byte, error) {
	kind, msg, err := s.ws.Read(ctx)
	if err == nil && kind != websocket.MessageText {
		err = errors.New("a binary message while pairing")
	}
	return msg, err
}

// RelayProtocol is the websocket subprotocol of the relay.
const RelayProtocol = "wavehub.relay.1"

// maxFrame is the read limit of a relay socket, in bytes.
const maxFrame = 1 << 20

// Conn carries relay frames; it is what the relay takes.
type Conn = interface {
	ReadFrame(ctx context.Context) ([]byte, error)
	WriteFrame(ctx context.Context, frame []byte) error
	Close() error
}

// frames carries relay frames as binary messages.
type frames struct {
	ws   *websocket.Conn
	over string
	came *atomic.Int64 // bytes of messages
}

func newFrames(ws *websocket.Conn, over string) frames {
	ws.SetReadLimit(maxFrame)
	return frames{ws, over, &atomic.Int64{}}
}

// Transport is what the socket runs over.
func (f frames) Transport() string { return f.over }

// ReadFrame returns the next frame; a larger one ends the connection.
func (f frames) ReadFrame(ctx context.Context) ([]byte, error) {
	kind, raw, err := f.read(ctx)
	switch {
	case websocket.CloseStatus(err) == websocket.StatusNormalClosure:
		return nil, io.EOF
	case err == nil && kind != websocket.MessageBinary:
		return nil, errors.New("a text message on a relay socket")
	}
	return raw, err
}

func (f frames) read(ctx context.Context) (websocket.MessageType, []byte, error) {
	kind, r, err := f.ws.Reader(ctx)
	if err != nil {
		return kind, nil, err
	}
	raw, err := io.ReadAll(io.TeeReader(r, tally{f.came}))
	return kind, raw, err
}

// tally counts what is written to it.
type tally struct{ n *atomic.Int64 }

// Write counts p.
func (t tally) Write(p []byte) (int, error) {
	t.n.Add(int64(len(p)))
	return len(p), nil
}

// Received counts the bytes of messages that have come, whole or not.
func (f frames) Received() int64 { return f.came.Load() }

// WriteFrame sends one frame within ten seconds: a slow reader is cut off.
func (f frames) WriteFrame(ctx context.Context, frame []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return f.ws.Write(ctx, websocket.MessageBinary, frame)
}

// Vet looks at the key of a relay socket once more, with its first frame: by then
// whoever ends the peer's sessions finds this one, and before it none of them.
func (s *Service) Vet(conn Conn, key string) Conn {
	return &vetted{conn, func(ctx context.Context) error { _, err := s.Admit(ctx, key); return err }}
}

// vetted is such a socket; still is nil once it has answered.
type vetted struct {
	Conn
	still func(context.Context) error
}

// Transport is what the socket runs over.
func (v *vetted) Transport() string {
	if t, ok := v.Conn.(interface{ Transport() string }); ok {
		return t.Transport()
	}
	return ""
}

// ReadFrame returns the next frame.
func (v *vetted) ReadFrame(ctx context.Context) ([]byte, error) {
	raw, err := v.Conn.ReadFrame(ctx)
	if err == nil && v.still != nil {
		err, v.still = v.still(ctx), nil
	}
	return raw, err
}

// Close ends the connection at once.
func (f frames) Close() error { return f.ws.CloseNow() }

// AcceptRelay upgrades a request of /peer/v1/relay. The connection outlives
// the request's context; it ends with Close. On an error the answer has been
// written.
func AcceptRelay(w http.ResponseWriter, r *http.Request) (Conn, error) {
	ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{
		Subprotocols: []string{RelayProtocol}, CompressionMode: websocket.CompressionDisabled,
	})
	if err != nil {
		return nil, fmt.Errorf("accepting a relay socket: %w", err)
	}
	if ws.Subprotocol() != RelayProtocol {
		err := hub.Errorf(hub.CodeCapabilityUnsupported, "the peer does not speak %s", RelayProtocol)
		return nil, errors.Join(err, ws.Close(websocket.StatusPolicyViolation, "subprotocol"))
	}
	return newFrames(ws, TransportOf(r)), nil
}
