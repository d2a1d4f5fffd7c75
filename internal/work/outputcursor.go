package work

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"

	"github.com/wavehub/wavehub/internal/hub"
)

// Sources of output.
const (
	sourceAuto       = "auto"
	sourceTranscript = "transcript"
	sourceTerminal   = "terminal"
)

// outputPlace is what a cursor stands for: a place in one source of one process
// of one Dispatch. It holds no path.
type outputPlace struct {
	Dispatch hub.DispatchID  `json:"d"`
	Process  string          `json:"p"` // of the incarnation
	Source   string          `json:"s"`
	Identity string          `json:"i"`
	At       json.RawMessage `json:"a"` // the source's own
}

const cursorMAC = 16

// seal is the opaque form of a place.
func (s *Service) seal(p outputPlace) (string, error) {
	raw, err := json.Marshal(p)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(append(s.outputMAC(raw), raw...)), nil
}

func (s *Service) outputMAC(raw []byte) []byte {
	mac := hmac.New(sha256.New, s.CursorKey)
	mac.Write([]byte("wavehub output 1\x00"))
	mac.Write(raw)
	return mac.Sum(nil)[:cursorMAC]
}

// unseal reads a cursor that this hub gave for the attachment's output. Each way
// in which it does not fit any more has its own code.
func (s *Service) unseal(a hub.Attachment, cursor string) (p outputPlace, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(raw) < cursorMAC || !hmac.Equal(raw[:cursorMAC], s.outputMAC(raw[cursorMAC:])) {
		return p, badCursor(hub.CodeCursorInvalid, "the cursor is none that this hub gave for output")
	}
	if err := json.Unmarshal(raw[cursorMAC:], &p); err != nil {
		return p, badCursor(hub.CodeCursorInvalid, "the cursor is of another version of wavehub")
	}
	switch {
	case p.Dispatch != a.Dispatch:
		return p, badCursor(hub.CodeCursorDispatchMismatch, "the cursor is of the output of another Dispatch")
	case p.Process != processOf(a):
		return p, badCursor(hub.CodeWorkerIdentityChanged, "the cursor is of another process than the worker's")
	}
	return p, nil
}

func badCursor(code hub.Code, text string) error {
	e := hub.Errorf(code, "%s", text)
	e.Field = "cursor"
	e.Hint = "read again without a cursor"
	return e
}

// processOf names an attachment's process without saying its nonce.
func processOf(a hub.Attachment) string {
	if a.Process == nil {
		return ""
	}
	sum := sha256.Sum256([]byte("process\x00" + a.Process.Nonce))
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}
