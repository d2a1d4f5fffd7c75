package keystore

import "strings"

// Alphabet is Crockford's base32 in lower case: no i, l, o, u.
const Alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// CheckChar returns the check character of a text over Alphabet (either
// case; other characters count as 0). It is the value of the text's polynomial
// at a primitive element of GF(32), so one wrong character and two exchanged
// neighbours always change it, for texts of up to 31 characters.
func CheckChar(text string) byte {
	var sum byte
	for i := range len(text) {
		sum = double(sum ^ digit(text[i]))
	}
	return Alphabet[sum]
}

// double multiplies by x in GF(2)[x]/(x^5+x^2+1).
func double(v byte) byte {
	v <<= 1
	if v&32 != 0 {
		v ^= 0b100101
	}
	return v
}

func digit(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	if i := strings.IndexByte(Alphabet, c); i >= 0 {
		return byte(i)
	}
	return 0
}

// EncodeBase32 writes b over Alphabet, most significant bit first, the last
// character padded with zero bits.
func EncodeBase32(b []byte) string {
	out := make([]byte, 0, (len(b)*8+4)/5)
	var acc uint32
	bits := 0
	for _, c := range b {
		acc = acc<<8 | uint32(c)
		for bits += 8; bits >= 5; bits -= 5 {
			out = append(out, Alphabet[acc>>(bits-5)&31])
		}
	}
	if bits > 0 {
		out = append(out, Alphabet[acc<<(5-bits)&31])
	}
	return string(out)
}
