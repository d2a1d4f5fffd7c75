package keystore

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// The files of an identity. key.pem is the identity: the present key, and of a
// hub whose key was rotated the proofs of its lineage and the former keys that
// some peer still needs. cert.pem is made of it again when it is missing or of
// a former key, because peers pin the key.
const (
	keyFile  = "key.pem"
	certFile = "cert.pem"
)

// ErrMissing says that the key or secret has not been created.
var ErrMissing = errors.New("keystore: missing")

// Identity is a hub's key with its self-signed certificate. Fingerprint is of
// the present key; HubID names the lineage, which is the text of its first
// key. Former are the keys before it that are still held, the oldest first. It
// is a value: a Ring has the one of now.
type Identity struct {
	Cert        tls.Certificate
	Fingerprint string
	HubID       string
	Lineage     Lineage
	Former      []Key
}

// Key is one key of a hub with a certificate over it.
type Key struct {
	Cert        tls.Certificate
	Fingerprint string
}

// SPKI returns the key's SubjectPublicKeyInfo, DER.
func (k Key) SPKI() []byte { return k.Cert.Leaf.RawSubjectPublicKeyInfo }

// Now returns id: an Identity stands for a Ring that never changes.
func (id Identity) Now() Identity { return id }

// Present returns the present key.
func (id Identity) Present() Key { return Key{id.Cert, id.Fingerprint} }

// Held returns the key with the fingerprint, if it is the present one or a
// former one that is still held.
func (id Identity) Held(fingerprint string) (Key, bool) {
	for _, k := range append([]Key{id.Present()}, id.Former...) {
		if k.Fingerprint == fingerprint {
			return k, true
		}
	}
	return Key{}, false
}

// Create makes a new identity in dir, which has to exist and be private. It
// never replaces a key: one that is there is fs.ErrExist. When it returns, the
// files and their names are on disk. A crash in between leaves either a key
// that Load completes, or an unfinished file that Create removes.
func Create(dir string) (Identity, error) {
	if _, err := Load(dir); !errors.Is(err, ErrMissing) {
		return Identity{}, errors.Join(fmt.Errorf("creating the hub's key in %s: %w", dir, fs.ErrExist), err)
	}
	if err := os.Remove(filepath.Join(dir, keyFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Identity{}, fmt.Errorf("removing an unfinished key: %w", err)
	}
	key, err := newKey()
	if err != nil {
		return Identity{}, err
	}
	made := keys{present: key}
	text, err := made.encode()
	if err != nil {
		return Identity{}, err
	}
	if err := writeNew(dir, keyFile, text); err != nil {
		return Identity{}, err
	}
	return made.certify(dir)
}

// Load reads the identity of dir. ErrMissing: there is none, or only the torn
// start of a first Create. Files that other users can open are refused. What
// the unfinished start of a rotation has left is removed.
func Load(dir string) (Identity, error) {
	if err := removeUnfinished(dir); err != nil {
		return Identity{}, err
	}
	keys, err := loadKeys(dir)
	if err != nil {
		return Identity{}, err
	}
	der, err := readPEM(dir, certFile, "CERTIFICATE")
	switch {
	case errors.Is(err, ErrMissing):
		return keys.certify(dir)
	case errors.Is(err, errTorn):
		if err := os.Remove(filepath.Join(dir, certFile)); err != nil {
			return Identity{}, fmt.Errorf("removing an unfinished %s: %w", certFile, err)
		}
		return keys.certify(dir)
	case err != nil:
		return Identity{}, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return Identity{}, fmt.Errorf("reading %s: %w", certFile, err)
	}
	if fp := FingerprintOf(leaf); slices.Contains(keys.lineage.Keys(), fp) && !keys.present.PublicKey.Equal(leaf.PublicKey) {
		return keys.certify(dir) // a rotation was cut off behind its key
	}
	return keys.identity(der)
}

// certify makes the certificate of the present key and stores it, in the place
// of one of a former key.
func (k keys) certify(dir string) (Identity, error) {
	der, err := selfSigned(k.present)
	if err != nil {
		return Identity{}, err
	}
	if err := replaceFile(dir, certFile, pemOf("CERTIFICATE", der), nil); err != nil {
		return Identity{}, err
	}
	return k.identity(der)
}

func selfSigned(key *ecdsa.PrivateKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("making a serial number: %w", err)
	}
	tmpl := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "wavehub"},
		DNSNames:              []string{"localhost", "peer.wavehub.internal"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		NotBefore:             time.Unix(0, 0).UTC(), // the key is pinned; clocks do not matter
		NotAfter:              time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("making the hub's certificate: %w", err)
	}
	return der, nil
}

// identity puts the keys and the certificate of the present one together.
func (k keys) identity(certDER []byte) (Identity, error) {
	present, err := assemble(k.present, certDER)
	if err != nil {
		return Identity{}, err
	}
	id := Identity{Cert: present.Cert, Fingerprint: present.Fingerprint, HubID: present.Fingerprint, Lineage: k.lineage}
	if all := k.lineage.Keys(); len(all) > 0 {
		id.HubID = all[0]
	}
	for _, key := range k.former {
		der, err := selfSigned(key)
		if err != nil {
			return Identity{}, err
		}
		f, err := assemble(key, der)
		if err != nil {
			return Identity{}, err
		}
		id.Former = append(id.Former, f)
	}
	return id, nil
}

func assemble(key *ecdsa.PrivateKey, certDER []byte) (Key, error) {
	leaf, err := x509.ParseCertificate(certDER)
	if err != nil {
		return Key{}, fmt.Errorf("reading %s: %w", certFile, err)
	}
	if !key.PublicKey.Equal(leaf.PublicKey) {
		return Key{}, fmt.Errorf("%s is not of the key in %s", certFile, keyFile)
	}
	cert := tls.Certificate{Certificate: [][]byte{certDER}, PrivateKey: key, Leaf: leaf}
	return Key{cert, FingerprintOf(leaf)}, nil
}

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

var errTorn = errors.New("not a complete PEM file")

func readPEM(dir, name, kind string) ([]byte, error) {
	raw, err := readPrivate(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(raw)
	if block == nil || block.Type != kind {
		return nil, fmt.Errorf("reading %s: %w", name, errTorn)
	}
	return block.Bytes, nil
}
