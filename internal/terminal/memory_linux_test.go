package terminal

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/proc"
)

// maxResident bounds the memory that is a supervisor's own, in KiB.
const maxResident = 8 << 10

// BenchmarkSupervisorMemory reports the RssAnon of a supervisor that has
// started a process, and of one that has seen much output and input, and fails
// above 8 MiB. It needs the real program, whose start counts: WAVEHUB_BIN_DIR
// names its folder.
func BenchmarkSupervisorMemory(b *testing.B) {
	dir := os.Getenv("WAVEHUB_BIN_DIR")
	if dir == "" {
		b.Skip("WAVEHUB_BIN_DIR does not name the folder of the program")
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join("..", "..", dir)
	}
	bin, err := filepath.Abs(filepath.Join(dir, "wavehub"))
	if err != nil {
		b.Fatal(err)
	}
	m, err := New(Config{Root: b.TempDir(), Exe: []string{bin, "supervise"}})
	if err != nil {
		b.Fatal(err)
	}
	var idle, used float64
	for b.Loop() {
		i, u := residents(b, m)
		idle, used = max(idle, i), max(used, u)
	}
	b.ReportMetric(idle/1024, "idle-MiB")
	b.ReportMetric(used/1024, "used-MiB")
	if max(idle, used) > maxResident {
		b.Errorf("RssAnon is %v and %v KiB, more than %d", idle, used, maxResident)
	}
}

// residents runs a process and returns its supervisor's memory before and after
// much output and input, in KiB.
func residents(b *testing.B, m *Manager) (idle, used float64) {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	id := hub.NewTerminalID()
	script := `stty raw -echo; echo ready; head -c 1 >/dev/null; head -c 33554432 /dev/zero; head -c 524288 >/dev/null; echo done; cat`
	inc, err := m.Launch(ctx, hub.LaunchSpec{
		Terminal: id, Argv: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")},
		Dir: b.TempDir(), PTY: &hub.TerminalSize{Rows: 24, Cols: 80},
	})
	if err != nil {
		b.Fatal(err)
	}
	step := func(data []byte, total int64) float64 {
		if len(data) > 0 {
			err = m.Input(ctx, inc, data)
		}
		if err == nil {
			_, err = m.AwaitOutput(ctx, inc, total-1)
		}
		if err != nil {
			b.Fatal(err)
		}
		return rssAnon(b, supervisorIn(b, m, id))
	}
	idle = step(nil, 6)
	step([]byte("x"), 6+32<<20)
	used = step(make([]byte, maxInput), 6+32<<20+5)
	if _, err := m.Stop(ctx, inc, -1); err != nil {
		b.Fatal(err)
	}
	return idle, used
}

func supervisorIn(b *testing.B, m *Manager, id hub.TerminalID) proc.Identity {
	b.Helper()
	var s spawn
	if found, err := load(filepath.Join(m.cfg.Root, string(id)), spawnFile, &s); err != nil || !found {
		b.Fatalf("spawn record: %v, %v", found, err)
	}
	return s.Supervisor
}

// rssAnon returns the memory of a process that no file backs, in KiB.
func rssAnon(b *testing.B, id proc.Identity) float64 {
	b.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", id.PID))
	if err != nil {
		b.Fatal(err)
	}
	_, after, _ := strings.Cut(string(raw), "RssAnon:")
	kib, err := strconv.ParseFloat(strings.Fields(after + " -")[0], 64)
	if err != nil {
		b.Fatal(err)
	}
	return kib
}
