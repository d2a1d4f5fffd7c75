package keystore

import (
	"bytes"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// rotating is the Ring of a fresh identity.
func rotating(t *testing.T) (*Ring, string) {
	t.Helper()
	dir := t.TempDir()
	id, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	return NewRing(dir, id), dir
}

func (r *Ring) mustRotate(t *testing.T) Identity {
	t.Helper()
	id, err := r.Rotate(r.Now().Fingerprint)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func fingerprints(keys []Key) (fps []string) {
	for _, k := range keys {
		fps = append(fps, k.Fingerprint)
	}
	return fps
}

func TestRotationKeepsTheHubAndItsFormerKeys(t *testing.T) {
	r, dir := rotating(t)
	first := r.Now()
	second, third := r.mustRotate(t), r.mustRotate(t)
	all := []string{first.Fingerprint, second.Fingerprint, third.Fingerprint}
	if third.HubID != first.HubID || third.Fingerprint == second.Fingerprint || !slices.Equal(third.Lineage.Keys(), all) {
		t.Fatalf("%s of %s, lineage %v", third.Fingerprint, third.HubID, third.Lineage.Keys())
	}
	loaded, err := Load(dir)
	if err != nil || loaded.Fingerprint != third.Fingerprint || loaded.HubID != first.HubID {
		t.Fatalf("loaded %s %v", loaded.Fingerprint, err)
	}
	if got := fingerprints(loaded.Former); !slices.Equal(got, all[:2]) {
		t.Errorf("former keys %v, want %v", got, all[:2])
	}
	if k, ok := loaded.Held(first.Fingerprint); !ok || !k.Cert.PrivateKey.(*ecdsa.PrivateKey).Equal(first.Cert.PrivateKey) {
		t.Error("the first key is another one")
	}
	if _, err := r.Rotate(first.Fingerprint); !errors.Is(err, ErrOtherKey) {
		t.Errorf("rotating a former key: %v", err)
	}
	if kept, err := r.Keep(second.Fingerprint); err != nil || !slices.Equal(fingerprints(kept.Former), all[1:2]) {
		t.Errorf("kept %v %v", fingerprints(kept.Former), err)
	}
	loaded, err = Load(dir)
	if err != nil || !slices.Equal(fingerprints(loaded.Former), all[1:2]) || !slices.Equal(loaded.Lineage.Keys(), all) {
		t.Errorf("after giving up the first: %v %v %v", fingerprints(loaded.Former), loaded.Lineage.Keys(), err)
	}
}

func TestALineageEnds(t *testing.T) {
	r, _ := rotating(t)
	for range MaxRotations {
		if _, err := r.Keep(); err != nil {
			t.Fatal(err)
		}
		r.mustRotate(t)
	}
	if _, err := r.Rotate(r.Now().Fingerprint); !errors.Is(err, ErrTooManyRotations) {
		t.Errorf("one rotation more: %v", err)
	}
	if n := len(r.Now().Lineage.Bytes()); n > 16<<10 {
		t.Errorf("its proofs have %d bytes", n)
	}
}

type killed struct{}

// kill runs f until its n-th file operation; it reports whether f came to its end.
func (r *Ring) kill(n int, f func() error) (ended bool, op string, err error) {
	r.at = func(what string) {
		if n--; n < 0 {
			op = what
			panic(killed{})
		}
	}
	defer func() {
		if p := recover(); p != nil && p != any(killed{}) {
			panic(p)
		}
	}()
	err = f()
	return true, "", err
}

// TestAKilledRotationLeavesOneWholeIdentity kills a rotation, and the giving up of
// a former key, before each of its file operations.
func TestAKilledRotationLeavesOneWholeIdentity(t *testing.T) {
	for name, f := range map[string]func(r *Ring) error{
		"rotate": func(r *Ring) error { _, err := r.Rotate(r.Now().Fingerprint); return err },
		"keep":   func(r *Ring) error { _, err := r.Keep(); return err },
	} {
		for n := 0; ; n++ {
			r, dir := rotating(t)
			old := r.mustRotate(t)
			ended, op, err := r.kill(n, func() error { return f(r) })
			if err != nil {
				t.Fatal(err)
			}
			checkWhole(t, fmt.Sprintf("%s killed before %q", name, op), dir, old)
			if ended {
				if n < 4 {
					t.Errorf("%s has %d file operations only", name, n)
				}
				break
			}
		}
	}
}

// checkWhole checks that dir has the identity old or its successor, that a
// rotation goes on from there, and that nothing unfinished is left.
func checkWhole(t *testing.T, when, dir string, old Identity) {
	t.Helper()
	id, err := Load(dir)
	if err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	keys := id.Lineage.Keys()
	same := id.Fingerprint == old.Fingerprint
	if next := len(keys) == 3 && keys[1] == old.Fingerprint; id.HubID != old.HubID || !same && !next {
		t.Errorf("%s: %s with the lineage %v", when, id.Fingerprint, keys)
	}
	if _, held := id.Held(old.Fingerprint); !held {
		t.Errorf("%s: the key that peers know is gone", when)
	}
	raw, err := os.ReadFile(filepath.Join(dir, certFile))
	if err != nil || !bytes.Equal(raw, pemOf("CERTIFICATE", id.Cert.Certificate[0])) {
		t.Errorf("%s: the certificate is not that of the key: %v", when, err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*"+unfinished)); err != nil || len(left) != 0 {
		t.Errorf("%s: %v is left", when, left)
	}
	if next, err := NewRing(dir, id).Rotate(id.Fingerprint); err != nil || next.HubID != old.HubID {
		t.Errorf("%s: the next rotation: %v", when, err)
	}
}

func TestOnlyTheWholeTruthProvesALineage(t *testing.T) {
	r, _ := rotating(t)
	first := r.Now()
	r.mustRotate(t)
	id := r.mustRotate(t)
	raw := id.Lineage.Bytes()
	if l, err := ParseLineage(raw); err != nil || !l.Proves(first.Fingerprint, id.Fingerprint) || l.Proves(first.Fingerprint, first.Fingerprint) {
		t.Fatalf("%v %v", l.Keys(), err)
	}
	for i := range raw {
		bad := slices.Clone(raw)
		bad[i] ^= 1
		if l, err := ParseLineage(bad); err == nil && l.Proves(first.Fingerprint, id.Fingerprint) {
			t.Fatalf("byte %d of %d does not matter", i, len(raw))
		}
	}
	for n := 1; n < len(raw); n++ {
		if l, err := ParseLineage(raw[:n]); err == nil && l.Proves(first.Fingerprint, id.Fingerprint) {
			t.Fatalf("%d of %d bytes are enough", n, len(raw))
		}
	}
	other, _ := rotating(t)
	other.mustRotate(t)
	forged := Lineage{root: id.Lineage.root, steps: append(slices.Clone(id.Lineage.steps), other.Now().Lineage.steps...)}
	if _, err := ParseLineage(forged.Bytes()); err == nil {
		t.Error("a key that nobody has signed passes")
	}
	loop, err := id.Lineage.extended(id.Cert.PrivateKey.(*ecdsa.PrivateKey), first.Cert.PrivateKey.(*ecdsa.PrivateKey).Public().(*ecdsa.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseLineage(loop.Bytes()); err == nil {
		t.Error("a lineage that comes back to a former key passes")
	}
	if l, err := ParseLineage(nil); err != nil || !l.Zero() || !l.Proves("a", "a") || l.Proves("a", "b") {
		t.Errorf("no proofs: %v", err)
	}
}

func FuzzParseLineage(f *testing.F) {
	dir := f.TempDir()
	id, err := Create(dir)
	if err != nil {
		f.Fatal(err)
	}
	if id, err = NewRing(dir, id).Rotate(id.Fingerprint); err != nil {
		f.Fatal(err)
	}
	f.Add(id.Lineage.Bytes())
	f.Add([]byte{0, 1, 7, 0, 1, 8, 0, 1, 9})
	f.Fuzz(func(t *testing.T, raw []byte) {
		l, err := ParseLineage(raw)
		if err == nil && !bytes.Equal(l.Bytes(), raw) {
			t.Errorf("%x is read as %x", raw, l.Bytes())
		}
	})
}

func TestADamagedKeyFileIsRefused(t *testing.T) {
	r, dir := rotating(t)
	first := r.Now()
	id := r.mustRotate(t)
	path := filepath.Join(dir, keyFile)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := newKey()
	if err != nil {
		t.Fatal(err)
	}
	k, err := keysOf(id)
	if err != nil {
		t.Fatal(err)
	}
	for what, bad := range map[string]keys{
		"a former key of another hub":  {present: k.present, lineage: k.lineage, former: append(k.former, foreign)},
		"the lineage of another key":   {present: foreign, lineage: k.lineage},
		"former keys without lineage":  {present: k.present, former: k.former},
		"a present key that is former": {present: k.former[0], lineage: k.lineage},
	} {
		text, err := bad.encode()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Load(dir); err == nil || errors.Is(err, ErrMissing) {
			t.Errorf("%s: %s %v", what, got.Fingerprint, err)
		}
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Load(dir); err != nil || got.HubID != first.HubID {
		t.Errorf("%v", err)
	}
}

func TestServerNamesAskForKeys(t *testing.T) {
	r, _ := rotating(t)
	first := r.Now()
	id := r.mustRotate(t)
	for name, want := range map[string]string{
		"x.test": id.Fingerprint, "nobody.x.test": id.Fingerprint,
		ServerName(first.Fingerprint, "x.test"):           first.Fingerprint,
		ServerName(id.Fingerprint, "x.test"):              id.Fingerprint,
		ServerName(Fingerprint([]byte("no")), "x.test"):   id.Fingerprint,
		ServerName(first.Fingerprint, "elsewhere.x.test"): id.Fingerprint,
	} {
		if got := id.Asked(name, "x.test").Fingerprint; got != want || !Named(name, "x.test") {
			t.Errorf("%s shows %s, want %s", name, got, want)
		}
	}
	if ServerName("", "x.test") != "x.test" || Named("x.test.evil", "x.test") || Named("notx.test", "x.test") || Named("", "x.test") {
		t.Error("names")
	}
}
