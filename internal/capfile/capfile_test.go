package capfile

import (
	"strings"
	"testing"
)

func sample() File {
	return File{
		URL: "https://127.0.0.1:7443", Fingerprint: "f", Token: "whd_secret",
		RunID: "run_1", TaskID: "task_1", DispatchID: "dispatch_1", Spool: "/tmp/spool",
	}
}

func TestRoundTrip(t *testing.T) {
	raw, err := Encode(sample())
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	want := sample()
	want.Version = Version
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestDecodeIsStrict(t *testing.T) {
	raw, err := Encode(sample())
	if err != nil {
		t.Fatal(err)
	}
	good := string(raw)
	bad := map[string]string{
		"empty":         "",
		"not JSON":      "token",
		"unknown field": strings.Replace(good, `"url"`, `"extra":1,"url"`, 1),
		"two documents": good + good,
		"other version": strings.Replace(good, `"version":1`, `"version":2`, 1),
		"no version":    strings.Replace(good, `"version":1,`, ``, 1),
		"no dispatch":   strings.Replace(good, `"dispatch_1"`, `""`, 1),
		"no pin":        strings.Replace(good, `"fingerprint":"f"`, `"fingerprint":""`, 1),
		"other token":   strings.Replace(good, "whd_", "whu_", 1),
		"too large":     good + strings.Repeat(" ", MaxSize),
	}
	for name, text := range bad {
		f, err := Decode([]byte(text))
		if err == nil {
			t.Errorf("%s: accepted as %+v", name, f)
			continue
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error shows the token: %v", name, err)
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	f := sample()
	f.TaskID = ""
	if raw, err := Encode(f); err == nil {
		t.Errorf("encoded an incomplete file: %s", raw)
	}
	f = sample()
	f.Spool = strings.Repeat("x", MaxSize)
	if _, err := Encode(f); err == nil {
		t.Error("encoded a file that is too large")
	}
}
