package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/safetext"
)

func FuzzCodex(f *testing.F)    { fuzzDecoder(f, Codex) }
func FuzzClaude(f *testing.F)   { fuzzDecoder(f, Claude) }
func FuzzGemini(f *testing.F)   { fuzzDecoder(f, Gemini) }
func FuzzGrok(f *testing.F)     { fuzzDecoder(f, Grok) }
func FuzzOpenCode(f *testing.F) { fuzzDecoder(f, OpenCode) }

// fuzzDecoder reads any file page by page: it never fails on what is in it,
// comes to the end, and keeps the bounds.
func fuzzDecoder(f *testing.F, provider string) {
	for name, raw := range samples(f) {
		if providerOf(name) == provider {
			addSeeds(f, raw)
		}
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		b := bounds{messages: 7, record: 4 << 10, text: 8 << 10, scan: 9 << 10, document: 64 << 10}
		var at Position
		for ended := false; !ended; {
			page, err := read(t.Context(), bytes.NewReader(file), int64(len(file)), provider, at, b)
			if err != nil {
				t.Fatalf("at %+v: %v", at, err)
			}
			checkPage(t, page, b)
			if !page.AtEnd && page.Next == at {
				t.Fatalf("neither progress nor an end at %+v", at)
			}
			at, ended = page.Next, page.AtEnd
		}
		checkRest(t, file, provider, b)
	})
}

// addSeeds adds the lines of a file one by one: the fuzzer is slow with long
// seeds.
func addSeeds(f *testing.F, file []byte) {
	if formOfHead(file) == formDocument {
		f.Add(file[:min(len(file), 1<<10)])
		f.Add([]byte(`{"info":{"id":"s"},"messages":[{"info":{"id":"m","role":"user"},"parts":[{"type":"text","text":"\"]}"}]},7]}`))
		return
	}
	for line := range bytes.Lines(file) {
		f.Add(line)
	}
}

func checkPage(t *testing.T, page Page, b bounds) {
	t.Helper()
	if len(page.Messages) > b.messages || len(page.Messages) > 1 && textOf(page.Messages) > b.text {
		t.Fatalf("%d messages, %d bytes", len(page.Messages), textOf(page.Messages))
	}
	raw, err := json.Marshal(page)
	if err != nil {
		t.Fatal(err)
	}
	if !utf8.Valid(raw) || secret(page.Messages) {
		t.Fatalf("%q", raw)
	}
	for _, m := range page.Messages {
		if m.ID == "" || m.Blocks == nil || !strings.Contains(" user assistant system tool other ", " "+m.Role+" ") {
			t.Fatalf("%+v", m)
		}
		for _, block := range m.Blocks {
			checkBlock(t, block)
		}
	}
}

func checkBlock(t *testing.T, block hub.TranscriptBlock) {
	t.Helper()
	text := block.Text + block.Name + block.Call
	if strings.Contains(text, "\x00") || !utf8.ValidString(text) || block.Input != nil && !json.Valid(block.Input) {
		t.Fatalf("%+v", block)
	}
}

func secret(all []hub.TranscriptMessage) bool {
	for _, m := range all {
		for _, b := range m.Blocks {
			for _, s := range []string{m.ID, b.Text, b.Name, b.Call, string(b.Input)} {
				if safetext.Redact(s) != s {
					return true
				}
			}
		}
	}
	return false
}

// checkRest: the other readers take the same file.
func checkRest(t *testing.T, file []byte, provider string, b bounds) {
	t.Helper()
	page, err := tailOf(t.Context(), bytes.NewReader(file), int64(len(file)), provider, b)
	if err != nil {
		t.Fatal(err)
	}
	checkPage(t, page, b)
	if _, err := Sum(t.Context(), bytes.NewReader(file), int64(len(file)), provider); err != nil {
		t.Fatal(err)
	}
	if id, ok := Identify(provider, file); ok != (id != "") {
		t.Fatalf("identified as %q", id)
	}
	Fingerprint(provider, file)
}

// FuzzPosition: a position that was never given is refused or reads something;
// it does not make a call fail otherwise.
func FuzzPosition(f *testing.F) {
	f.Add(int64(0), 0, false, "", true)
	f.Add(int64(202), 1, true, "abc", false)
	claude, export := samples(f)["claude.jsonl"], samples(f)["opencode-export.json"]
	f.Fuzz(func(t *testing.T, offset int64, index int, skipping bool, carry string, document bool) {
		file, provider := claude, Claude
		if document {
			file, provider = export, OpenCode
		}
		at := Position{Offset: offset, Index: index, Skipping: skipping, Carry: carry}
		page, err := Read(t.Context(), bytes.NewReader(file), int64(len(file)), provider, at, Query{})
		if err != nil {
			if !errors.Is(err, ErrChanged) && !hub.IsCode(err, hub.CodeInvalidArgument) {
				t.Fatal(err)
			}
			return
		}
		checkPage(t, page, standard(0))
	})
}

func FuzzClean(f *testing.F) {
	f.Add(`see "/a b/c.png" and C:\x\y.JPG; whd_` + strings.Repeat("a", 30))
	f.Fuzz(func(t *testing.T, s string) {
		out := clean(s)
		if !utf8.ValidString(out) || strings.Contains(out, "\x00") || safetext.Redact(out) != out {
			t.Fatalf("%q", out)
		}
	})
}
