package work

import "testing"

func TestWithoutEscapes(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\nand é":                           "plain\ttext\nand é",
		"\x1b[31mred\x1b[0m":                           "red",
		"\x1b]52;c;ZXZpbA==\x07after":                  "after",
		"\x1b]0;title\x1b\\after":                      "after",
		"\x1bPq#0;2;0;0;0\x1b\\after":                  "after",
		"a\x08b\x07c\x7f":                              "abc",
		"\x1b(B\x1b[?25l\x1b[2Jcleared":                "cleared",
		"an unfinished \x1b]8;;http://example.invalid": "an unfinished ",
	} {
		if got := withoutEscapes(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}
