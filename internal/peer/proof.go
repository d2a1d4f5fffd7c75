package peer

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"runtime/debug"

	"golang.org/x/crypto/argon2"
)

const pairLabel = "wavehub-pair/1"

// exporterLabel binds a proof to the one TLS connection it is sent on.
const exporterLabel = "EXPORTER-" + pairLabel

// Cost is what Argon2id spends on a code. The zero value means the default:
// one pass over 64 MiB with four lanes. Both sides must use the same.
type Cost struct {
	Time      uint32
	MemoryKiB uint32
	Threads   uint8
}

func (c Cost) orDefault() Cost {
	if c == (Cost{}) {
		return Cost{Time: 1, MemoryKiB: 64 << 10, Threads: 4}
	}
	return c
}

// pairKey is K of the design: what both sides know of a code, bound to the
// inviter's key. The memory goes back to the system.
func pairKey(cost Cost, c code, inviterSPKI []byte) []byte {
	salt := digest([]byte(pairLabel), []byte(c.slot), inviterSPKI)
	k := argon2.IDKey([]byte(c.secret), salt, cost.Time, cost.MemoryKiB, cost.Threads, 32)
	if cost.MemoryKiB >= 16<<10 {
		debug.FreeOSMemory()
	}
	return k
}

// digest hashes fields, each behind its length.
func digest(fields ...[]byte) []byte {
	h := sha256.New()
	for _, f := range fields {
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(f))))
		h.Write(f)
	}
	return h.Sum(nil)
}

// channel is the TLS connection that a pairing runs on.
type channel struct {
	exporter []byte
	joiner   []byte // SPKI, DER
	inviter  []byte // SPKI, DER
}

// transcript is T: both messages as they were sent, both keys, this connection.
func (c channel) transcript(msg1, msg2 []byte) []byte {
	h1, h2 := sha256.Sum256(msg1), sha256.Sum256(msg2)
	return digest([]byte(pairLabel), c.exporter, c.joiner, c.inviter, h1[:], h2[:])
}

// proofs are the three MACs over T.
type proofs struct{ joiner, inviter, confirm []byte }

func proofsOf(key, transcript []byte) (proofs, error) {
	var p proofs
	for info, dst := range map[string]*[]byte{"joiner": &p.joiner, "inviter": &p.inviter, "confirm": &p.confirm} {
		k, err := hkdf.Expand(sha256.New, key, pairLabel+" "+info, 32)
		if err != nil {
			return p, err
		}
		m := hmac.New(sha256.New, k)
		m.Write(transcript)
		*dst = m.Sum(nil)
	}
	return p, nil
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return b
}
