package spool_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/spool"
)

const token = "whd_capability"

// newPlace is a place in a private folder of its own.
func newPlace(t testing.TB) spool.Place {
	t.Helper()
	return spool.Place{Root: filepath.Join(t.TempDir(), "root"), Terminal: hub.NewTerminalID(), Dispatch: hub.NewDispatchID()}
}

// status is a line whose body says text.
func status(text string) spool.Line { return lineOf("status", text) }

func lineOf(kind, text string) spool.Line {
	body, err := json.Marshal(map[string]string{"type": kind, "body": text})
	if err != nil {
		panic(err)
	}
	return spool.Line{Request: hub.NewRequestID(), Operation: "sendMessage", Body: body}
}

func appended(t testing.TB, p spool.Place, lines ...spool.Line) {
	t.Helper()
	for _, l := range lines {
		if err := spool.Append(t.Context(), p, token, l); err != nil {
			t.Fatal(err)
		}
	}
}

// home is a hub that recognises requests that it has taken, as receipts do.
type home struct {
	taken   []string
	seen    map[hub.RequestID]bool
	refused []spool.Entry
}

func (h *home) take(e spool.Entry) error {
	switch {
	case !e.ProvenBy(token):
		h.refused = append(h.refused, e)
	case !h.seen[e.Line.Request]:
		if h.seen == nil {
			h.seen = map[hub.RequestID]bool{}
		}
		h.seen[e.Line.Request] = true
		h.taken = append(h.taken, textOf(e.Line))
	}
	return nil
}

func textOf(l spool.Line) string {
	var m struct{ Body string }
	if err := json.Unmarshal(l.Body, &m); err != nil {
		return err.Error()
	}
	return m.Body
}

func (h *home) drain(t testing.TB, p spool.Place) {
	t.Helper()
	if err := spool.Drain(t.Context(), p, h.take); err != nil {
		t.Fatal(err)
	}
}

func (h *home) wants(t testing.TB, texts ...string) {
	t.Helper()
	if got, want := strings.Join(h.taken, " "), strings.Join(texts, " "); got != want {
		t.Fatalf("taken are %q, want %q", got, want)
	}
}

// gone wants that nothing of the spool but its lock is left, and no mark.
func gone(t testing.TB, p spool.Place) {
	t.Helper()
	if _, err := os.Lstat(p.File()); !os.IsNotExist(err) {
		t.Fatalf("the spool is there: %v", err)
	}
	if ids, err := spool.Waiting(p.Root); err != nil || len(ids) != 0 {
		t.Fatalf("waiting are %v %v", ids, err)
	}
	if waits, err := spool.Waits(p.Root, p.Dispatch); err != nil || waits {
		t.Fatalf("it waits: %v %v", waits, err)
	}
}

func content(t testing.TB, p spool.Place) []byte {
	t.Helper()
	raw, err := os.ReadFile(p.File())
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func put(t testing.TB, p spool.Place, raw []byte) {
	t.Helper()
	if err := os.WriteFile(p.File(), raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

// copyOf is the state of a place at this moment, as a crash would leave it.
func copyOf(t testing.TB, p spool.Place) spool.Place {
	t.Helper()
	to := p
	to.Root = filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to.Root, os.DirFS(p.Root)); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(to.Root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return os.Chmod(path, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

func numbered(n int) (lines []spool.Line, texts []string) {
	for i := range n {
		text := fmt.Sprintf("line-%d", i)
		lines, texts = append(lines, status(text)), append(texts, text)
	}
	return lines, texts
}
