package keystore

import (
	"crypto/ecdsa"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// Source has the identity of a hub as it is now.
type Source interface{ Now() Identity }

// Ring keeps a hub's keys on disk and in memory; it is a Source. It is safe for
// concurrent use by one process.
type Ring struct {
	dir string
	at  func(op string) // told of each file operation before it; for tests

	mu  sync.Mutex // held by whoever changes the files
	now atomic.Pointer[Identity]
}

// NewRing makes the Ring of an identity that Load or Create returned for dir.
func NewRing(dir string, id Identity) *Ring {
	r := &Ring{dir: dir}
	r.now.Store(&id)
	return r
}

// Now returns the present identity. The caller does not change it.
func (r *Ring) Now() Identity { return *r.now.Load() }

var (
	// ErrOtherKey says that the key to be rotated is not the present one.
	ErrOtherKey = errors.New("keystore: not the present key")
	// ErrTooManyRotations says that a lineage takes no more keys.
	ErrTooManyRotations = fmt.Errorf("keystore: a key is rotated at most %d times", MaxRotations)
)

// Rotate makes a new key the successor of the present one, whose fingerprint
// must be old, and holds that one further on. It is durable when it returns: a
// crash before leaves the old identity or the new one, whole. So a caller that
// crashed finds in the lineage whether its rotation took place.
func (r *Ring) Rotate(old string) (Identity, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := r.Now()
	switch {
	case id.Fingerprint != old:
		return id, ErrOtherKey
	case len(id.Lineage.steps) >= MaxRotations:
		return id, ErrTooManyRotations
	}
	next, err := successor(id)
	if err != nil {
		return id, err
	}
	der, err := selfSigned(next.present)
	if err != nil {
		return id, err
	}
	if id, err = r.store(next, der); err != nil {
		return id, err
	}
	return id, replaceFile(r.dir, certFile, pemOf("CERTIFICATE", der), r.at)
}

// successor is the content of key.pem with a new key in front.
func successor(id Identity) (keys, error) {
	k, err := keysOf(id)
	if err != nil {
		return k, err
	}
	key, err := newKey()
	if err != nil {
		return k, err
	}
	lineage, err := k.lineage.extended(k.present, &key.PublicKey)
	return keys{present: key, lineage: lineage, former: append(k.former, k.present)}, err
}

func keysOf(id Identity) (k keys, err error) {
	k.lineage = id.Lineage
	if k.present, err = privateOf(id.Present()); err != nil {
		return k, err
	}
	for _, f := range id.Former {
		key, err := privateOf(f)
		if err != nil {
			return k, err
		}
		k.former = append(k.former, key)
	}
	return k, nil
}

func privateOf(k Key) (*ecdsa.PrivateKey, error) {
	key, ok := k.Cert.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return nil, errors.New("keystore: a key of another kind")
	}
	return key, nil
}

// Keep gives up all former keys but those with the fingerprints. They are gone
// for good when it returns; the proofs of the lineage stay.
func (r *Ring) Keep(former ...string) (Identity, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := r.Now()
	if !slices.ContainsFunc(id.Former, func(k Key) bool { return !slices.Contains(former, k.Fingerprint) }) {
		return id, nil
	}
	k, err := keysOf(id)
	if err != nil {
		return id, err
	}
	var kept []*ecdsa.PrivateKey
	for i, f := range id.Former {
		if slices.Contains(former, f.Fingerprint) {
			kept = append(kept, k.former[i])
		}
	}
	k.former = kept
	return r.store(k, id.Cert.Certificate[0])
}

// store replaces key.pem, which is the identity. certDER is of the present key.
func (r *Ring) store(k keys, certDER []byte) (Identity, error) {
	text, err := k.encode()
	if err != nil {
		return r.Now(), err
	}
	id, err := k.identity(certDER)
	if err != nil {
		return r.Now(), err
	}
	if err := replaceFile(r.dir, keyFile, text, r.at); err != nil {
		return r.reread(err)
	}
	r.now.Store(&id)
	return id, nil
}

// reread finds out what a failed replacement has left: the name may have changed
// although its folder could not be synced.
func (r *Ring) reread(cause error) (Identity, error) {
	id, err := Load(r.dir)
	if err != nil {
		return r.Now(), errors.Join(cause, err)
	}
	r.now.Store(&id)
	return id, cause
}
