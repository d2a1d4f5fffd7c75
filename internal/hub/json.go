package hub

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// PlainJSON writes one JSON document in the shortest way that says the same in
// the same order: no white space, no escape where UTF-8 does. Limits count that,
// whatever way the sender had to write it.
func PlainJSON(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	p := plain{dec: json.NewDecoder(bytes.NewReader(raw))}
	p.dec.UseNumber()
	if err := p.value(); err != nil {
		return nil, err
	}
	if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one document")
	}
	return p.out.Bytes(), nil
}

type plain struct {
	dec *json.Decoder
	out bytes.Buffer
}

func (p *plain) value() error {
	t, err := p.dec.Token()
	if err != nil {
		return err
	}
	switch t {
	case json.Delim('{'):
		return p.members("{", "}", true)
	case json.Delim('['):
		return p.members("[", "]", false)
	}
	return p.scalar(t)
}

// members writes what is between two delimiters; of an object every other value
// is a name.
func (p *plain) members(open, shut string, named bool) error {
	p.out.WriteString(open)
	for n := 0; p.dec.More(); n++ {
		if n > 0 {
			p.out.WriteByte(',')
		}
		if named {
			if err := p.value(); err != nil {
				return err
			}
			p.out.WriteByte(':')
		}
		if err := p.value(); err != nil {
			return err
		}
	}
	p.out.WriteString(shut)
	_, err := p.dec.Token()
	return err
}

func (p *plain) scalar(v any) error {
	enc := json.NewEncoder(&p.out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	p.out.Truncate(p.out.Len() - 1) // the line's end
	return nil
}

// sameJSON is the text that all documents with one meaning have in common: that
// of PlainJSON with the members of objects sorted. What is no JSON stands for
// itself.
func sameJSON(raw json.RawMessage) string {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return string(raw)
	}
	out, err := json.Marshal(v)
	if err != nil {
		return string(raw)
	}
	return string(out)
}
