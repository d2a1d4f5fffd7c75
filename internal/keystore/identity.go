package keystore

import (
	"crypto/ecdsa"
	"crypto/elliptic"
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
	"time"
)

// The files of an identity. key.pem is the identity; cert.pem is made of it
// again when it is missing, because peers pin the key.
const (
	keyFile  = "key.pem"
	certFile = "cert.pem"
)

// ErrMissing says that the key or secret has not been created.
var ErrMissing = errors.New("keystore: missing")

// Identity is a hub's key with its self-signed certificate. Fingerprint is of
// the present key; HubID names the lineage, which is the text of its first
// key.
type Identity struct {
	Cert        tls.Certificate
	Fingerprint string
	HubID       string
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
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Identity{}, fmt.Errorf("making the hub's key: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Identity{}, fmt.Errorf("encoding the hub's key: %w", err)
	}
	if err := writeNew(dir, keyFile, pemOf("PRIVATE KEY", der)); err != nil {
		return Identity{}, err
	}
	return certify(dir, key)
}

// Load reads the identity of dir. ErrMissing: there is none, or only the torn
// start of a first Create. Files that other users can open are refused.
func Load(dir string) (Identity, error) {
	key, err := loadKey(dir)
	if err != nil {
		return Identity{}, err
	}
	der, err := readPEM(dir, certFile, "CERTIFICATE")
	switch {
	case errors.Is(err, ErrMissing):
		return certify(dir, key)
	case errors.Is(err, errTorn):
		if err := os.Remove(filepath.Join(dir, certFile)); err != nil {
			return Identity{}, fmt.Errorf("removing an unfinished %s: %w", certFile, err)
		}
		return certify(dir, key)
	case err != nil:
		return Identity{}, err
	}
	return assemble(key, der)
}

func loadKey(dir string) (*ecdsa.PrivateKey, error) {
	der, err := readPEM(dir, keyFile, "PRIVATE KEY")
	if errors.Is(err, errTorn) && absent(filepath.Join(dir, certFile)) {
		return nil, fmt.Errorf("%s in %s was never finished: %w", keyFile, dir, ErrMissing)
	}
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", keyFile, err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, fmt.Errorf("reading %s: not an ECDSA P-256 key", keyFile)
	}
	return key, nil
}

// certify makes the certificate of key and stores it.
func certify(dir string, key *ecdsa.PrivateKey) (Identity, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return Identity{}, fmt.Errorf("making a serial number: %w", err)
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
		return Identity{}, fmt.Errorf("making the hub's certificate: %w", err)
	}
	if err := writeNew(dir, certFile, pemOf("CERTIFICATE", der)); err != nil {
		return Identity{}, err
	}
	return assemble(key, der)
}

func assemble(key *ecdsa.PrivateKey, certDER []byte) (Identity, error) {
	leaf, err := x509.ParseCertificate(certDER)
	if err != nil {
		return Identity{}, fmt.Errorf("reading %s: %w", certFile, err)
	}
	if !key.PublicKey.Equal(leaf.PublicKey) {
		return Identity{}, fmt.Errorf("%s is not of the key in %s", certFile, keyFile)
	}
	fp := FingerprintOf(leaf)
	cert := tls.Certificate{Certificate: [][]byte{certDER}, PrivateKey: key, Leaf: leaf}
	return Identity{Cert: cert, Fingerprint: fp, HubID: fp}, nil
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
