package transcript

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/wavehub/wavehub/internal/hub"
)

// small are bounds that a few short records reach.
func small(t *rapid.T) bounds {
	record := rapid.IntRange(150, 600).Draw(t, "record")
	return bounds{
		messages: rapid.IntRange(1, 5).Draw(t, "messages"),
		record:   record,
		text:     rapid.IntRange(1, 2000).Draw(t, "text"),
		scan:     int64(rapid.IntRange(record+2, 3*record).Draw(t, "scan")),
		document: MaxDocument,
	}
}

// drawFile puts records of the provider's samples, and what is none, together.
func drawFile(t *rapid.T, all map[string][]byte, provider string) []byte {
	records := []string{"", "  ", "{torn", "[1]", "7", strings.Repeat("y", 700), `{"pad":"` + strings.Repeat("z", 2000) + `"}`, "\r"}
	for name, raw := range all {
		if providerOf(name) == provider && strings.HasSuffix(name, "l") {
			records = append(records, strings.Split(string(raw), "\n")...)
		}
	}
	slices.Sort(records)
	var file bytes.Buffer
	for range rapid.IntRange(0, 30).Draw(t, "records") {
		file.WriteString(rapid.SampledFrom(records).Draw(t, "record"))
		file.WriteByte('\n')
	}
	return file.Bytes()
}

// found is what all pages of a file say together.
type found struct {
	Messages         []hub.TranscriptMessage
	Skipped, Invalid int
}

// pages reads page by page until the end, while the file grows as grow says.
func pages(t *rapid.T, file []byte, provider string, b bounds, visible int, grow func() int) found {
	var all found
	var at Position
	for turn := 0; ; turn++ {
		if turn > 10*(len(file)+100) {
			t.Fatal("no end is reached")
		}
		page, err := read(context.Background(), bytes.NewReader(file), int64(visible), provider, roundTrip(t, at), b)
		if err != nil {
			t.Fatalf("at %+v of %d: %v", at, visible, err)
		}
		all.Messages = append(all.Messages, page.Messages...)
		all.Skipped, all.Invalid = all.Skipped+page.Skipped, all.Invalid+page.Invalid
		if !page.AtEnd && page.Next == at {
			t.Fatalf("neither progress nor an end at %+v", at)
		}
		if at = page.Next; page.AtEnd && visible == len(file) {
			return all
		}
		visible = min(visible+grow(), len(file))
	}
}

// roundTrip is what a cursor does to a position.
func roundTrip(t *rapid.T, p Position) Position {
	raw, err := json.Marshal(p)
	if err != nil || len(raw) > 200 {
		t.Fatalf("%d bytes: %v", len(raw), err)
	}
	var q Position
	if err := json.Unmarshal(raw, &q); err != nil {
		t.Fatal(err)
	}
	return q
}

// TestPropertyPages: however a file is divided into pages, and however it grows
// meanwhile, its messages are the same.
func TestPropertyPages(t *testing.T) {
	all := samples(t)
	rapid.Check(t, func(t *rapid.T) {
		provider := rapid.SampledFrom(Providers()).Draw(t, "provider")
		file := drawFile(t, all, strings.TrimPrefix(provider, "open"))
		if provider == OpenCode {
			file = drawFile(t, all, provider)
		}
		checkPages(t, file, provider)
	})
}

func TestPropertyPagesOfDocuments(t *testing.T) {
	all := samples(t)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"opencode-export.json", "opencode-export-odd.json"}).Draw(t, "name")
		checkPages(t, all[name], OpenCode)
	})
}

func checkPages(t *rapid.T, file []byte, provider string) {
	b := small(t)
	one := bounds{messages: MaxMessages, record: b.record, text: MaxText, scan: MaxScan, document: MaxDocument}
	want := pages(t, file, provider, one, len(file), func() int { return 0 })
	divided := pages(t, file, provider, b, len(file), func() int { return 0 })
	if diff := cmp.Diff(want, divided); diff != "" {
		t.Fatalf("divided: -want +got:\n%s", diff)
	}
	growing := pages(t, file, provider, b, 0, func() int { return rapid.IntRange(0, 300).Draw(t, "bytes") + 1 })
	if diff := cmp.Diff(want, growing); diff != "" {
		t.Fatalf("growing: -want +got:\n%s", diff)
	}
}

// TestPropertyUsage: a Meter that follows a growing file comes to the sum of
// the whole.
func TestPropertyUsage(t *testing.T) {
	all := samples(t)
	rapid.Check(t, func(t *rapid.T) {
		provider := rapid.SampledFrom([]string{Claude, Codex, Gemini, Grok, OpenCode}).Draw(t, "provider")
		file := drawFile(t, all, provider)
		want, err := Sum(context.Background(), bytes.NewReader(file), int64(len(file)), provider)
		if err != nil {
			t.Fatal(err)
		}
		m, err := NewMeter(provider)
		if err != nil {
			t.Fatal(err)
		}
		b := bounds{record: MaxRecord, scan: MaxScan, document: MaxDocument}
		for visible := 0; visible < len(file); {
			visible = min(visible+rapid.IntRange(1, 2000).Draw(t, "bytes"), len(file))
			if more, err := m.read(context.Background(), bytes.NewReader(file), int64(visible), b); err != nil || more {
				t.Fatal(more, err)
			}
		}
		if diff := cmp.Diff(want, m.Usage()); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	})
}

