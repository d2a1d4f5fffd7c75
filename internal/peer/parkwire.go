package peer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/openapi/peerapi"
)

// ParkProtocol is what a worker hub upgrades a request of /peer/v1/park to. On
// a parked stream the home sends single bytes, and the worker hub answers each
// with the same byte. After the answer to byteTaken the stream carries what the
// home wants: TLS, with the home as client.
const ParkProtocol = "wavehub.park.1"

// The bytes of a parked stream. byteLeft is the worker hub's own: it parks no
// more until further notice.
const (
	bytePing  = 'p'
	byteTaken = 't'
	byteLeft  = 'l'
)

// The requests with which a connection begins: the hello, and to park it.
const (
	HelloPath = "/peer/v1/hello"
	ParkPath  = "/peer/v1/park"
)

const parkPing = 15 * time.Second

// patience is how long a parked stream may be silent: two pings are missed.
func patience(ping time.Duration) time.Duration { return 2*ping + ping/2 }

// buffered is a connection whose first bytes may have been read already.
type buffered struct {
	net.Conn
	r *bufio.Reader
}

// Read reads what is buffered, then from the connection.
func (b buffered) Read(p []byte) (int, error) { return b.r.Read(p) }

// NetConn is the connection alone.
func (b buffered) NetConn() net.Conn { return b.Conn }

func readByte(conn net.Conn, limit time.Duration) (byte, error) {
	if err := conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return 0, err
	}
	var b [1]byte
	for {
		n, err := conn.Read(b[:])
		if n == 1 || err != nil {
			return b[0], err
		}
	}
}

func writeByte(conn net.Conn, b byte, limit time.Duration) error {
	if err := conn.SetWriteDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	_, err := conn.Write([]byte{b})
	return err
}

// askPark asks the home on conn to keep the connection as a parked stream.
func askPark(ctx context.Context, conn net.Conn, limit time.Duration) (net.Conn, error) {
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return nil, err
	}
	req, err := peerapi.NewPeerParkRequest("https://" + ServerName)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", ParkProtocol)
	if err := req.Write(conn); err != nil {
		return nil, err
	}
	br := bufio.NewReader(conn)
	resp, err := http.ReadResponse(br, req)
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode != http.StatusSwitchingProtocols:
		return nil, refusedBy(resp)
	case resp.Header.Get("Upgrade") != ParkProtocol:
		return nil, fmt.Errorf("the peer upgrades to %.64q", resp.Header.Get("Upgrade"))
	}
	return buffered{conn, br}, conn.SetDeadline(time.Time{})
}

// takePark upgrades a request of a peer that parks. On an error the answer has
// been written.
func takePark(w http.ResponseWriter, r *http.Request) (net.Conn, error) {
	if r.Header.Get("Upgrade") != ParkProtocol {
		err := hub.Invalid("Upgrade", "must be %s", ParkProtocol)
		writeProblem(w, err)
		return nil, err
	}
	w.Header().Set("Connection", "Upgrade")
	w.Header().Set("Upgrade", ParkProtocol)
	w.WriteHeader(http.StatusSwitchingProtocols)
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, fmt.Errorf("taking a parked stream over: %w", err)
	}
	return buffered{conn, rw.Reader}, nil
}

var errParkProtocol = errors.New("a breach of the park protocol")
