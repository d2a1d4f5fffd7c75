//go:build unix && !linux

package e2e

import (
	"os"
	"testing"
	"time"
)

func dataSync(f *os.File) error { return f.Sync() }

func cpuTime(b *testing.B, _ int) time.Duration {
	b.Helper()
	b.Skip("the time that another process has used is read from /proc, on Linux only")
	return 0
}

func residentBytes(b *testing.B, _ int) int64 {
	b.Helper()
	b.Skip("the memory of another process is read from /proc, on Linux only")
	return 0
}