func TestMeterOfADocumentWrittenAnew(t *testing.T) {
	export := string(samples(t)["opencode-export.json"])
	earlier := strings.Replace(export, `"output": 5,`, `"output": 1,`, 2)
	m, err := NewMeter(OpenCode)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int64{earlier: 41, export: 45} {
		if more, err := m.Read(t.Context(), strings.NewReader(text), int64(len(text))); err != nil || more {
			t.Fatal(more, err)
		}
		if got := *m.Usage().OutputTokens; got != want {
			t.Errorf("output %d, want %d", got, want)
		}
	}
}

// TestMeterForgets: what is too old to be remembered stays counted.
func TestMeterForgets(t *testing.T) {
	one := int64(1)
	var f figures
	for n := range maxMetered + 10 {
		f.add(tally{id: strconv.Itoa(n), usage: hub.Usage{OutputTokens: &one}})
	}
	f.add(tally{id: strconv.Itoa(maxMetered), usage: hub.Usage{OutputTokens: &one}})
	if len(f.byID) != maxMetered || len(f.order) != maxMetered {
		t.Errorf("%d ids are remembered", len(f.byID))
	}
	if got := *f.usage().OutputTokens; got != maxMetered+10 {
		t.Errorf("sum %d", got)
	}
}

// TestUsageIsShownOnce: at the first line of an answer, also when results, a
// record that is too long and the end of a page are between its lines.
func TestUsageIsShownOnce(t *testing.T) {
	line := `{"type":"assistant","message":{"id":"m","content":[],"usage":{"output_tokens":3}}}` + "\n"
	file := line + `{"type":"user","message":{"content":[]}}` + "\n" + line + strings.Repeat("x", MaxRecord+1) + "\n" + line
	for _, n := range []int{1, 100} {
		shown := 0
		var page Page
		for first := true; first || !page.AtEnd; first = false {
			page = readAll(t, Claude, file, page.Next, Query{Messages: n})
			for _, m := range page.Messages {
				if m.Usage != nil {
					shown++
				}
			}
		}
		if shown != 1 {
			t.Errorf("%d a page: shown %d times", n, shown)
		}
	}
}

func TestUsageDoesNotOverflow(t *testing.T) {
	file := strings.Repeat(`{"type":"assistant","message":{"usage":{"output_tokens":9223372036854775807,"input_tokens":0}}}`+"\n", 3)
	u, err := Sum(t.Context(), strings.NewReader(file), int64(len(file)), Claude)
	if err != nil || *u.OutputTokens != 9223372036854775807 || *u.InputTokens != 0 || u.CachedInputTokens != nil {
		t.Errorf("%+v, %v", u, err)
	}
}

func TestTail(t *testing.T) {
	for name, raw := range samples(t) {
		provider, size := providerOf(name), int64(len(raw))
		whole, err := Read(t.Context(), bytes.NewReader(raw), size, provider, Position{}, Query{})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{1, 3, 100} {
			page, err := Tail(t.Context(), bytes.NewReader(raw), size, provider, n)
			if err != nil {
				t.Fatal(err)
			}
			want := replaced(whole.Messages[max(len(whole.Messages)-n, 0):])
			if diff := cmp.Diff(want, page.Messages); diff != "" || page.Limited != (len(whole.Messages) > n) || !page.AtEnd {
				t.Errorf("%s, last %d: -want +got:\n%s", name, n, diff)
			}
		}
	}
}

func replaced(all []hub.TranscriptMessage) []hub.TranscriptMessage {
	out := []hub.TranscriptMessage{}
	for n, m := range all {
		if !slices.ContainsFunc(all[n+1:], func(later hub.TranscriptMessage) bool { return later.ID == m.ID }) {
			out = append(out, m)
		}
	}
	return out
}

func TestTailOfALongFile(t *testing.T) {
	line := grokLine(1000) + "\n"
	for name, c := range map[string]struct {
		file string
		want int
		last string
	}{
		"over the scan":   {strings.Repeat(line, 20), 3, "xx"},
		"a torn end":      {strings.Repeat(line, 20) + line[:500], 3, "xx"},
		"without newline": {strings.Repeat(line, 20) + `{"role":"user","content":"end"}`, 3, "end"},
		"one long line":   {grokLine(9000) + "\n", 0, ""},
		"a long end":      {line + grokLine(9000), 0, ""},
		"over the text":   {strings.Repeat(line, 3), 2, "xx"},
	} {
		b := bounds{messages: 3, record: 2000, text: 1 << 20, scan: 4500}
		if name == "over the text" {
			b.text = 2500
		}
		page, err := tailOf(t.Context(), strings.NewReader(c.file), int64(len(c.file)), Grok, b)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Messages) != c.want || !page.Limited {
			t.Errorf("%s: %d messages, limited %v", name, len(page.Messages), page.Limited)
		}
		if c.want > 0 && !strings.HasSuffix(page.Messages[c.want-1].Blocks[0].Text, c.last) {
			t.Errorf("%s ends in %q", name, page.Messages[c.want-1].Blocks[0].Text)
		}
	}
}
