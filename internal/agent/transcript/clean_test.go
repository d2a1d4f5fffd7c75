package transcript

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestClean(t *testing.T) {
	token := "whc_" + strings.Repeat("z9", 20)
	for in, want := range map[string]string{
		"plain ä\ttext\n":                          "plain ä\ttext\n",
		"a\x00b\xffc":                              "a\uFFFDb\uFFFDc",
		"use " + token + ".":                       "use [redacted].",
		"whc_sh\x00ort " + token[:10]:              "whc_sh\uFFFDort " + token[:10],
		"/home/u/a.png":                            "[image]",
		"see /home/u/a.PNG, /x/b.Jpeg and ~/c.gif": "see [image], [image] and [image]",
		"/a/b.png /c/d.png":                        "[image] [image]",
		`<image path="/Users/me/My Pics/a.png">`:   `<image path="[image]">`,
		"'C:\\My Pics\\a.webp' D:/b.bmp":           "'[image]' [image]",
		`\\host\share\a.tiff`:                      "[image]",
		"file:///home/u/a.svg":                     "[image]",
		"@/home/u/a.png":                           "@[image]",
		"MEDIA:/home/u/a.png":                      "MEDIA:[image]",
		"![x](/home/u/a.png)":                      "![x]([image])",
		"[Image: source: /Users/me/My Pics/1.png]": "[image]",
		"`/home/u/a.png` and \"/home/u/b.png is":   "`[image]` and \"[image] is",
		"docs/a.png ./a.png ../a.png é/a.png":      "docs/a.png ./a.png ../a.png é/a.png",
		"${dir}/a.png https://e.org/x/a.png":       "${dir}/a.png https://e.org/x/a.png",
		"http://localhost:80/a.png":                "http://localhost:80/a.png",
		"/home/u/a.pngx /home/u/png /home/u/a.txt": "/home/u/a.pngx /home/u/png /home/u/a.txt",
		"data:image/png;base64,iVBORw0KGgo= end":   "[data] end",
		"url(data:text/plain;charset=x;base64,QQ)": "url([data])",
	} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestCleanInput: escapes hide nothing, the order stays, numbers stay exact.
func TestCleanInput(t *testing.T) {
	token := strings.Repeat("z9", 20)
	for in, want := range map[string]string{
		`{"z": 1, "a": [null, true, 1.50, 12345678901234567890], "z": {}}`: `{"z":1,"a":[null,true,1.50,12345678901234567890],"z":{}}`,
		`"<\u0077hd_` + token + `>"`:                                       `"<[redacted]>"`,
		`{"wh\u0064_` + token + `":1}`:                                     `{"[redacted]":1}`,
		`["a\n\/home\/u\/x.png","\u0000"]`:                                 "[\"a\\n[image]\",\"\uFFFD\"]",
		`"C:\\pics\\x.png"`:                                                `"[image]"`,
		`"\ud800"`:                                                         "\"\uFFFD\"",
	} {
		got, cut := cleanInput(json.RawMessage(in), 1000)
		if string(got) != want || cut {
			t.Errorf("cleanInput(%s) = %s, want %s", in, got, want)
		}
	}
}

// TestCutKeepsTokensOut: what is cut was cleaned before.
func TestCutKeepsTokensOut(t *testing.T) {
	token := "whd_" + strings.Repeat("z9", 20)
	for n := range 60 {
		b := newMessage("m", roleUser, 0)
		b.text(strings.Repeat("x", maxBlock-n) + " " + token)
		if got := b.m.Blocks[0].Text; strings.Contains(got, "whd") || !strings.Contains(got, "xxx") {
			t.Fatalf("%d before the cut: %q", n, got[maxBlock-n-8:])
		}
	}
}
