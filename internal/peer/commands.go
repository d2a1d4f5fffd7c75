package peer

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
)

// commandFields hold commands for people to run.
var commandFields = []string{"next_commands", "resume_command"}

func holdsCommands(field string) bool {
	return slices.ContainsFunc(commandFields, func(name string) bool { return strings.EqualFold(name, field) }) // as decoders compare them
}

// withoutCommands empties every field of a document that holds commands, however
// deep it lies, and leaves all else as it is, byte by byte: whoever pasted such a
// command would run here what a peer has written.
func withoutCommands(doc []byte) ([]byte, error) {
	if !json.Valid(doc) { // which bounds its depth too
		return nil, errors.New("it is no JSON document")
	}
	c := trimmer{doc: doc, dec: json.NewDecoder(bytes.NewReader(doc))}
	c.dec.UseNumber() // any that is one is left as it is
	for {
		token, err := c.dec.Token()
		if errors.Is(err, io.EOF) {
			return append(c.out, doc[c.done:]...), nil
		}
		if err == nil {
			err = c.take(token)
		}
		if err != nil {
			return nil, err
		}
	}
}

// trimmer copies a document from token to token.
type trimmer struct {
	doc  []byte
	dec  *json.Decoder
	out  []byte
	done int64 // how much of doc is in out or left away
	open []level
}

// level is an object or array that is not closed yet; in an object key says that
// a key comes next.
type level struct{ object, key bool }

func (c *trimmer) take(token json.Token) error {
	if d, ok := token.(json.Delim); ok && (d == '}' || d == ']') {
		c.open = c.open[:len(c.open)-1]
		return nil
	}
	var in *level
	if len(c.open) > 0 {
		in = &c.open[len(c.open)-1]
	}
	if name, ok := token.(string); ok && in != nil && in.object && in.key {
		if holdsCommands(name) {
			return c.empty()
		}
		in.key = false
		return nil
	}
	if in != nil {
		in.key = in.object
	}
	if d, ok := token.(json.Delim); ok {
		c.open = append(c.open, level{object: d == '{', key: d == '{'})
	}
	return nil
}

// empty puts an empty list in the place of the value that follows.
func (c *trimmer) empty() error {
	var value json.RawMessage
	if err := c.dec.Decode(&value); err != nil {
		return err
	}
	end := c.dec.InputOffset()
	c.out = append(append(c.out, c.doc[c.done:end-int64(len(value))]...), "[]"...)
	c.done = end
	return nil
}
