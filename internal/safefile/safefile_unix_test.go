//go:build unix

package safefile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestReadPrivateRefusals(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good")
	if err := WriteAtomic(good, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]func(path string) error{
		"link":           func(p string) error { return os.Symlink(good, p) },
		"group-readable": func(p string) error { return WriteAtomic(p, nil, 0o640) },
		"world-readable": func(p string) error { return WriteAtomic(p, nil, 0o604) },
		"fifo":           func(p string) error { return syscall.Mkfifo(p, 0o600) },
	}
	if os.Geteuid() == 0 {
		cases["foreign"] = func(p string) error {
			return errors.Join(WriteAtomic(p, nil, 0o600), os.Chown(p, 12345, 12345))
		}
	}
	for name, prepare := range cases {
		path := filepath.Join(dir, name)
		if err := prepare(path); err != nil {
			t.Fatal(err)
		}
		mustRefuse(t, path, func() error { _, err := ReadPrivate(path, 100); return err })
	}
}

func TestPrivateDirRefusals(t *testing.T) {
	dir := t.TempDir()
	cases := map[string]func(path string) error{
		"link":           func(p string) error { return os.Symlink(dir, p) },
		"file":           func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"group-writable": func(p string) error { return errors.Join(os.Mkdir(p, 0o700), os.Chmod(p, 0o720)) },
		"world-writable": func(p string) error { return errors.Join(os.Mkdir(p, 0o700), os.Chmod(p, 0o1777)) },
	}
	if os.Geteuid() == 0 {
		cases["foreign"] = func(p string) error { return errors.Join(os.Mkdir(p, 0o700), os.Chown(p, 12345, 12345)) }
	}
	for name, prepare := range cases {
		path := filepath.Join(dir, name)
		if err := prepare(path); err != nil {
			t.Fatal(err)
		}
		mustRefuse(t, path, func() error { return PrivateDir(path) })
	}
}

func TestModesIgnoreUmask(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	path := filepath.Join(t.TempDir(), "f")
	if err := WriteAtomic(path, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
}

func mustRefuse(t *testing.T, path string, do func() error) {
	t.Helper()
	err := do()
	if !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "fix: ") {
		t.Errorf("%s: %v", path, err)
	}
}
