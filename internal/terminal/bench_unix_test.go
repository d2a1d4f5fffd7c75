//go:build unix

package terminal

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
)

// BenchmarkOutput is the way of output through supervisor and log. The floors
// are 100 MB/s for pipes and 30 MB/s for a pseudo terminal.
func BenchmarkOutput(b *testing.B) {
	for kind, pty := range map[string]*hub.TerminalSize{"pipes": nil, "PTY": {Rows: 24, Cols: 80}} {
		b.Run(kind, func(b *testing.B) {
			m, err := New(Config{Root: b.TempDir(), Exe: []string{os.Args[0]}})
			if err != nil {
				b.Fatal(err)
			}
			const size = 64 << 20
			b.SetBytes(size)
			for b.Loop() {
				spew(b, m, pty, size)
			}
		})
	}
}

// spew runs a process that writes size bytes.
func spew(b *testing.B, m *Manager, pty *hub.TerminalSize, size int) {
	b.Helper()
	id := hub.NewTerminalID()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	inc, err := m.Launch(ctx, hub.LaunchSpec{
		Terminal: id, Argv: []string{os.Args[0]}, Dir: b.TempDir(), PTY: pty, OutputCap: 16 << 20,
		Env: []string{roleVar + "=spew", argVar + "=" + strconv.Itoa(size)},
	})
	if err != nil {
		b.Fatal(err)
	}
	if state, err := m.Wait(ctx, inc); err != nil || state.Liveness != hub.Exited {
		b.Fatal(state, err)
	}
	r, err := m.Output(ctx, id, 0, 0)
	if err != nil || r.Total != int64(size) {
		b.Fatal(r.Total, err)
	}
	if err := m.Remove(id); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkScreen renders as much output as one screen is rendered from.
func BenchmarkScreen(b *testing.B) {
	size := hub.TerminalSize{Rows: 40, Cols: 120}
	line := "\x1b[2;7H\x1b[38;5;200mcoloured\x1b[0m words 日本語, plain words and more of them\x1b[K\r\n"
	v := view{size: size, scrollback: 1000, output: []byte(strings.Repeat(line, maxFed/len(line)))}
	b.SetBytes(int64(len(v.output)))
	for b.Loop() {
		if _, err := v.guarded(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}
