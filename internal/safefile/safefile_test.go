package safefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestWriteAtomicReplacesWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	versions := []string{"first", "second, longer"}
	for _, v := range versions {
		if err := WriteAtomic(path, []byte(v), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := ReadPrivate(path, 100)
		if err != nil || string(got) != v {
			t.Fatalf("read %q, %v; want %q", got, err, v)
		}
	}
	mustHoldOnly(t, filepath.Dir(path), "f")
}

func TestWriteAtomicNeverShowsHalf(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	a, b := make([]byte, 1<<16), make([]byte, 1<<16)
	for i := range b {
		b[i] = 'b'
	}
	if err := WriteAtomic(path, a, 0o600); err != nil {
		t.Fatal(err)
	}
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := range 50 {
			if err := WriteAtomic(path, [][]byte{a, b}[i%2], 0o600); err != nil {
				t.Error(err)
			}
		}
	})
	for range 200 {
		got, err := ReadPrivate(path, 1<<20)
		if err != nil || len(got) != len(a) || got[0] != got[len(got)-1] {
			t.Fatalf("a reader saw %d bytes, %v", len(got), err)
		}
	}
	writer.Wait()
}

func TestWriteAtomicFailureLeavesFormer(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "d")
	if err := os.MkdirAll(filepath.Join(target, "child"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := WriteAtomic(target, []byte("x"), 0o600); err == nil {
		t.Fatal("a folder was replaced by a file")
	}
	mustHoldOnly(t, dir, "d")
}

func TestCreateExclusive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := CreateExclusive(path, []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := CreateExclusive(path, []byte("b"), 0o600); !errors.Is(err, fs.ErrExist) {
		t.Fatalf("second create: %v", err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "a" {
		t.Fatalf("read %q, %v", got, err)
	}
}

func TestReadPrivateLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := WriteAtomic(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadPrivate(path, 5); err != nil {
		t.Error(err)
	}
	if _, err := ReadPrivate(path, 4); !errors.Is(err, ErrTooLarge) {
		t.Errorf("over the limit: %v", err)
	}
	if _, err := ReadPrivate(path+"x", 4); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	if _, err := ReadPrivate(filepath.Dir(path), 4); !errors.Is(err, ErrUnsafe) {
		t.Errorf("folder: %v", err)
	}
}

func TestPrivateDirCreatesAndAccepts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	for range 2 {
		if err := PrivateDir(path); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSyncFolders(t *testing.T) {
	synced := map[string]string{
		"Dropbox": "Dropbox", "Dropbox (Work)": "Dropbox", "OneDrive - Contoso": "OneDrive", "OneDrive": "OneDrive",
		"Mobile Documents": "iCloud Drive", "GoogleDrive-a@b.c": "Google Drive", "dropboxes": "", "src": "",
	}
	for part, want := range synced {
		path := filepath.Join(t.TempDir(), part, "data")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		got, network, err := NetworkFS(path)
		if err != nil {
			t.Fatal(err)
		}
		if want != "" && (got != want || !network) || want == "" && network {
			t.Errorf("%s: %q %v, want %q", part, got, network, want)
		}
	}
}

func mustHoldOnly(t *testing.T, dir, name string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != name {
		t.Errorf("%s holds %v, %v; want only %s", dir, entries, err, name)
	}
}
