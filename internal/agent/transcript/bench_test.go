package transcript

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
)

// endless is a file of one text over and over, which takes no memory.
type endless struct {
	text string
	size int64
}

func (e endless) ReadAt(p []byte, off int64) (int, error) {
	if off >= e.size {
		return 0, io.EOF
	}
	n := int64(0)
	for want := min(int64(len(p)), e.size-off); n < want; {
		n += int64(copy(p[n:want], e.text[(off+n)%int64(len(e.text)):]))
	}
	if n < int64(len(p)) {
		return int(n), io.EOF
	}
	return int(n), nil
}

// largeClaude is a transcript of that many bytes: calls, results of some
// kilobytes, now and then a very long one, and answers.
func largeClaude(size int64) endless {
	var b strings.Builder
	for n := range 200 {
		fmt.Fprintf(&b, `{"type":"assistant","uuid":"a%d","timestamp":"2026-11-30T12:36:44.265Z","sessionId":"S","message":{"id":"m%d","role":"assistant","content":[{"type":"tool_use","id":"c%d","name":"Bash","input":{"command":"cat file-%d.txt"}}],"usage":{"input_tokens":200,"cache_read_input_tokens":1000,"output_tokens":40}}}`+"\n", n, n, n, n)
		fmt.Fprintf(&b, `{"type":"user","uuid":"u%d","timestamp":"2026-11-30T12:36:44.265Z","sessionId":"S","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c%d","content":%q}]}}`+"\n", n, n, strings.Repeat("what a line of output is like\n", 40+1000*(n%50/49)))
		fmt.Fprintf(&b, `{"type":"assistant","uuid":"b%d","timestamp":"2026-11-30T12:36:44.265Z","sessionId":"S","message":{"id":"n%d","role":"assistant","content":[{"type":"text","text":"That is done."}],"usage":{"input_tokens":200,"cache_read_input_tokens":1000,"output_tokens":40}}}`+"\n", n, n)
	}
	return endless{b.String(), size - size%int64(b.Len())}
}

// BenchmarkPages reads a transcript of 100 MB page by page. One operation is one
// page; peak-MB is the largest heap seen after a page.
func BenchmarkPages(b *testing.B) {
	file := largeClaude(100 << 20)
	var at Position
	var peak uint64
	var stats runtime.MemStats
	b.ReportAllocs()
	for b.Loop() {
		page, err := Read(b.Context(), file, file.size, Claude, at, Query{})
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(max(page.Next.Offset-at.Offset, 1))
		if at = page.Next; page.AtEnd {
			at = Position{}
		}
		runtime.ReadMemStats(&stats)
		peak = max(peak, stats.HeapAlloc)
	}
	b.ReportMetric(float64(peak)/(1<<20), "peak-MB")
}

// BenchmarkSum adds up the usage of 100 MB.
func BenchmarkSum(b *testing.B) {
	file := largeClaude(100 << 20)
	b.SetBytes(file.size)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Sum(b.Context(), file, file.size, Claude); err != nil {
			b.Fatal(err)
		}
	}
}

// TestConstantMemory: the last page of a long file takes no more memory than the
// first.
func TestConstantMemory(t *testing.T) {
	file := largeClaude(64 << 20)
	one := func(at Position) func() {
		return func() {
			if _, err := Read(t.Context(), file, file.size, Claude, at, Query{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	period := int64(len(file.text))
	first, last := testing.AllocsPerRun(3, one(Position{})), testing.AllocsPerRun(3, one(Position{Offset: file.size - period}))
	if last > first*1.1+10 {
		t.Errorf("%.0f allocations for the first page, %.0f for the last", first, last)
	}
}
