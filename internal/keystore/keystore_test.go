package keystore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestIdentityIsCreatedOnce(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(dir); !errors.Is(err, ErrMissing) {
		t.Fatalf("Load of nothing: %v", err)
	}
	made, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Create(dir); !errors.Is(err, fs.ErrExist) {
		t.Fatalf("second Create: %v", err)
	}
	got, err := Load(dir)
	if err != nil || got.Fingerprint != made.Fingerprint || got.HubID != made.Fingerprint {
		t.Fatalf("Load: %v %v, want %v", got.Fingerprint, err, made.Fingerprint)
	}
	if !ValidFingerprint(got.Fingerprint) || FingerprintOf(got.Cert.Leaf) != got.Fingerprint {
		t.Fatalf("fingerprint %q", got.Fingerprint)
	}
}

func TestIdentityOutlivesItsCertificate(t *testing.T) {
	dir := t.TempDir()
	made, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, certFile)); err != nil {
		t.Fatal(err)
	}
	got, err := Load(dir)
	if err != nil || got.Fingerprint != made.Fingerprint {
		t.Fatalf("%v %v", got.Fingerprint, err)
	}
}

func TestTornFirstStartIsCleanAgain(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, keyFile), []byte("-----BEGIN PRIV"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir); !errors.Is(err, ErrMissing) {
		t.Fatalf("Load: %v", err)
	}
	if _, err := Create(dir); err != nil {
		t.Fatal(err)
	}
	// With a certificate beside it the key was in use: never replaced.
	if err := os.WriteFile(filepath.Join(dir, keyFile), []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir); err == nil || errors.Is(err, ErrMissing) {
		t.Fatalf("Load of a damaged key: %v", err)
	}
	if _, err := Create(dir); !errors.Is(err, fs.ErrExist) {
		t.Fatalf("Create over a damaged key: %v", err)
	}
}

func TestForeignModesAreRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows protects the folder by its DACL, not by modes")
	}
	dir := t.TempDir()
	if _, err := Create(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, keyFile), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir); err == nil || errors.Is(err, ErrMissing) {
		t.Fatalf("Load of a readable key: %v", err)
	}
}

func TestFingerprintText(t *testing.T) {
	fp := Fingerprint([]byte("a key"))
	const want = 4 + 8*7 + 7
	if len(fp) != want || fp != Fingerprint([]byte("a key")) || fp == Fingerprint([]byte("b key")) {
		t.Fatalf("%q has %d characters, want %d", fp, len(fp), want)
	}
	for i := len("hub_"); i < len(fp); i++ {
		if fp[i] == '-' {
			continue
		}
		for _, c := range Alphabet {
			if byte(c) != fp[i] && ValidFingerprint(fp[:i]+string(c)+fp[i+1:]) {
				t.Fatalf("a typo at %d passes", i)
			}
		}
	}
	for _, bad := range []string{"", "hub_", strings.ToUpper(fp), fp + "0", strings.ReplaceAll(fp, "-", "")} {
		if ValidFingerprint(bad) {
			t.Errorf("%q passes", bad)
		}
	}
}

func TestCheckCharFindsTransposition(t *testing.T) {
	const text = "0a1b2c3d4e5f6g7"
	for i := range len(text) - 1 {
		swapped := text[:i] + text[i+1:i+2] + text[i:i+1] + text[i+2:]
		if swapped != text && CheckChar(swapped) == CheckChar(text) {
			t.Errorf("exchange at %d passes", i)
		}
	}
}

func TestSecretAndTokens(t *testing.T) {
	dir := t.TempDir()
	if _, err := LoadSecret(dir, TokenKey); !errors.Is(err, ErrMissing) {
		t.Fatalf("LoadSecret of nothing: %v", err)
	}
	key, err := CreateSecret(dir, TokenKey)
	if err != nil {
		t.Fatal(err)
	}
	again, err := LoadSecret(dir, TokenKey)
	if err != nil || string(again) != string(key) {
		t.Fatalf("LoadSecret: %v", err)
	}
	if _, err := CreateSecret(dir, TokenKey); !errors.Is(err, fs.ErrExist) {
		t.Fatalf("second CreateSecret: %v", err)
	}
	tok := DeriveToken(key, "whc_", "consumer", "run_1", 1)
	if tok != DeriveToken(again, "whc_", "consumer", "run_1", 1) || !CheckToken("whc_", tok) {
		t.Fatalf("token %q", tok)
	}
	seen := map[string]bool{tok: true}
	for _, other := range []string{
		DeriveToken(key, "whc_", "consumer", "run_1", 2), DeriveToken(key, "whc_", "consumer", "run_2", 1),
		DeriveToken(key, "whc_", "consumerr", "un_1", 1), DeriveToken(key, "whd_", "dispatch", "run_1", 1),
	} {
		if seen[other] {
			t.Fatalf("equal tokens: %q", other)
		}
		seen[other] = true
	}
	bad := []byte(tok)
	bad[10] ^= 1
	if CheckToken("whc_", string(bad)) || CheckToken("whu_", tok) || CheckToken("whc_", tok[:len(tok)-1]) {
		t.Fatal("a damaged token passes")
	}
	if len(TokenSum(tok)) != 64 {
		t.Fatal("TokenSum")
	}
}
