package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// fill decodes valid JSON as far as its types are those of v; a field of
// another type stays empty, so that one surprise does not hide a record.
func fill(raw []byte, v any) {
	err := json.Unmarshal(raw, v)
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); err != nil && !ok {
		panic("a record was not checked: " + err.Error())
	}
}

func first(raw json.RawMessage) byte {
	raw = bytes.TrimLeft(raw, space)
	if len(raw) == 0 {
		return 0
	}
	return raw[0]
}

// str is the string that raw is, else nothing.
func str(raw json.RawMessage) string {
	var s string
	if first(raw) == '"' {
		fill(raw, &s)
	}
	return s
}

// list is the array that raw is, else nothing.
func list(raw json.RawMessage) []json.RawMessage {
	var l []json.RawMessage
	if first(raw) == '[' {
		fill(raw, &l)
	}
	return l
}

// absent reports whether a field is missing or null.
func absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// arguments is the input that a string of JSON stands for.
func arguments(s string) json.RawMessage {
	if json.Valid([]byte(s)) {
		return json.RawMessage(s)
	}
	return quote(s)
}

func parseTime(s string) hub.Micros {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return 0
	}
	return hub.MicrosOf(t)
}

const lastMilli = 253402300799999 // the end of the year 9999

func millis(c count) hub.Micros {
	if c.n == nil || *c.n > lastMilli {
		return 0
	}
	return hub.Micros(*c.n * 1000)
}

// memory is what a carry holds of some ids.
func memory(ids ...string) string {
	h := fnv.New64a()
	for _, id := range ids {
		_, _ = h.Write([]byte(strconv.Quote(id))) // a hash takes everything
	}
	return strconv.FormatUint(h.Sum64(), 16)
}

// dataType is the media type of a data URL.
func dataType(url string) string {
	rest, ok := strings.CutPrefix(url, "data:")
	if !ok {
		return ""
	}
	media, _, _ := strings.Cut(rest, ",")
	media, _, _ = strings.Cut(media, ";")
	return media
}
