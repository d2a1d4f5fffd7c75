// Package wire is the binary form of the relay's frames: no I/O, no state.
//
// A frame is one websocket message: version (1 byte), kind (1 byte), body.
// Integers are big-endian and fixed, texts are a 16-bit length and that many
// bytes of UTF-8, payloads a 32-bit length and raw bytes that are never
// re-encoded. There is one encoding per frame, so Encode(Decode(b)) is b.
//
// Decode trusts nothing: every length is checked against what is left, every
// count is bounded, trailing bytes are refused, item digests are verified.
package wire
