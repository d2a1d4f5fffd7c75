//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

const moduleRoot = "../.."

// wavehub is the program in WAVEHUB_BIN_DIR (relative to the module's root), or
// one that is built here.
func wavehub(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("WAVEHUB_BIN_DIR"); dir != "" {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(moduleRoot, dir)
		}
		return filepath.Join(dir, "wavehub")
	}
	bin := filepath.Join(t.TempDir(), "wavehub")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "./cmd/wavehub")
	cmd.Dir = moduleRoot
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building wavehub: %v\n%s", err, out)
	}
	return bin
}

// threeKills is a seed that kills a hub after one second, and after three both
// before and after its restart is ready.
const threeKills = 147

func TestSoak_ASmallOneKeepsAllPromises(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	cfg := size{bin: wavehub(t), duration: 6 * time.Second, coordinators: 2, workers: 6, seed: threeKills, kills: 2 * time.Second}
	b, err := run(t.Context(), cfg, &out)
	t.Logf("%s", &out)
	if err != nil {
		t.Fatal(err)
	}
	if b.kills < 2 || b.crashes == 0 || b.rebinds == 0 || len(b.starts) <= cfg.workers {
		t.Errorf("little happened: %s", b.soFar())
	}
}
