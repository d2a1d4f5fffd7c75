package safefile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestMakeDirs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b", "c")
	for range 2 {
		if err := MakeDirs(dir); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "f")
	if err := WriteAtomic(file, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(file, "below")} {
		if err := MakeDirs(path); err == nil {
			t.Errorf("%s was made of a file", path)
		}
	}
}

func TestSettleRemovesLeftovers(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"kept.json", tempPrefix + "LEFT", tempPrefix + "MORE"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Settle(dir); err != nil {
		t.Fatal(err)
	}
	mustHoldOnly(t, dir, "kept.json")
	if err := Settle(filepath.Join(dir, "none")); err != nil {
		t.Errorf("a folder that is not there: %v", err)
	}
}

func TestMoveAndRemove(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	for _, path := range []string{from, to} {
		if err := WriteAtomic(path, []byte(path), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := Move(from, to); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadRegular(to, 1<<10); err != nil || string(got) != from {
		t.Errorf("read %q, %v", got, err)
	}
	if err := Move(from, to); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("moving nothing: %v", err)
	}
	for range 2 {
		if err := Remove(to); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

func TestReadRegularIsBounded(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if _, err := ReadRegular(path, 10); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if err := WriteAtomic(path, []byte("0123456789"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadRegular(path, 10); err != nil || len(got) != 10 {
		t.Errorf("read %q, %v", got, err)
	}
	if _, err := ReadRegular(path, 9); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a large file: %v", err)
	}
	if _, err := ReadRegular(dir, 9); !errors.Is(err, ErrUnsafe) {
		t.Errorf("a folder: %v", err)
	}
}
