package spool

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

// FuzzDecode: no bytes make the decoder fail otherwise than by its error, and
// what it takes is exactly what was written.
func FuzzDecode(f *testing.F) {
	good, err := Line{Request: hub.NewRequestID(), Operation: "sendMessage", Body: json.RawMessage(`{"type":"status","body":"<x>"}`)}.encode("token")
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range [][]byte{good, bytes.TrimSuffix(good, []byte("\n")), {}, []byte("{}"), []byte(`{"v":1,"body":null}`), bytes.Repeat([]byte("["), 100)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := decode(raw)
		if err != nil {
			return
		}
		if r.Version != version || r.Sum != r.checksum() || !bytes.Equal(r.text(), raw) || !json.Valid(r.Body) {
			t.Fatalf("%q was taken as %+v", raw, r)
		}
		r.MAC = r.mac("token")
		r.Sum = r.checksum()
		again, err := r.line().encode("token")
		if err != nil || !bytes.Equal(bytes.TrimSuffix(again, []byte("\n")), r.text()) {
			t.Fatalf("%q is written as %q %v", raw, again, err)
		}
	})
}

// FuzzSplit: the lines of any file are its bytes up to the last line feed.
func FuzzSplit(f *testing.F) {
	f.Add([]byte("a\n\nb\ntorn"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var all []byte
		for _, e := range split(raw) {
			all = append(append(all, e.Raw...), '\n')
		}
		if !bytes.Equal(all, whole(raw)) {
			t.Fatalf("%q was split into %q", raw, all)
		}
	})
}
