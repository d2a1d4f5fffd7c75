package receipt

import (
	"crypto/sha256"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
)

func DerivedKey(parts ...string) hub.RequestID {
	s := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hub.RequestID(hub.FormatID(hub.PrefixRequest, [16]byte(s[:16])))
}
