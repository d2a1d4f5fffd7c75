package server

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

func TestParseStrict(t *testing.T) {
	for doc, ok := range map[string]bool{
		`{}`: true, ` [1, "a", null, true] `: true, `"x"`: true, `7`: true, `{"a":{"a":1}}`: true, `[{"a":1},{"a":2}]`: true,
		`"\ud83d\ude00"`: true, `"\\ud83d"`: true, `"\u0041"`: true, `1e308`: true, `-0`: true, `"` + "\u00e9" + `"`: true,
		strings.Repeat("[", 32) + strings.Repeat("]", 32): true,
		strings.Repeat("[", 33) + strings.Repeat("]", 33): false,
		"[" + strings.Repeat("1,", maxValues-2) + "1]":    true,
		"[" + strings.Repeat("1,", maxValues-1) + "1]":    false,
		``: false, `{`: false, `{"a":1,"a":2}`: false, `{"a":1,"\u0061":2}`: false, `{"x":[{"b":1,"b":1}]}`: false, `1 2`: false, `{}}`: false,
		`1e309`: false, `-1e999`: false, `01`: false, `nan`: false, `'a'`: false, `{a:1}`: false, `[1,]`: false, `"\ud83d"`: false,
		`"\ude00\ud83d"`: false, `"\ud83dx"`: false, `{"\udead":1}`: false, "\"\xc3\"": false, "\xef\xbb\xbf{}": false, "\"a\nb\"": false, `"\ud83d\u0041"`: false,
	} {
		_, err := parseStrict([]byte(doc))
		if (err == nil) != ok {
			t.Errorf("%.80q: %v", doc, err)
		}
		if err != nil && !hub.IsCode(err, hub.CodeInvalidJson) {
			t.Errorf("%.80q: code %s", doc, hub.CodeOf(err))
		}
	}
}

// FuzzParseStrict: what is taken means the same to the standard decoder.
func FuzzParseStrict(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5e3,"x\u0041\ud83d\ude00"]}`, `{"a":1,"a":2}`, `[[[]]]`, `"\ud800"`, `1e400`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := parseStrict(raw)
		if err != nil {
			return
		}
		dec := json.NewDecoder(strings.NewReader(string(raw)))
		dec.UseNumber()
		var want any
		if err := dec.Decode(&want); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %v, want %v, %v", raw, got, want, err)
		}
	})
}
