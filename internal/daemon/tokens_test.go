package daemon

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

// A capability file is written when it says something else; an equal one is left
// alone.
func TestCapabilityFileIsWrittenWhenItDiffers(t *testing.T) {
	a := authority{key: []byte("key"), root: filepath.Join(t.TempDir(), "terminals"), url: "https://127.0.0.1:1", fingerprint: "sha256:x"}
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
