package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func dataSync(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }

// ticksPerSecond is USER_HZ, which is 100 on all systems that Go supports.
const ticksPerSecond = 100

// cpuTime is the time that the process has used so far.
func cpuTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must(b, err)
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
	user, err := strconv.ParseInt(fields[11], 10, 64)
	must(b, err)
	system, err := strconv.ParseInt(fields[12], 10, 64)
	must(b, err)
	return time.Duration(user+system) * time.Second / ticksPerSecond
}

// residentBytes is the anonymous memory that the process holds.
func residentBytes(b testing.TB, pid int) int64 {
	b.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(b, err)
	_, rest, ok := strings.Cut(string(raw), "RssAnon:")
	if !ok {
		b.Fatal("the system does not tell RssAnon")
	}
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	must(b, err)
	return kib << 10
}
