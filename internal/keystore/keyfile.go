package keystore

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
)

// The blocks of key.pem, in order: the present key, the lineage if the key was
// ever rotated, the former keys that are still held.
const (
	pemKey     = "PRIVATE KEY"
	pemLineage = "WAVEHUB LINEAGE"
)

// keys is the content of key.pem.
type keys struct {
	present *ecdsa.PrivateKey
	lineage Lineage
	former  []*ecdsa.PrivateKey // the oldest first
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the hub's key: %w", err)
	}
	return key, nil
}

func (k keys) encode() ([]byte, error) {
	out, err := keyPEM(k.present)
	if err != nil {
		return nil, err
	}
	if !k.lineage.Zero() {
		out = append(out, pemOf(pemLineage, k.lineage.Bytes())...)
	}
	for _, key := range k.former {
		text, err := keyPEM(key)
		if err != nil {
			return nil, err
		}
		out = append(out, text...)
	}
	return out, nil
}

func keyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding the hub's key: %w", err)
	}
	return pemOf(pemKey, der), nil
}

// loadKeys reads key.pem. A torn one without a certificate beside it was never
// in use.
func loadKeys(dir string) (keys, error) {
	raw, err := readPrivate(filepath.Join(dir, keyFile))
	if err != nil {
		return keys{}, err
	}
	k, err := decodeKeys(raw)
	if errors.Is(err, errTorn) && absent(filepath.Join(dir, certFile)) {
		return keys{}, fmt.Errorf("%s in %s was never finished: %w", keyFile, dir, ErrMissing)
	}
	if err != nil {
		return keys{}, fmt.Errorf("reading %s: %w", keyFile, err)
	}
	return k, nil
}

func decodeKeys(raw []byte) (k keys, err error) {
	for n := 0; ; n++ {
		var block *pem.Block
		if block, raw = pem.Decode(raw); block == nil {
			break
		}
		switch {
		case block.Type == pemKey && n == 0:
			k.present, err = parseKey(block.Bytes)
		case block.Type == pemLineage && n == 1:
			k.lineage, err = ParseLineage(block.Bytes)
		case block.Type == pemKey && !k.lineage.Zero():
			var key *ecdsa.PrivateKey
			key, err = parseKey(block.Bytes)
			k.former = append(k.former, key)
		default:
			err = fmt.Errorf("an unexpected %s", block.Type)
		}
		if err != nil {
			return k, err
		}
	}
	if k.present == nil {
		return k, errTorn
	}
	return k, k.check()
}

// check refuses keys that are not of the lineage.
func (k keys) check() error {
	if k.lineage.Zero() {
		return nil
	}
	present, err := fingerprintOfKey(k.present)
	if err != nil {
		return err
	}
	all := k.lineage.Keys()
	if !k.lineage.Proves(all[0], present) {
		return errors.New("the lineage is not that of the key")
	}
	for _, key := range k.former {
		if fp, err := fingerprintOfKey(key); err != nil || fp == present || !slices.Contains(all, fp) {
			return errors.Join(errors.New("a former key is not of the lineage"), err)
		}
	}
	return nil
}

func fingerprintOfKey(key *ecdsa.PrivateKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return "", fmt.Errorf("encoding a key: %w", err)
	}
	return Fingerprint(der), nil
}

func parseKey(der []byte) (*ecdsa.PrivateKey, error) {
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("not an ECDSA P-256 key")
	}
	return key, nil
}
