package terminal

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/wavehub/wavehub/internal/safetext"
)

// Invariant 16.
func TestScannerAnswers(t *testing.T) {
	for output, want := range map[string]string{
		"\x1b[c":                       "\x1b[?62;22c",
		"text\x1b[0c":                  "\x1b[?62;22c",
		"\x1b[>c":                      "\x1b[>1;10;0c",
		"\x1b[5n\x1b[6n":               "\x1b[0n\x1b[1;1R",
		"\x1b[?6n":                     "\x1b[?1;1R",
		"\x1b]10;?\x07":                "\x1b]10;rgb:e6e6/e6e6/e6e6\x07",
		"\x1b]11;?\x1b\\":              "\x1b]11;rgb:0000/0000/0000\x1b\\",
		"\x1b[?u":                      "\x1b[?0u",
		"\x1b[>q":                      "\x1bP>|wavehub\x1b\\",
		"\x1b[?2026$p":                 "\x1b[?2026;0$y",
		"\x1b[?2004$p":                 "\x1b[?2004;2$y",
		"\x1b[?2004h\x1b[?2004$p":      "\x1b[?2004;1$y",
		"\x1b[?25;2004h\x1b[?2004$p":   "\x1b[?2004;1$y",
		"\x1b[?2004h\x1bc\x1b[?2004$p": "\x1b[?2004;2$y",
		"\x1b[4$p":                     "\x1b[4;0$y",
		"\x1b[?" + strings.Repeat("9", 99) + "$p": "",
		"\x1b]11;rgb:0/0/0\x07":                   "",             // sets a colour
		"\x1b]11;?\x1b[c":                         "\x1b[?62;22c", // the command was dropped
		"\x1b]11;?\x18\x1b[6n":                    "\x1b[1;1R",
		"\x1b[\x1b[c":                             "\x1b[?62;22c",
		"\x1bP\x1b]11;?\x07":                      "\x1b]11;rgb:0000/0000/0000\x07", // ESC ends the string
		"\x1bP$q [c \x07 ]11;?\x07":               "",
		"\x1b_G[c\x1b\\[c":                        "",
		"\x1b(B[c":                                "",
		"[c\x9bc\x9d11;?\x9c":                     "", // bytes of UTF-8, not controls
		"\x1b[" + strings.Repeat("1", maxSequence+1) + "c": "",
	} {
		var s scanner
		if got := string(s.scan([]byte(output))); got != want {
			t.Errorf("%q: answers %q, want %q", output, got, want)
		}
	}
}

// Invariant 16.
func TestScannerKeepsWhatTheProcessSays(t *testing.T) {
	for output, want := range map[string]terminalText{
		"\x1b]0;one\x07":                              {title: "one"},
		"\x1b]2;two; three\x1b\\":                     {title: "two; three"},
		"\x1b]1;icon\x07":                             {},
		"\x1b]0;\xe2\x9c\xb3 name\x07":                {title: "✳ name"},
		"\x1b]0;a\nb\u202ec\x07":                      {title: `ab\u202ec`},
		"\x1b]0;one\x07\x1b]0;two":                    {title: "one"},
		"\x1b]0;one\x07\x1b]0;two\x1b[m":              {title: "one"},
		"\x1b]0;one\x07\x1b]0;\x07":                   {},
		"\x1b]7501;state=blocked:app=codex\x1b\\":     {agent: "state=blocked:app=codex"},
		"\x1b[?2004h":                                 {paste: true},
		"\x1b[?2004h\x1b[?1;2004;7l":                  {},
		"\x1b[2004h\x1b[?20040h":                      {},
		"\x1b]0;" + strings.Repeat("é", 300) + "\x07": {title: strings.Repeat("é", maxText/2)},
	} {
		var s scanner
		s.scan([]byte(output))
		if s.term != want {
			t.Errorf("%q: %+v, want %+v", output, s.term, want)
		}
	}
}

// Invariant 16: whatever the output and wherever it is split, the scanner says
// the same, keeps little, and answers to nothing that it answered.
func FuzzScanner(f *testing.F) {
	for _, seed := range []string{
		"\x1b[c\x1b[6n\x1b]11;?\x07\x1b[?2004$p", "\x1b]0;\xe2\x9c\xb3 t\x1b\\\x1b]7501;state=done\x07",
		"\x1bP+q544e\x1b\\\x1b[?2004h\x18\x1bc", "\x1b[?u\x1b[>q\x1b(B\x1b]0;x\x1b\x1b[c",
	} {
		f.Add([]byte(seed), uint8(3))
	}
	f.Fuzz(func(t *testing.T, output []byte, size uint8) {
		var whole, split scanner
		answers := whole.scan(output)
		var parts []byte
		for rest := output; len(rest) > 0; {
			n := min(int(size)%7+1, len(rest))
			parts = append(parts, split.scan(rest[:n])...)
			rest = rest[n:]
		}
		if !bytes.Equal(answers, parts) || whole.term != split.term || whole.state != split.state {
			t.Fatalf("whole %q %+v, split %q %+v", answers, whole.term, parts, split.term)
		}
		if len(whole.seq) > maxSequence || len(answers) > 24*len(output) {
			t.Fatalf("%d bytes are kept, %d answered", len(whole.seq), len(answers))
		}
		for _, text := range []string{whole.term.title, whole.term.agent} {
			if len(text) > maxText || !utf8.ValidString(text) || safetext.Clean(text) != text || strings.Contains(text, "\n") {
				t.Fatalf("text %q", text)
			}
		}
		var echo scanner
		if again := echo.scan(answers); len(again) > 0 || echo.term != (terminalText{}) {
			t.Fatalf("%q was answered by %q", answers, again)
		}
	})
}
