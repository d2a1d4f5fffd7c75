package receipt

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/wavehub/wavehub/internal/hub"
)

// DerivedKey is the request id that the engine derives from what it is about to do:
// the same parts give the same id for ever, after any crash. Each part counts with
// its length, so that no two lists of parts run together. It says nothing of when it
// was made.
func DerivedKey(parts ...string) hub.RequestID {
	h := sha256.New()
	var size [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(size[:], uint64(len(p)))
		h.Write(size[:])
		h.Write([]byte(p))
	}
	var id [16]byte
	copy(id[:], h.Sum(nil))
	return hub.RequestID(hub.FormatID(hub.PrefixRequest, id))
}
