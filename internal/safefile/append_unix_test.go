//go:build unix

package safefile

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestAppendRefusals(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good")
	if err := WriteAtomic(good, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, prepare := range map[string]func(path string) error{
		"link":           func(p string) error { return os.Symlink(good, p) },
		"dangling link":  func(p string) error { return os.Symlink(p+"x", p) },
		"world-readable": func(p string) error { return WriteAtomic(p, nil, 0o604) },
		"fifo":           func(p string) error { return syscall.Mkfifo(p, 0o600) },
	} {
		path := filepath.Join(dir, name)
		if err := prepare(path); err != nil {
			t.Fatal(err)
		}
		mustRefuse(t, path, func() error { return Append(path, 0, []byte("x")) })
	}
}

// A write that fails half-way leaves what was there before.
func TestAppendThatFailsLeavesFormer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := Append(path, 0, []byte("former\n")); err != nil {
		t.Fatal(err)
	}
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	small := was
	small.Cur = 4096
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small); err != nil {
		t.Fatal(err)
	}
	err := Append(path, 7, make([]byte, 10_000)) // the runtime ignores SIGXFSZ
	if back := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); back != nil {
		t.Fatal(back)
	}
	if !errors.Is(err, syscall.EFBIG) || errors.Is(err, ErrUncertain) {
		t.Errorf("the append ended with %v", err)
	}
	if got, err := ReadPrivate(path, 100); err != nil || string(got) != "former\n" {
		t.Errorf("%d bytes are left: %v", len(got), err)
	}
}
