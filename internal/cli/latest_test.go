package cli

import (
	"path/filepath"
	"testing"
)

// TestTheNewestRunIsNamedWhenRepeated: by then there may be a newer one.
func TestTheNewestRunIsNamedWhenRepeated(t *testing.T) {
	h := newHub(t)
	h.on("GET /v1/runs", 200, runsDoc)
	h.handle("POST /v1/runs/run_9/bind", lose)
	file := filepath.Join(t.TempDir(), "consumer")
	r := wavehub(t, "run", "use", "--latest", "--consumer-file", file)
	r.want(t, 10, "recover: wavehub run use run_9 --consumer-file "+file+" --retry-request "+h.last().head.Get("Idempotency-Key"))
	h.on("GET /v1/runs", 200, `{"runs":[],"next_cursor":null}`)
	wavehub(t, "run", "use", "--latest", "--consumer-file", file).want(t, 3, "(run_not_found)", "wavehub run create --objective")
}

func TestSubjectsOfProgress(t *testing.T) {
	for text, want := range map[string]string{
		"one": "one", "\n \ttwo \nthree": "two", "": "", " \n": "",
		"é23456789012345678901234567890123456789012345678901234567890123456789012": "é2345678901234567890123456789012345678901234567890123456789012345678901…",
	} {
		if got := firstLine(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
