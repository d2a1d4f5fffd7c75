package intake

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

// BenchmarkTasksJSON reads the largest wave: 20 000 tasks with 30 000 dependencies
// and 40 000 paths.
func BenchmarkTasksJSON(b *testing.B) {
	var text strings.Builder
	text.WriteString("[\n")
	for i := range hub.MaxWaveTasks {
		fmt.Fprintf(&text, `{"task_id":"task-%d","goal":"Do what is to be done for part %d.\nAnd test it.","worker":"w-1","write_scope":["src/part%d/a.go","src/part%d/b.go"]`, i, i, i, i)
		if i > 1 {
			fmt.Fprintf(&text, `,"dependencies":["task-%d"`, i/2)
			if i%2 == 0 {
				fmt.Fprintf(&text, `,"task-%d"`, i-1)
			}
			text.WriteString("]")
		}
		text.WriteString("},\n")
	}
	benchmark(b, FormatTasksJSON, strings.TrimSuffix(text.String(), ",\n")+"]")
}

func BenchmarkSpecKit(b *testing.B) {
	var text strings.Builder
	for i := range 10_000 {
		if i%20 == 0 {
			fmt.Fprintf(&text, "\n## Phase %d\n\n", i/20+1)
		}
		fmt.Fprintf(&text, "- [ ] T%05d [P] Write part %d in src/part%d/a.go\n", i, i, i)
	}
	benchmark(b, FormatSpecKit, text.String())
}

func benchmark(b *testing.B, format, text string) {
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for b.Loop() {
		tasks, findings, _ := Read(format, "", text)
		if len(tasks) == 0 || len(findings) > 0 {
			b.Fatalf("%d tasks, %v", len(tasks), findings)
		}
	}
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(b.N)/float64(len(text)), "B/byte")
}
