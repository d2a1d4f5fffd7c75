package main

import (
	"strings"
	"testing"
)

func TestSummary(t *testing.T) {
	const passing = `{"Action":"start","Package":"p"}
{"Action":"output","Package":"p","Test":"TestQuiet","Output":"quiet words\n"}
{"Action":"pass","Package":"p","Test":"TestQuiet"}
{"Action":"output","Package":"p","Test":"TestSkip","Output":"=== RUN   TestSkip\n"}
{"Action":"output","Package":"p","Test":"TestSkip","Output":"    a_test.go:3: no terminal here\n"}
{"Action":"skip","Package":"p","Test":"TestSkip"}
{"Action":"output","Package":"p","Output":"PASS\n"}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}
{"Action":"pass","Package":"p"}
`
	for name, c := range map[string]struct {
		in         string
		want, not  []string
		successful bool
	}{
		"passing": {passing, []string{"ok  \tp\t0.1s\n", "skipped p TestSkip: a_test.go:3: no terminal here", "1 passed, 0 failed, 1 skipped; packages: 1, 0"}, []string{"quiet", "PASS"}, true},
		"a failing test": {passing + `{"Action":"output","Package":"q","Test":"TestBad","Output":"why it failed\n"}
{"Action":"fail","Package":"q","Test":"TestBad"}
{"Action":"output","Package":"q","Output":"FAIL\tq\t0.1s\n"}
{"Action":"fail","Package":"q"}
`, []string{"why it failed", "FAIL\tq\t0.1s", "1 passed, 1 failed"}, nil, false},
		"a package that does not compile": {passing + `{"ImportPath":"q","Action":"build-output","Output":"undefined: x\n"}
{"ImportPath":"q","Action":"build-fail"}
{"Action":"output","Package":"q","Output":"FAIL\tq [build failed]\n"}
{"Action":"fail","Package":"q","FailedBuild":"q"}
`, []string{"undefined: x", "FAIL\tq [build failed]", "packages: 2, 1"}, nil, false},
		"a test that never ended": {passing + `{"Action":"output","Package":"q","Test":"TestHang","Output":"last words\n"}
{"Action":"fail","Package":"q"}
`, []string{"unfinished: q TestHang", "last words"}, nil, false},
		"nothing tested": {"go: no packages\n", []string{"go: no packages", "0 passed"}, nil, false},
	} {
		var out strings.Builder
		s := newSummary(&out)
		if err := s.read(strings.NewReader(c.in)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := s.finish(); got != c.successful {
			t.Errorf("%s: successful = %v", name, got)
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: %q is not in:\n%s", name, want, out.String())
			}
		}
		for _, not := range c.not {
			if strings.Contains(out.String(), not) {
				t.Errorf("%s: %q is in:\n%s", name, not, out.String())
			}
		}
	}
}
