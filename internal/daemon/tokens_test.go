package daemon

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/wavehub/wavehub/internal/config"
	"github.com/wavehub/wavehub/internal/hub"
)

// A capability file is written when it says something else; an equal one is left
// alone.
func TestCapabilityFileIsWrittenWhenItDiffers(t *testing.T) {
	a := authority{key: []byte("key"), root: filepath.Join(t.TempDir(), "terminals"), url: "https://127.0.0.1:1", fingerprint: func() string { return "sha256:x" }}
	if err := os.Mkdir(a.root, 0o700); err != nil {
		t.Fatal(err)
	}
	at := hub.Attachment{Run: "run_a", Task: "task_a", Dispatch: "disp_a", Terminal: "term_a"}
	token, _ := a.Capability("", at.Dispatch)
	write := func() os.FileInfo {
		t.Helper()
		path, err := a.WriteFile(at, token)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	first := write()
	if !os.SameFile(first, write()) {
		t.Error("an equal file was replaced")
	}
	a.url = "https://127.0.0.1:2"
	second := write()
	if os.SameFile(first, second) {
		t.Error("the former address was left")
	}
}

// The mark of an open terminal goes with the first capability, and stays away.
func TestOpenTerminal(t *testing.T) {
	a := authority{key: []byte("key"), root: filepath.Join(t.TempDir(), "terminals"), url: "https://127.0.0.1:1", fingerprint: func() string { return "sha256:x" }}
	if err := os.Mkdir(a.root, 0o700); err != nil {
		t.Fatal(err)
	}
	file, err := a.Open("term_a")
	if err != nil {
		t.Fatal(err)
	}
	mark := filepath.Join(filepath.Dir(file), config.OpenName)
	if _, err := os.Stat(mark); err != nil {
		t.Fatal(err)
	}
	at := hub.Attachment{Run: "run_a", Task: "task_a", Dispatch: "disp_a", Terminal: "term_a"}
	for range 2 {
		path, err := a.WriteFile(at, "whd_token")
		if err != nil || path != file {
			t.Fatalf("%s, said was %s: %v", path, file, err)
		}
		if _, err := os.Stat(mark); err == nil {
			t.Error("a terminal with a capability is marked as open")
		}
	}
}
