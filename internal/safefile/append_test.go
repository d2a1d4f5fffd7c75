package safefile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestAppendKeepsAndCuts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, step := range []struct {
		keep       int64
		data, want string
	}{{0, "one\n", "one\n"}, {4, "two\nto", "one\ntwo\nto"}, {8, "three\n", "one\ntwo\nthree\n"}, {4, "", "one\n"}} {
		if err := Append(path, step.keep, []byte(step.data)); err != nil {
			t.Fatal(err)
		}
		got, err := ReadPrivate(path, 100)
		if err != nil || string(got) != step.want {
			t.Fatalf("read %q, %v; want %q", got, err, step.want)
		}
	}
	if err := Append(path, 5, []byte("x")); err == nil || errors.Is(err, ErrUncertain) {
		t.Errorf("more was kept than there is: %v", err)
	}
	mustHoldOnly(t, filepath.Dir(path), "f")
}

func TestAppendNeedsItsFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none", "f")
	if err := Append(path, 0, []byte("x")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the append ended with %v", err)
	}
}
