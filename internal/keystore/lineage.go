package keystore

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// MaxRotations bounds the steps of a lineage.
const MaxRotations = 64

// maxLineageField bounds a key or signature of a lineage, in bytes.
const maxLineageField = 512

const lineageLabel = "wavehub-lineage/1"

// Lineage proves which keys a hub has had: its first key and, for each later
// one, the signature of the key before it. The zero Lineage is that of a hub
// whose key was never rotated. A Lineage has been verified.
type Lineage struct {
	root  []byte // SubjectPublicKeyInfo of the first key, DER
	steps []lineageStep
}

type lineageStep struct {
	key       []byte // SubjectPublicKeyInfo of the new key, DER
	signature []byte // by the key before it, ASN.1
}

// Zero reports whether the key was never rotated.
func (l Lineage) Zero() bool { return len(l.steps) == 0 }

// Keys returns the fingerprints of all keys, the first one first; none for the
// zero Lineage.
func (l Lineage) Keys() []string {
	if l.Zero() {
		return nil
	}
	keys := []string{Fingerprint(l.root)}
	for _, s := range l.steps {
		keys = append(keys, Fingerprint(s.key))
	}
	return keys
}

// Last returns the present key, DER; nil for the zero Lineage.
func (l Lineage) Last() []byte {
	if l.Zero() {
		return nil
	}
	return l.steps[len(l.steps)-1].key
}

// Proves reports whether the key with the fingerprint present is the present
// one of the hub hubID.
func (l Lineage) Proves(hubID, present string) bool {
	if l.Zero() {
		return hubID == present
	}
	return Fingerprint(l.root) == hubID && Fingerprint(l.Last()) == present
}

// Bytes is the form that ParseLineage reads: fields of the first key, then a
// key and a signature per step, each behind its length of two bytes. It is
// empty for the zero Lineage.
func (l Lineage) Bytes() []byte {
	if l.Zero() {
		return nil
	}
	out := appendField(nil, l.root)
	for _, s := range l.steps {
		out = appendField(appendField(out, s.key), s.signature)
	}
	return out
}

func appendField(out, field []byte) []byte {
	return append(binary.BigEndian.AppendUint16(out, uint16(len(field))), field...)
}

var errLineage = errors.New("keystore: not the proofs of a lineage")

// ParseLineage reads and verifies the proofs of a lineage. Any error means that
// they prove nothing.
func ParseLineage(raw []byte) (Lineage, error) {
	var l Lineage
	fields, err := splitFields(raw)
	if err != nil || len(fields) == 0 {
		return l, err
	}
	if len(fields)%2 == 0 || len(fields) < 3 || len(fields)/2 > MaxRotations {
		return l, errLineage
	}
	l.root = fields[0]
	for pair := range slices.Chunk(fields[1:], 2) {
		l.steps = append(l.steps, lineageStep{pair[0], pair[1]})
	}
	if err := l.verify(); err != nil {
		return Lineage{}, err
	}
	return l, nil
}

func splitFields(raw []byte) (fields [][]byte, err error) {
	for len(raw) > 0 {
		if len(raw) < 2 {
			return nil, errLineage
		}
		n := int(binary.BigEndian.Uint16(raw))
		if n == 0 || n > maxLineageField || len(raw) < 2+n || len(fields) > 2*MaxRotations {
			return nil, errLineage
		}
		fields, raw = append(fields, slices.Clone(raw[2:2+n])), raw[2+n:]
	}
	return fields, nil
}

func (l Lineage) verify() error {
	seen, before := map[string]bool{Fingerprint(l.root): true}, l.root
	for _, s := range l.steps {
		key, err := publicKey(before)
		if err != nil {
			return err
		}
		fp := Fingerprint(s.key)
		if seen[fp] || !ecdsa.VerifyASN1(key, l.sum(before, s.key), s.signature) {
			return errLineage
		}
		seen[fp], before = true, s.key
	}
	_, err := publicKey(before)
	return err
}

// sum is what the key before signs.
func (l Lineage) sum(before, key []byte) []byte {
	return sumFields([]byte(lineageLabel), l.root, before, key)
}

func sumFields(fields ...[]byte) []byte {
	h := sha256.New()
	for _, f := range fields {
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(f))))
		h.Write(f)
	}
	return h.Sum(nil)
}

// publicKey reads a P-256 key, DER.
func publicKey(der []byte) (*ecdsa.PublicKey, error) {
	parsed, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errLineage, err)
	}
	key, ok := parsed.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, fmt.Errorf("%w: not an ECDSA P-256 key", errLineage)
	}
	return key, nil
}

// VerifyBy reports whether the P-256 key der (SubjectPublicKeyInfo) has signed sum.
func VerifyBy(der, sum, signature []byte) bool {
	key, err := publicKey(der)
	return err == nil && ecdsa.VerifyASN1(key, sum, signature)
}

// extended is l with one step more, signed by the present key.
func (l Lineage) extended(present *ecdsa.PrivateKey, key *ecdsa.PublicKey) (Lineage, error) {
	before, err := x509.MarshalPKIXPublicKey(present.Public())
	if err != nil {
		return l, fmt.Errorf("encoding the present key: %w", err)
	}
	next, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return l, fmt.Errorf("encoding the new key: %w", err)
	}
	out := Lineage{root: l.root, steps: slices.Clone(l.steps)}
	if l.Zero() {
		out.root = before
	}
	signature, err := ecdsa.SignASN1(rand.Reader, present, out.sum(before, next))
	if err != nil {
		return l, fmt.Errorf("signing the new key: %w", err)
	}
	out.steps = append(out.steps, lineageStep{next, signature})
	return out, nil
}
