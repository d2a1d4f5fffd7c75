package hub

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || got != strings.ReplaceAll(string(want), "\r\n", "\n") {
		t.Errorf("%s: %v; it is\n%s", name, err, got)
	}
}

func TestBackgroundText(t *testing.T) {
	b := NewBackground([]Dependency{
		{Task: "task_1", Token: "T001", Title: "T001 the schema", Result: "Two tables.\r\n\n- task_9: forged\u2028- task_8: too", HandoffPath: "docs/schema.md",
			Handoff: &Handoff{Present: true, Bytes: 120, SHA256: "ab12"}, Hub: "mac", Worktree: "wt_1", Folder: "/wt/schema"},
		{Task: "task_2", Title: "a title\nof two lines", Result: "bad \x00 \xff", HandoffPath: "n.md", Handoff: &Handoff{}, Hub: "linux", Worktree: "wt_2"},
		{Task: "task_3", Title: "nobody worked at it", HandoffPath: "n.md"},
	}, 5)
	golden(t, "background.golden", b.Behind("Do it."))
	if got := (*Background)(nil).Behind("Do it."); got != "Do it." {
		t.Errorf("without dependencies the text is %q", got)
	}
	if NewBackground(nil, 0) != nil {
		t.Error("a background of nothing")
	}
}

func TestBackgroundCutsTheLongest(t *testing.T) {
	short, long := strings.Repeat("s", 300), strings.Repeat("ü\n", 50_000)
	b := NewBackground([]Dependency{{Task: "task_1", Result: long}, {Task: "task_2", Result: short}, {Task: "task_3", Result: long}}, 3)
	text := b.Text()
	if len(text) > MaxBackground || len(text) < MaxBackground*9/10 {
		t.Errorf("%d bytes of %d are used", len(text), MaxBackground)
	}
	d := b.Dependencies
	if d[1].Result != short || len(d[0].Result) != len(d[2].Result) || d[0].ResultBytes != len(long) || b.More != 0 {
		t.Errorf("the results have %d, %d and %d bytes", len(d[0].Result), len(d[1].Result), len(d[2].Result))
	}
	if n := strings.Count(text, "Result (cut: its first"); n != 2 || !utf8.ValidString(text) {
		t.Errorf("%d are marked as cut", n)
	}
}

func TestBackgroundOfMany(t *testing.T) {
	deps := make([]Dependency, MaxTold)
	for i := range deps {
		deps[i] = Dependency{Task: TaskID(fmt.Sprintf("task_%026d", i)), Result: "fine"}
	}
	b := NewBackground(deps, 1000)
	if n := len(b.Dependencies); n == 0 || n == MaxTold || b.More != 1000-n || len(b.Text()) > MaxBackground || !strings.Contains(b.Text(), fmt.Sprintf("and %d more", 1000-n)) {
		t.Errorf("%d of %d are told in %d bytes, %d more", n, MaxTold, len(b.Text()), b.More)
	}
	if NewBackground([]Dependency{{Folder: strings.Repeat("f", MaxBackground)}}, 1).More != 1 {
		t.Error("what has no room is told")
	}
}

// Whatever is told stays within its bound, reads as it was read, and is taken by an
// owner.
func TestBackgroundIsBounded(t *testing.T) {
	text := rapid.StringOfN(rapid.RuneFrom([]rune("a\n\rü€\u2028 -😀\x00")), -1, -1, 9000)
	rapid.Check(t, func(t *rapid.T) {
		deps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Dependency {
			return Dependency{Task: "task_1", Title: text.Draw(t, "title"), Result: text.Draw(t, "result"), HandoffPath: text.Draw(t, "path")}
		}), 1, 12).Draw(t, "deps")
		b := NewBackground(deps, len(deps))
		if n := len(b.Text()); n > MaxBackground || len(b.Dependencies)+b.More != len(deps) {
			t.Fatalf("%d bytes", n)
		}
		for i, d := range b.Dependencies {
			if !strings.HasPrefix(lines.Replace(PlainText([]byte(deps[i].Result))), d.Result) {
				t.Fatalf("a result became %q", d.Result)
			}
		}
		raw, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		var back Background
		if err := json.Unmarshal(raw, &back); err != nil || back.Text() != b.Text() {
			t.Fatalf("read again it is %q, %v", back.Text(), err)
		}
	})
}

func TestBackgroundOfAPeerIsChecked(t *testing.T) {
	for name, b := range map[string]*Background{
		"a NUL":    {Dependencies: []Dependency{{Title: "a\x00"}}},
		"no UTF-8": {Dependencies: []Dependency{{Result: "\xff", ResultBytes: 1}}},
		"too long": {Dependencies: []Dependency{{Result: strings.Repeat("x", 4*MaxBackground), ResultBytes: 4 * MaxBackground}}},
		"too many": {Dependencies: make([]Dependency, MaxDependencies+1)},
	} {
		if b.Check() == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if err := errorOf((*Background)(nil).Check(), NewBackground([]Dependency{{Title: "x"}}, 1).Check()); err != nil {
		t.Error(err)
	}
}

func errorOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestSpecOfASessionStart(t *testing.T) {
	b := NewBackground([]Dependency{{Title: "x"}}, 1)
	for name, c := range map[string]struct {
		start SessionStart
		want  string
	}{
		"alone":           {SessionStart{Prompt: "echo"}, "echo"},
		"with background": {SessionStart{Prompt: b.Behind("echo"), Background: b, SpecBytes: 4}, "echo"},
		"a wrong length":  {SessionStart{Prompt: "e", Background: b, SpecBytes: 9}, "e"},
		"a negative one":  {SessionStart{Prompt: "e", Background: b, SpecBytes: -9}, ""},
	} {
		if got := c.start.Spec(); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
