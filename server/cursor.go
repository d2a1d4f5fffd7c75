package server

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

const (
	defaultPage = 50
	macBytes    = 16
)

// list names a list with its filters; a cursor of one is none of another.
type list []string

// cursor is the opaque form of a position, nil for 0: the end.
func (s *Server) cursor(l list, position int64) *string {
	if position == 0 {
		return nil
	}
	raw := binary.BigEndian.AppendUint64(nil, uint64(position))
	text := base64.RawURLEncoding.EncodeToString(append(raw, s.cursorMAC(l, raw)...))
	return &text
}

// position is what a cursor of the list stands for, 0 for "".
func (s *Server) position(l list, cursor string) (int64, error) {
	if cursor == "" {
		return 0, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(raw) != 8+macBytes || !hmac.Equal(raw[8:], s.cursorMAC(l, raw[:8])) {
		e := hub.Errorf(hub.CodeCursorInvalid, "the cursor is none that this hub gave for this list and these filters")
		e.Field = "cursor"
		return 0, e
	}
	return int64(binary.BigEndian.Uint64(raw)), nil
}

func (s *Server) cursorMAC(l list, position []byte) []byte {
	mac := hmac.New(sha256.New, s.cfg.CursorKey)
	mac.Write([]byte("wavehub cursor 1\x00" + strings.Join(l, "\x00") + "\x00"))
	mac.Write(position)
	return mac.Sum(nil)[:macBytes]
}

func pageSize(limit int) int {
	if limit == 0 {
		return defaultPage
	}
	return limit
}
