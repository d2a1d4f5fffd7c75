package spool

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/wavehub/wavehub/internal/hub"
)

// version is the format of lines that this package writes and the only one that
// it reads.
const version = 1

// Line is one request that was not answered: its id, so that a hub which has
// taken it knows it again, the operation of the API, and the body as it was or
// would have been sent.
type Line struct {
	Request   hub.RequestID
	Operation string
	Body      json.RawMessage
}

// record is a line as it lies in the file. The sum covers everything before it,
// the mac everything but both.
type record struct {
	Version   int             `json:"v"`
	Request   hub.RequestID   `json:"request_id"`
	Operation string          `json:"operation"`
	Body      json.RawMessage `json:"body"`
	MAC       string          `json:"hmac"`
	Sum       string          `json:"sum"`
}

// encode returns the line's text with its line feed. The token proves the line
// and is not in it.
func (l Line) encode(token string) ([]byte, error) {
	var body bytes.Buffer
	if err := json.Compact(&body, l.Body); err != nil {
		return nil, fmt.Errorf("the body is no JSON document: %w", err)
	}
	r := record{Version: version, Request: l.Request, Operation: l.Operation, Body: body.Bytes()}
	r.MAC = r.mac(token)
	r.Sum = r.checksum()
	raw := append(r.text(), '\n')
	if len(raw) > MaxLine {
		return nil, fmt.Errorf("the request has %d bytes: %w", len(raw), ErrFull)
	}
	return raw, nil
}

// decode reads one line, without its line feed. What encode would have written
// otherwise is refused: nothing is guessed of a line that was damaged.
func decode(raw []byte) (record, error) {
	var r record
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return record{}, errors.New("the line is no record")
	}
	switch {
	case r.Version != version:
		return record{}, fmt.Errorf("the line has version %d, this program knows %d", r.Version, version)
	case r.Sum != r.checksum():
		return record{}, errors.New("the line's checksum is wrong")
	case len(r.Body) == 0, !bytes.Equal(r.text(), raw):
		return record{}, errors.New("the line is not as it was written")
	}
	return r, nil
}

// text is the record as JSON. It cannot fail for what was compacted or decoded.
func (r record) text() []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return nil
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

func (r record) mac(token string) string {
	r.MAC, r.Sum = "", ""
	h := hmac.New(sha256.New, []byte(token))
	h.Write(r.text())
	return hex.EncodeToString(h.Sum(nil))
}

func (r record) checksum() string {
	r.Sum = ""
	sum := sha256.Sum256(r.text())
	return hex.EncodeToString(sum[:])
}

func (r record) line() Line { return Line{Request: r.Request, Operation: r.Operation, Body: r.Body} }

// final reports whether the line is a terminal report, which has room of its own.
func (l Line) final() bool {
	var m struct {
		Type hub.MessageType `json:"type"`
	}
	return json.Unmarshal(l.Body, &m) == nil && m.Type == hub.TypeWorkerDone
}
