// Command testsum reads the output of "go test -json" and prints what a reader
// needs: the go command's closing line of each package as it comes, the whole
// output of tests that failed, compiler errors, and at the end the skipped
// tests with their reasons and the counts. It ends with 1 if a package failed or
// if nothing was tested; the pipeline's caller also has go test's own status.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// maxLine bounds one event: a line of a test's output and its envelope.
const maxLine = 16 << 20

type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
}

type summary struct {
	out                      io.Writer
	passed, failed, skipped  int
	packages, failedPackages int
	pending                  map[string]*strings.Builder // by package and test
	reasons                  []string
}

func main() {
	s := newSummary(os.Stdout)
	if err := s.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
		os.Exit(1)
	}
	if !s.finish() {
		os.Exit(1)
	}
}

func newSummary(out io.Writer) *summary {
	return &summary{out: out, pending: map[string]*strings.Builder{}}
}

func (s *summary) read(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Action == "" {
			fmt.Fprintln(s.out, lines.Text()) // not an event: the go command's own words
			continue
		}
		s.add(e)
	}
	return lines.Err()
}

func (s *summary) add(e event) {
	key := e.Package + " " + e.Test
	switch {
	case e.Action == "build-output":
		fmt.Fprint(s.out, e.Output)
	case e.Action == "output" && e.Test == "":
		s.packageLine(e)
	case e.Action == "output":
		s.buffer(key).WriteString(e.Output)
	case e.Test != "":
		s.testEnd(e, key)
	case e.Action == "pass" || e.Action == "fail" || e.Action == "skip":
		s.packageEnd(e)
	}
}

// packageLine prints what a package says outside its tests: its closing line,
// a panic, a TestMain's complaint.
func (s *summary) packageLine(e event) {
	if e.Output != "PASS\n" && e.Output != "FAIL\n" {
		fmt.Fprint(s.out, e.Output)
	}
}

func (s *summary) testEnd(e event, key string) {
	switch e.Action {
	case "pass":
		s.passed++
	case "fail":
		s.failed++
		fmt.Fprint(s.out, s.buffer(key).String())
	case "skip":
		s.skipped++
		s.reasons = append(s.reasons, fmt.Sprintf("skipped %s %s: %s", e.Package, e.Test, reason(s.buffer(key).String())))
	default:
		return
	}
	delete(s.pending, key)
}

// packageEnd prints the output of tests that never ended, as after a panic or a
// time-out.
func (s *summary) packageEnd(e event) {
	s.packages++
	if e.Action == "fail" {
		s.failedPackages++
	}
	for key, b := range s.pending {
		if !strings.HasPrefix(key, e.Package+" ") {
			continue
		}
		if e.Action == "fail" {
			fmt.Fprintf(s.out, "unfinished: %s\n%s", key, b.String())
		}
		delete(s.pending, key)
	}
}

// finish prints the end of the report and says whether all is well.
func (s *summary) finish() bool {
	for _, r := range s.reasons {
		fmt.Fprintln(s.out, r)
	}
	fmt.Fprintf(s.out, "tests: %d passed, %d failed, %d skipped; packages: %d, %d of them failed\n",
		s.passed, s.failed, s.skipped, s.packages, s.failedPackages)
	return s.failed == 0 && s.failedPackages == 0 && s.passed > 0
}

func (s *summary) buffer(key string) *strings.Builder {
	b, ok := s.pending[key]
	if !ok {
		b = &strings.Builder{}
		s.pending[key] = b
	}
	return b
}

// reason is the message of a skip: the output without the runner's own lines.
func reason(output string) string {
	var said []string
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			said = append(said, line)
		}
	}
	return strings.Join(said, " ")
}
