//go:build unix

package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"
)

// What TestMain prepares for all tests.
var (
	wavehubBin, fakeagentBin string
	runtimeDir               string // short: socket paths are limited
)

func TestMain(m *testing.M) { os.Exit(prepared(m)) }

func prepared(m *testing.M) int {
	dir, err := os.MkdirTemp("", "whe")
	if err == nil {
		defer os.RemoveAll(dir)
		runtimeDir = filepath.Join(dir, "run")
		err = os.Mkdir(runtimeDir, 0o700)
	}
	if err == nil {
		err = findBinaries(dir)
	}
	if err == nil {
		err = crowd()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "preparing the tests:", err)
		return 1
	}
	return m.Run()
}

// crowd runs twice as many tests at once as there are cores, unless -parallel says
// how many: most of their time they wait for processes.
func crowd() error {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return nil
	}
	return flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0)))
}

const moduleRoot = "../.."

func findBinaries(dir string) error {
	bin := os.Getenv("WAVEHUB_BIN_DIR")
	if bin == "" {
		bin = filepath.Join(dir, "bin")
		if err := build(bin); err != nil {
			return err
		}
	} else if !filepath.IsAbs(bin) {
		bin = filepath.Join(moduleRoot, bin)
	}
	bin, err := filepath.Abs(bin)
	if err != nil {
		return err
	}
	wavehubBin, fakeagentBin = filepath.Join(bin, "wavehub"), filepath.Join(bin, "fakeagent")
	for _, path := range []string{wavehubBin, fakeagentBin} {
		if _, err := os.Stat(path); err != nil {
			return err
		}
	}
	return nil
}

func build(into string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "build", "-o", into+string(filepath.Separator), "./cmd/wavehub", "./cmd/fakeagent")
	cmd.Dir = moduleRoot
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// atMediumScale skips what takes the better part of a minute for one case.
func atMediumScale(t testing.TB) {
	t.Helper()
	if s := os.Getenv("WAVEHUB_TEST_SCALE"); s == "" || s == "small" {
		t.Skip("not run at small scale: make e2e, or WAVEHUB_TEST_SCALE=medium, runs it")
	}
}

// scaled returns the count for WAVEHUB_TEST_SCALE and prints it.
func scaled(t testing.TB, small, medium, full int) int {
	t.Helper()
	n := map[string]int{"": small, "small": small, "medium": medium, "full": full}[os.Getenv("WAVEHUB_TEST_SCALE")]
	if n == 0 {
		t.Fatalf("WAVEHUB_TEST_SCALE=%q is none of small, medium, full", os.Getenv("WAVEHUB_TEST_SCALE"))
	}
	t.Logf("count: %d", n)
	return n
}
