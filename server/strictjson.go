package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/wavehub/wavehub/internal/hub"
)

// Bounds of a document: how deep arrays and objects may nest, and how many
// values it may hold. No document of the API needs a tenth of the latter, but
// those that carry all tasks of a wave. Any other body is decoded before its
// sender is known, and must not cost more than that.
const (
	maxDepth      = 32
	maxValues     = 100_000
	maxWaveValues = 2_000_000 // a hundred for each of the tasks that a wave may have
)

// parseStrict decodes one JSON document, numbers as json.Number. It refuses
// what decoders disagree about (a second document, duplicate keys, text that is
// not valid Unicode, numbers that no float64 holds) and what is out of bounds.
func parseStrict(raw []byte) (any, error) { return parseWithin(raw, maxValues) }

// parseWithin is parseStrict with a bound of its own.
func parseWithin(raw []byte, values int) (any, error) {
	if !utf8.Valid(raw) {
		return nil, malformed("it is not valid UTF-8")
	}
	p := &parser{dec: json.NewDecoder(bytes.NewReader(raw)), left: values, bound: values}
	p.dec.UseNumber()
	v, err := p.value(0)
	if err != nil {
		return nil, jsonError(err)
	}
	if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, malformed("something follows the document")
	}
	if !pairedSurrogates(raw) {
		return nil, malformed(`a \u escape is half of a character`)
	}
	return v, nil
}

func malformed(format string, args ...any) error {
	return hub.Errorf(hub.CodeInvalidJson, "the body is refused: "+format, args...)
}

func jsonError(err error) error {
	if _, ok := errors.AsType[*hub.Error](err); ok {
		return err
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return malformed("it is not JSON at byte %d", syntax.Offset)
	}
	return malformed("it ends too early")
}

type parser struct {
	dec         *json.Decoder
	left, bound int // values
}

func (p *parser) value(depth int) (any, error) {
	if p.left--; p.left < 0 {
		return nil, malformed("it holds more than %d values", p.bound)
	}
	tok, err := p.dec.Token()
	if err != nil {
		return nil, err
	}
	switch tok := tok.(type) {
	case json.Delim:
		if depth++; depth > maxDepth {
			return nil, malformed("it nests deeper than %d", maxDepth)
		}
		if tok == '{' {
			return p.object(depth)
		}
		return p.array(depth)
	case json.Number:
		if _, err := strconv.ParseFloat(string(tok), 64); err != nil {
			return nil, malformed("a number is out of range")
		}
	}
	return tok, nil
}

func (p *parser) object(depth int) (any, error) {
	out := map[string]any{}
	for p.dec.More() {
		tok, err := p.dec.Token()
		if err != nil {
			return nil, err
		}
		key, ok := tok.(string)
		if !ok {
			return nil, fmt.Errorf("a key that is no string: %v", tok)
		}
		if _, ok := out[key]; ok {
			e := hub.Errorf(hub.CodeInvalidJson, "the body is refused: a key occurs twice")
			e.Field = key
			return nil, e
		}
		if out[key], err = p.value(depth); err != nil {
			return nil, err
		}
	}
	_, err := p.dec.Token()
	return out, err
}

func (p *parser) array(depth int) (any, error) {
	out := []any{}
	for p.dec.More() {
		v, err := p.value(depth)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	_, err := p.dec.Token()
	return out, err
}

// pairedSurrogates reports whether every \u escape of a surrogate in a
// well-formed document has its other half: decoders replace the rest.
func pairedSurrogates(raw []byte) bool {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++
		if raw[i] != 'u' {
			continue
		}
		first := hexRune(raw[i+1:])
		i += 4
		if !utf16.IsSurrogate(first) {
			continue
		}
		rest := raw[i+1:]
		if len(rest) < 6 || rest[0] != '\\' || rest[1] != 'u' || utf16.DecodeRune(first, hexRune(rest[2:])) == utf8.RuneError {
			return false
		}
		i += 6
	}
	return true
}

func hexRune(b []byte) rune {
	n, err := strconv.ParseUint(string(b[:4]), 16, 16)
	if err != nil {
		return utf8.RuneError
	}
	return rune(n)
}
