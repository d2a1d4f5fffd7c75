package safetext

import (
	"strings"
	"testing"
)

func TestRedact(t *testing.T) {
	secret := strings.Repeat("aB3", 16)
	cases := map[string]string{
		"":                                    "",
		"what whd_ is whd_short":              "what whd_ is whd_short",
		"whd_" + secret:                       Redacted,
		"a whu_" + secret + ", whr_" + secret: "a " + Redacted + ", " + Redacted,
		"whc_" + secret + "\nwhw_" + secret:   Redacted + "\n" + Redacted,
		"whx_" + secret:                       "whx_" + secret,
		"xwhd_" + secret[:20] + " whd_" + secret[:19]: "x" + Redacted + " whd_" + secret[:19],
	}
	for in, want := range cases {
		if got := Redact(in); got != want {
			t.Errorf("Redact(%q) = %q, want %q", in, got, want)
		}
	}
}
