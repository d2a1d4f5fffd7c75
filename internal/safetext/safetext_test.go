package safetext

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	cases := map[string]string{
		"plain\ttext\nätsch 日本 👩‍💻":            "plain\ttext\nätsch 日本 👩‍💻",
		"\x1b]0;title\a":                       "␛]0;title␇",
		"a\r\nb\rc":                            "a\nb␍c",
		"x\x7fy\x00":                           "x␡y␀",
		"c1\u009b31m":                          `c1\u009b31m`,
		"bad\xff\x9b":                          `bad\xff\x9b`,
		"\u202eevil\u2066":                     `\u202eevil\u2066`,
		"tag\U000e0041":                        `tag\U000e0041`,
		"":                                     "",
		strings.Repeat("é", MaxLine+7) + "\nz": strings.Repeat("é", MaxLine) + "…[+7]\nz",
	}
	for in, want := range cases {
		if got := Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestLine(t *testing.T) {
	cases := []struct {
		in    string
		limit int
		want  string
	}{
		{"a\nb\tc\r\nd", 20, "a b c d"},
		{"abcdef", 6, "abcdef"},
		{"abcdefg", 6, "abcde…"},
		{"ab\x1b", 3, "ab␛"},
		{"abc\xff", 5, "abc…"},
		{"abc", 0, ""},
		{"", 5, ""},
	}
	for _, c := range cases {
		if got := Line(c.in, c.limit); got != c.want {
			t.Errorf("Line(%q, %d) = %q, want %q", c.in, c.limit, got, c.want)
		}
	}
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"a\x1b[31mb", "\u009b", "\u202e", "\xff\xfe", strings.Repeat("x", MaxLine+20), strings.Repeat("\xff", MaxLine), "…[+7]", "\r\r\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out, line := Clean(s), Line(s, 40)
		mustBeSafe(t, out, "\n\t")
		mustBeSafe(t, line, "")
		if utf8.RuneCountInString(line) > 40 {
			t.Errorf("line of %d characters", utf8.RuneCountInString(line))
		}
		if again := Clean(out); again != out && !strings.Contains(out, "…[+") {
			t.Errorf("cleaning %q twice changes it", s)
		}
	})
}

func mustBeSafe(t *testing.T, s, allowed string) {
	t.Helper()
	if !utf8.ValidString(s) {
		t.Errorf("%q is not valid UTF-8", s)
	}
	for _, r := range s {
		control := r < 0x20 || r == 0x7f || (r >= 0x80 && r <= 0x9f)
		bidi := r == 0x61c || r == 0x200e || r == 0x200f || (r >= 0x202a && r <= 0x202e) || (r >= 0x2066 && r <= 0x2069)
		if (control && !strings.ContainsRune(allowed, r)) || bidi {
			t.Errorf("the output holds %U", r)
		}
	}
}
