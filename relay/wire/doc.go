// Package wire is the binary form of the relay's frames: no I/O, no state.
//
// A frame is one websocket message: version (1 byte), kind (1 byte), body, and
// the CRC-32C of all before it (4 bytes, big-endian).
//
//   - A number is a varint of 7 bits a byte, lowest first, and never longer
//     than it must be. A difference is a number of either sign in zigzag form.
//   - A text is its length, a number, and that many bytes of UTF-8. A payload is
//     the same of raw bytes, which are never re-encoded.
//   - An id is 0 and its 16 bytes, if it is well formed. Any other text in its
//     place is its length and 1, a number, and its bytes.
//   - A word (the kind of an item, a verdict) is one byte if this version knows
//     it. Else it is 0 and its text: what to do about it is the reader's to
//     judge, and no fault of the frame.
//
// Items name each Dispatch once: 0 and the id where it comes first, and from
// then on its place, from 1, among those of the frame. An item's position is the
// difference to that of the item before it, its sequence that to the one before
// it of its Dispatch; the first of each counts from 0.
//
// There is one encoding per frame, so Encode(Decode(b)) is b: what could be
// shorter, or is named twice, is refused.
//
// The digest is one per frame, of every kind, and no cryptographic one. TLS
// keeps the bytes from others, so all that is left to find are faults of our
// own, such as a buffer that is used again too early. An ack that such a fault
// has changed would do as much harm as an item, hence every kind; and a SHA-256
// of each item would be the dearest part of a frame, in bytes and in time, and
// would find no more of them. What an item was is kept by the importer.
//
// Decode trusts nothing: every length is checked against what is left, every
// count is bounded, trailing bytes are refused. What it allots is at most a few
// times the frame, and half a MiB.
package wire
