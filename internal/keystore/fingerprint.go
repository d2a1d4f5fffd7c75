package keystore

import (
	"crypto/sha256"
	"crypto/x509"
	"strings"
)

// The text form of a fingerprint: "hub_" and eight groups of seven characters,
// joined by "-". The 256 bits make 52 base32 characters; behind every 13 of
// them stands their CheckChar, so every second group ends with one. It is
// lower case, URL-safe and the only spelling of the key.
const (
	fingerprintPrefix = "hub_"
	fingerprintRun    = 13
	fingerprintGroup  = 7
	fingerprintLen    = len(fingerprintPrefix) + 8*fingerprintGroup + 7
)

// Fingerprint returns the text form of SHA-256(spkiDER), spkiDER being a DER
// SubjectPublicKeyInfo.
func Fingerprint(spkiDER []byte) string {
	sum := sha256.Sum256(spkiDER)
	data := EncodeBase32(sum[:])
	var checked strings.Builder
	for ; data != ""; data = data[fingerprintRun:] {
		run := data[:fingerprintRun]
		checked.WriteString(run)
		checked.WriteByte(CheckChar(run))
	}
	return fingerprintPrefix + grouped(checked.String())
}

func grouped(s string) string {
	parts := make([]string, 0, len(s)/fingerprintGroup)
	for ; s != ""; s = s[fingerprintGroup:] {
		parts = append(parts, s[:fingerprintGroup])
	}
	return strings.Join(parts, "-")
}

// FingerprintOf returns the fingerprint of the certificate's key.
func FingerprintOf(cert *x509.Certificate) string {
	return Fingerprint(cert.RawSubjectPublicKeyInfo)
}

// ValidFingerprint reports whether s has the text form of a fingerprint with
// right check characters.
func ValidFingerprint(s string) bool {
	body, ok := strings.CutPrefix(s, fingerprintPrefix)
	if !ok || len(s) != fingerprintLen {
		return false
	}
	flat := strings.ReplaceAll(body, "-", "")
	if len(flat) != 8*fingerprintGroup || grouped(flat) != body {
		return false
	}
	for ; flat != ""; flat = flat[fingerprintRun+1:] {
		run := flat[:fingerprintRun]
		if strings.Trim(run, Alphabet) != "" || CheckChar(run) != flat[fingerprintRun] {
			return false
		}
	}
	return true
}
