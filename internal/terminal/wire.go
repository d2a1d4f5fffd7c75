package terminal

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"github.com/wavehub/wavehub/internal/hub"
)

// ProtocolVersion is that of Hello. Later versions only add operations and
// fields: a hub talks to the supervisors that an older hub started. Version 2
// added input, resize, watch, and the pseudo terminal in state.
const ProtocolVersion = 2

// liveVersion is the first that knows input, resize and watch.
const liveVersion = 2

// maxFrame bounds kind and payload of one frame, in bytes.
const maxFrame = 1 << 20

// maxInput bounds the data of one input command, in bytes.
const maxInput = 512 << 10

// outputChunk bounds the data of one output frame that is sent.
const outputChunk = 64 << 10

// A frame is a length in 4 bytes, big endian, of what follows: a kind in 1
// byte, and the payload.
const (
	kindControl byte = 1 // JSON: Hello, then Events; Commands from the hub
	kindOutput  byte = 2 // 8 bytes, big endian: offset of the first byte; then raw output
)

// Hello is the supervisor's first frame on every connection. It proves the
// incarnation.
type Hello struct {
	Version   int    `json:"version"`
	PID       int    `json:"pid"`
	Nonce     string `json:"nonce"`
	BootID    string `json:"boot_id"`
	StartedAt int64  `json:"started_at"`
}

// proves reports whether the supervisor that said h runs inc and no other.
func (h Hello) proves(inc hub.Incarnation) bool {
	return inc.Nonce != "" && h.Nonce == inc.Nonce && h.PID == inc.PID &&
		h.StartedAt == inc.StartedAt && h.BootID == inc.BootID
}

// Operations of a Command.
const (
	opKill   = "kill"   // end the tree; answered by the event exited, or error
	opTail   = "tail"   // answered by output frames and the event tail
	opState  = "state"  // answered by the event state
	opInput  = "input"  // answered by the event input, when all is written, or error
	opResize = "resize" // answered by the event resize, or error
	opWatch  = "watch"  // answered by the event watch, when there is more output
	opDetach = "detach" // answered by the end of the connection
)

// Command is what the hub asks of a supervisor.
type Command struct {
	Op      string `json:"op"`
	GraceMS int64  `json:"grace_ms,omitempty"` // kill: SIGKILL follows SIGTERM after this; 0 at once
	Bytes   int    `json:"bytes,omitempty"`    // tail: at most this much
	Data    []byte `json:"data,omitempty"`     // input: at most maxInput bytes
	// LimitMS is how long input may wait for the process to read.
	LimitMS int64             `json:"limit_ms,omitempty"`
	Size    *hub.TerminalSize `json:"size,omitempty"` // resize
	// After is what watch waits for: more than this many bytes of output. A
	// connection has one watch; another replaces it.
	After int64 `json:"after,omitempty"`
}

// Operations of an Event that are not answers.
const (
	evExited = "exited" // the exit record is durable; the connection ends
	evError  = "error"  // a command failed
)

// Event is what a supervisor says after Hello.
type Event struct {
	Op           string     `json:"op"`
	Error        string     `json:"error,omitempty"`
	Code         hub.Code   `json:"code,omitempty"` // of the error, if it has one
	Exit         *Exit      `json:"exit,omitempty"`
	Total        int64      `json:"total,omitempty"` // bytes of output ever written
	LastOutputAt hub.Micros `json:"last_output_at"`
	// Of a pseudo terminal:
	Size           *hub.TerminalSize `json:"size,omitempty"`
	Title          string            `json:"title,omitempty"`
	Agent          string            `json:"agent,omitempty"` // the last OSC 7501
	BracketedPaste bool              `json:"bracketed_paste,omitempty"`
	Input          int64             `json:"input,omitempty"` // bytes of input ever written
}

// writeFrame writes one frame in one Write.
func writeFrame(w io.Writer, kind byte, payload ...[]byte) error {
	size := 1
	for _, p := range payload {
		size += len(p)
	}
	if size > maxFrame {
		return fmt.Errorf("frame of %d bytes is above the limit", size)
	}
	frame := binary.BigEndian.AppendUint32(make([]byte, 0, 4+size), uint32(size))
	frame = append(frame, kind)
	for _, p := range payload {
		frame = append(frame, p...)
	}
	_, err := w.Write(frame)
	return err
}

func writeControl(w io.Writer, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return writeFrame(w, kindControl, raw)
}

// readFrame reads one frame; io.EOF only between frames.
func readFrame(r io.Reader) (kind byte, payload []byte, err error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size < 1 || size > maxFrame {
		return 0, nil, fmt.Errorf("frame of %d bytes", size)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return 0, nil, fmt.Errorf("reading a frame: %w", io.ErrUnexpectedEOF)
	}
	return body[0], body[1:], nil
}

// readControl reads one frame that has to be a control frame.
func readControl(r io.Reader, v any) error {
	kind, payload, err := readFrame(r)
	if err != nil {
		return err
	}
	if kind != kindControl {
		return fmt.Errorf("frame of kind %d instead of control", kind)
	}
	return json.Unmarshal(payload, v)
}
