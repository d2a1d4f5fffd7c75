package keystore

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"strings"
)

// TokenKey is the file name of the secret that tokens and codes derive from.
const TokenKey = "token.key"

const secretLen = 32

// CreateSecret makes a file of 32 random bytes (as hex) in dir and returns
// them. It never replaces one that is complete: fs.ErrExist.
func CreateSecret(dir, name string) ([]byte, error) {
	if _, err := LoadSecret(dir, name); !errors.Is(err, ErrMissing) {
		return nil, errors.Join(fmt.Errorf("creating %s: %w", name, fs.ErrExist), err)
	}
	if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("removing an unfinished %s: %w", name, err)
	}
	secret := make([]byte, secretLen)
	rand.Read(secret) // never fails
	return secret, writeNew(dir, name, []byte(hex.EncodeToString(secret)+"\n"))
}

// LoadSecret reads a secret. ErrMissing: there is none, or only the torn start
// of one that was never used.
func LoadSecret(dir, name string) ([]byte, error) {
	raw, err := readPrivate(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	text, ended := strings.CutSuffix(string(raw), "\n")
	if !ended && len(text) <= 2*secretLen {
		return nil, fmt.Errorf("%s was never finished: %w", name, ErrMissing)
	}
	secret, err := hex.DecodeString(text)
	if err != nil || len(secret) != secretLen {
		return nil, fmt.Errorf("%s does not hold %d bytes as hex", name, secretLen)
	}
	return secret, nil
}

// Derive returns n (at most 8160) bytes bound to what they are for. Equal
// arguments give equal bytes, so nothing derived has to be stored.
func Derive(key []byte, kind, object string, generation int64, n int) []byte {
	info := []byte("wavehub-derive/1")
	for _, s := range []string{kind, object} {
		info = binary.BigEndian.AppendUint32(info, uint32(len(s)))
		info = append(info, s...)
	}
	info = binary.BigEndian.AppendUint64(info, uint64(generation))
	out, err := hkdf.Key(sha256.New, key, nil, string(info), n)
	if err != nil { // only for an n beyond the limit above
		panic(err)
	}
	return out
}

// The text of a token: prefix, 256 bits as 43 base62 characters, CRC-32 (IEEE)
// of all before as 6.
const (
	base62   = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	tokenLen = 43
	crcLen   = 6
)

// DeriveToken returns the token of an object: prefix (whu_, whr_, whc_, whd_, whw_)
// and text of Derive's 32 bytes.
func DeriveToken(key []byte, prefix, kind, object string, generation int64) string {
	n := new(big.Int).SetBytes(Derive(key, kind, object, generation, 32))
	body := prefix + encode62(n, tokenLen)
	return body + crcOf(body)
}

func crcOf(body string) string {
	return encode62(big.NewInt(int64(crc32.ChecksumIEEE([]byte(body)))), crcLen)
}

func encode62(n *big.Int, width int) string {
	out := make([]byte, width)
	base, rest := big.NewInt(int64(len(base62))), new(big.Int)
	for i := width - 1; i >= 0; i-- {
		n.DivMod(n, base, rest)
		out[i] = base62[rest.Int64()]
	}
	return string(out)
}

// CheckToken reports whether s has the shape of a token with the prefix and a
// right CRC. It says nothing about validity.
func CheckToken(prefix, s string) bool {
	text, ok := strings.CutPrefix(s, prefix)
	if !ok || len(text) != tokenLen+crcLen || strings.Trim(text, base62) != "" {
		return false
	}
	body := s[:len(s)-crcLen]
	return crcOf(body) == s[len(s)-crcLen:]
}

// TokenSum returns what is stored of a token: its SHA-256 in hex.
func TokenSum(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}
