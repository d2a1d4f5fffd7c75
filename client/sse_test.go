package client

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

func readAll(text string) (out []sseEvent, err error) {
	r := newSSEReader(strings.NewReader(text))
	for {
		e, err := r.next()
		if err != nil {
			return out, err
		}
		out = append(out, e)
	}
}

func TestSSE(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "EOF",
		"\n\n":                                "EOF",
		"id: 1\nevent: a\ndata: x\n\n":        "1/a/x EOF",
		"id:1\r\nevent:a\r\ndata:x\r\n\r\n":   "1/a/x EOF",
		"\ufeffdata: x\n\n":                   "//x EOF",
		": comment\n\ndata: x\n: more\n\n":    "//x EOF",
		"data: x\ndata:  y\ndata\n\n":         "//x| y| EOF",
		"event: a\nid: 1\n\ndata: x\n\n":      "//x EOF",
		"retry: 5\nunknown: 1\ndata: a:b\n\n": "//a:b EOF",
		"id: a\x00b\ndata: x\n\n":             "//x EOF",
		"data: x\n\ndata: y":                  "//x unexpected EOF",
		"data: x\n":                           "unexpected EOF",
		"data: x\n\nid: 1":                    "//x unexpected EOF",
		"data:\n\n":                           "// EOF",
	} {
		es, err := readAll(text)
		var parts []string
		for _, e := range es {
			parts = append(parts, e.id+"/"+e.name+"/"+strings.ReplaceAll(string(e.data), "\n", "|"))
		}
		if got := strings.Join(append(parts, err.Error()), " "); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestSSEIsBounded(t *testing.T) {
	half := "data: " + strings.Repeat("x", maxEvent/2) + "\n"
	if es, err := readAll(half + "\n" + half + "\n"); err != io.EOF || len(es) != 2 || len(es[0].data) != maxEvent/2 {
		t.Errorf("%d events of half the size: %v", len(es), err)
	}
	for name, text := range map[string]string{
		"one line": "data: " + strings.Repeat("x", maxEvent) + "\n\n", "two lines": half + half + "\n", "a line without end": strings.Repeat("x", maxEvent+3),
	} {
		if es, err := readAll(text); !errors.Is(err, errTooLongEvent) || len(es) != 0 {
			t.Errorf("%s: %d events, %v", name, len(es), err)
		}
	}
}

// However the bytes arrive, the events are the same.
func FuzzSSE(f *testing.F) {
	f.Add("id: 1\r\nevent: a\ndata: x\n\n: c\n\ndata", uint8(3))
	f.Fuzz(func(t *testing.T, text string, size uint8) {
		want, wantErr := readAll(text)
		r := newSSEReader(&dribble{strings.NewReader(text), int(size)%7 + 1})
		for _, w := range want {
			e, err := r.next()
			if err != nil || e.id != w.id || e.name != w.name || !bytes.Equal(e.data, w.data) {
				t.Fatalf("%+v, %v; want %+v", e, err, w)
			}
		}
		if _, err := r.next(); err == nil || err.Error() != wantErr.Error() {
			t.Fatalf("%v, want %v", err, wantErr)
		}
	})
}

// dribble reads a few bytes at a time.
type dribble struct {
	io.Reader
	n int
}

func (d *dribble) Read(b []byte) (int, error) { return d.Reader.Read(b[:min(len(b), d.n)]) }
