package terminal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/safetext"
)

// written makes the directory of a terminal with this output and no process.
func written(t *testing.T, m *Manager, size *hub.TerminalSize, parts ...string) hub.TerminalID {
	t.Helper()
	spec := specOf(t, "", "")
	spec.PTY = size
	dir := filepath.Join(m.cfg.Root, string(spec.Terminal))
	if err := m.prepare(dir, spec); err != nil {
		t.Fatal(err)
	}
	o, err := newOutput(filepath.Join(dir, outputDir), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		o.append([]byte(p))
	}
	if err := o.close(); err != nil {
		t.Fatal(err)
	}
	return spec.Terminal
}

func rendered(t *testing.T, m *Manager, id hub.TerminalID, q hub.ScreenQuery) hub.Screen {
	t.Helper()
	s, err := m.Screen(within(t), id, q)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Invariant 18.
func TestScreenShowsWhatATerminalWould(t *testing.T) {
	m := newManager(t)
	for name, c := range map[string]struct {
		output string
		lines  []string
		row    int
		col    int
		title  string
	}{
		"nothing":          {"", nil, 0, 0, ""},
		"text":             {"one\r\ntwo  \r\n", []string{"one", "two"}, 2, 0, ""},
		"cursor movement":  {"\x1b[3;4Hx\x1b[1;1Hab\x1b[A\x1b[2Cc", []string{"ab  c", "", "   x"}, 0, 5, ""},
		"overwriting":      {"hello\rj\x1b[K", []string{"j"}, 0, 1, ""},
		"erasing":          {"one\r\ntwo\x1b[2J\x1b[Hnew", []string{"new"}, 0, 3, ""},
		"wrapping":         {strings.Repeat("x", 22), []string{strings.Repeat("x", 20), "xx"}, 1, 2, ""},
		"the other screen": {"below\x1b[?1049h\x1b[2J\x1b[Habove", []string{"above"}, 0, 5, ""},
		"and back":         {"below\x1b[?1049h\x1b[2J\x1b[Habove\x1b[?1049l", []string{"below"}, 0, 5, ""},
		"wide characters":  {"日本x\x1b[1;3H語", []string{"日語x"}, 0, 4, ""},
		"combined":         {"e\u0301 👩‍👩‍👧 x", []string{"e\u0301 👩‍👩‍👧 x"}, 0, 6, ""},
		"colours":          {"\x1b[1;31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x07", []string{"red link"}, 0, 8, ""},
		"title":            {"\x1b]0;first\x07\x1b]2;✳ second\x1b\\text", []string{"text"}, 0, 4, "✳ second"},
		"strings":          {"\x1b]0;✳✴\x07a\x1bP✳\x1b\\b\x1b_✳[2J\x1b\\c", []string{"abc"}, 0, 3, "✳✴"},
		"queries":          {"\x1b[c\x1b[6n\x1b]11;?\x07text", []string{"text"}, 0, 4, ""},
		"cut sequence":     {"text\x1b[31", []string{"text"}, 0, 4, ""},
		"controls":         {"a\x00\x01\x7fb\u202ec", []string{"abc"}, 0, 3, ""},
		"scrolling":        {"1\r\n2\r\n3\r\n4\r\n5\r\n6", []string{"2", "3", "4", "5", "6"}, 4, 1, ""},
	} {
		id := written(t, m, &hub.TerminalSize{Rows: 5, Cols: 20}, c.output)
		s := rendered(t, m, id, hub.ScreenQuery{})
		if !slices.Equal(s.Lines, c.lines) || s.CursorRow != c.row || s.CursorCol != c.col || s.Title != c.title || s.Scrollback != nil || s.Truncated {
			t.Errorf("%s: %+q at %d %d %q, want %q at %d %d %q", name, s.Lines, s.CursorRow, s.CursorCol, s.Title, c.lines, c.row, c.col, c.title)
		}
	}
}

// Invariant 18.
func TestScrollback(t *testing.T) {
	m := newManager(t)
	var output strings.Builder
	for i := range 50 {
		fmt.Fprintf(&output, "\x1b[3%dmline %d\x1b[m\r\n", i%8, i)
	}
	id := written(t, m, &hub.TerminalSize{Rows: 5, Cols: 20}, output.String())
	s := rendered(t, m, id, hub.ScreenQuery{Scrollback: 3})
	if want := []string{"line 43", "line 44", "line 45"}; !slices.Equal(s.Scrollback, want) {
		t.Errorf("scrollback %q, want %q", s.Scrollback, want)
	}
	if want := []string{"line 46", "line 47", "line 48", "line 49"}; !slices.Equal(s.Lines, want) {
		t.Errorf("lines %q, want %q", s.Lines, want)
	}
}

// Invariant 18: pipes are text that a terminal shows.
func TestScreenOfPipes(t *testing.T) {
	m := newManager(t)
	id := written(t, m, nil, "one\ntwo\r\n\x1b[1mth", "ree\x1b[0m\n")
	s := rendered(t, m, id, hub.ScreenQuery{})
	if want := []string{"one", "two", "three"}; !slices.Equal(s.Lines, want) || s.Size != pipeSize {
		t.Errorf("screen %+v", s)
	}
}

// Invariant 18: only the end is rendered, and not from the middle of a sequence.
func TestScreenOfTheEnd(t *testing.T) {
	m := newManager(t)
	id := written(t, m, nil, strings.Repeat("\x1b[38;5;200mword\x1b[0m\n", 1000))
	s := rendered(t, m, id, hub.ScreenQuery{MaxBytes: 203, Scrollback: 1000})
	if !s.Truncated || len(s.Scrollback)+len(s.Lines) > 12 {
		t.Errorf("screen %+v", s)
	}
	for _, line := range s.Lines {
		if line != "" && line != "word" {
			t.Errorf("line %q", line)
		}
	}
	if _, err := m.Screen(within(t), hub.NewTerminalID(), hub.ScreenQuery{}); !hub.IsCode(err, hub.CodeTerminalNotFound) {
		t.Errorf("an unknown terminal: %v", err)
	}
}

// Invariant 18: an emulator that is slow or fails costs an answer, not the hub.
func TestRenderingIsBounded(t *testing.T) {
	size := hub.TerminalSize{Rows: maxRows, Cols: maxCols}
	slow := view{size: size, output: []byte(strings.Repeat("x\x1b[65535b", maxFed/9))}
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if _, err := slow.render(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("slow: %v", err)
	}
	failing := view{size: hub.TerminalSize{Rows: -1, Cols: -1}, output: []byte("x")}
	if _, err := failing.render(within(t)); err == nil || !strings.Contains(err.Error(), "emulator") {
		t.Errorf("failing: %v", err)
	}
	until(t, "the places are free", func() bool { return len(rendering) == 0 })
}

// Invariant 18.
func FuzzScreen(f *testing.F) {
	for _, seed := range []string{"日本\x1b[?1049h\x1b[2;3r\x1b[5S\x1b[3T\x1b[99X", "\x1b]0;t\x07\x1b[4h\x1b[5@\x1b[3P\x1bM\x1b[2L", "\x1b[6;9Hé\u0301\x1b[100b\t\x08\x1b[Z"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, output []byte) {
		v := view{size: hub.TerminalSize{Rows: 6, Cols: 9}, output: output[:min(len(output), 4<<10)], scrollback: 20}
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		s, err := v.guarded(ctx)
		if err != nil {
			t.Skipf("the emulator fails, which is contained: %v", err)
		}
		if len(s.Lines) > 6 || len(s.Scrollback) > 20 || len(s.Title) > maxText {
			t.Fatalf("screen %+v", s)
		}
		for _, line := range append(append(s.Lines, s.Scrollback...), s.Title) {
			if safetext.Clean(line) != line || strings.ContainsAny(line, "\n\x1b") {
				t.Fatalf("line %q", line)
			}
		}
	})
}

// Invariant 18: the output of real sessions, with what another emulator, tmux,
// had on its screen beside it.
func TestRecordedSessions(t *testing.T) {
	recorded, err := filepath.Glob(filepath.Join("testdata", "*.out"))
	if err != nil || len(recorded) == 0 {
		t.Fatalf("%d sessions, %v", len(recorded), err)
	}
	m := newManager(t)
	for _, name := range recorded {
		output, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(strings.TrimSuffix(name, ".out") + ".screen")
		if err != nil {
			t.Fatal(err)
		}
		s := rendered(t, m, written(t, m, &hub.TerminalSize{Rows: 24, Cols: 80}, string(output)), hub.ScreenQuery{Scrollback: 100})
		got := strings.Join(append(s.Scrollback, s.Lines...), "\n")
		if got != strings.TrimRight(string(want), "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}
