package transcript

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/wavehub/wavehub/internal/hub"
)

func readAll(t *testing.T, provider, file string, at Position, q Query) Page {
	t.Helper()
	page, err := Read(t.Context(), strings.NewReader(file), int64(len(file)), provider, at, q)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// grokLine is a line of exactly that many bytes without its newline.
func grokLine(size int) string {
	line := `{"role":"user","content":""}`
	return line[:len(line)-2] + strings.Repeat("x", size-len(line)) + line[len(line)-2:]
}

func TestRecordBound(t *testing.T) {
	file := grokLine(MaxRecord) + "\n" + grokLine(MaxRecord+1) + "\n" + grokLine(100) + "\n"
	page := readAll(t, Grok, file, Position{}, Query{})
	if len(page.Messages) != 2 || page.Skipped != 1 || !page.Limited || !page.AtEnd || page.Cut != 1 || len(page.Warnings) != 2 {
		t.Errorf("%d messages, %+v", len(page.Messages), page)
	}
	if want := "@" + strconv.Itoa(2*MaxRecord+3); page.Messages[1].ID != want {
		t.Errorf("id %s, want %s", page.Messages[1].ID, want)
	}
}

// TestLongRecordOverCalls: a record that is longer than what a call may scan
// is counted once, and what follows it is found.
func TestLongRecordOverCalls(t *testing.T) {
	file := grokLine(100) + "\n" + grokLine(2*MaxScan) + "\n" + grokLine(100) + "\n"
	var at Position
	var pages, skipped, messages int
	for ended := false; !ended; pages++ {
		page := readAll(t, Grok, file, at, Query{})
		if page.Next.Offset-at.Offset > MaxScan {
			t.Fatalf("scanned %d bytes", page.Next.Offset-at.Offset)
		}
		if !page.AtEnd && !page.Limited {
			t.Error("a page that ends early does not say so")
		}
		at, ended = page.Next, page.AtEnd
		skipped, messages = skipped+page.Skipped, messages+len(page.Messages)
	}
	if pages != 3 || skipped != 1 || messages != 2 {
		t.Errorf("%d pages, %d skipped, %d messages", pages, skipped, messages)
	}
}

func TestTornLineWaits(t *testing.T) {
	whole := grokLine(50) + "\n"
	for cut := range whole {
		page := readAll(t, Grok, whole+whole[:cut], Position{}, Query{})
		if len(page.Messages) != 1 || page.Next.Offset != int64(len(whole)) || !page.AtEnd {
			t.Fatalf("cut at %d: %+v", cut, page)
		}
	}
	if page := readAll(t, Grok, whole+whole, Position{Offset: int64(len(whole))}, Query{}); len(page.Messages) != 1 {
		t.Errorf("the rest: %+v", page)
	}
}

func TestQueryBounds(t *testing.T) {
	file := strings.Repeat(grokLine(50)+"\n", MaxMessages+5)
	for n, want := range map[int]int{0: DefaultMessages, 1: 1, MaxMessages: MaxMessages} {
		page := readAll(t, Grok, file, Position{}, Query{Messages: n})
		if len(page.Messages) != want || page.Limited || page.AtEnd {
			t.Errorf("%d: %d messages, limited %v", n, len(page.Messages), page.Limited)
		}
	}
	for _, n := range []int{-1, MaxMessages + 1} {
		if _, err := Read(t.Context(), strings.NewReader(file), 10, Grok, Position{}, Query{Messages: n}); !hub.IsCode(err, hub.CodeInvalidArgument) {
			t.Errorf("%d: %v", n, err)
		}
	}
}

// TestTextBound: a page has at most MaxText, however much the records hold.
func TestTextBound(t *testing.T) {
	file := strings.Repeat(grokLine(maxBlock-1000)+"\n", 30)
	var at Position
	total := 0
	for pages := 0; ; pages++ {
		page := readAll(t, Grok, file, at, Query{})
		if size := textOf(page.Messages); size > MaxText {
			t.Fatalf("%d bytes of text", size)
		}
		total += len(page.Messages)
		if at = page.Next; page.AtEnd {
			break
		}
		if !page.Limited || len(page.Messages) < 7 {
			t.Errorf("page %d: limited %v, %d messages", pages, page.Limited, len(page.Messages))
		}
	}
	if total != 30 {
		t.Errorf("%d messages", total)
	}
}

func textOf(all []hub.TranscriptMessage) int {
	size := 0
	for _, m := range all {
		size += len(m.ID)
		for _, b := range m.Blocks {
			size += len(b.Text) + len(b.Input) + len(b.Name) + len(b.Call)
		}
	}
	return size
}

func claudeFile(t *testing.T, blocks ...any) string {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"type": "assistant", "uuid": "u", "message": map[string]any{"content": blocks}})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw) + "\n"
}

func TestBlockBounds(t *testing.T) {
	long := strings.Repeat("ä\"", maxBlock)
	page := readAll(t, Claude, claudeFile(t, map[string]any{"type": "text", "text": long},
		map[string]any{"type": "tool_use", "id": long, "name": long, "input": map[string]any{"a": long}},
		map[string]any{"type": "tool_use", "input": strings.Repeat("\x01", maxBlock)},
		map[string]any{"type": "novel", "x": long}), Position{}, Query{})
	b := page.Messages[0].Blocks
	if page.Cut != 3 || !page.Limited || len(b) != 4 {
		t.Fatalf("%d cut, %d blocks", page.Cut, len(b))
	}
	if !strings.HasSuffix(b[0].Text, "…[+131073 bytes]") || !utf8.ValidString(b[0].Text) || len(b[0].Text) > maxBlock+32 {
		t.Errorf("text of %d bytes ends in %q", len(b[0].Text), b[0].Text[len(b[0].Text)-32:])
	}
	for _, n := range []int{1, 2} {
		var s string
		if err := json.Unmarshal(b[n].Input, &s); err != nil || !strings.HasSuffix(s, " bytes]") || s[0] == '"' || len(b[n].Input) > maxBlock {
			t.Errorf("input %d of %d bytes: %v", n, len(b[n].Input), err)
		}
	}
	if len(b[1].Call) > maxLabel+32 || len(b[1].Name) > maxLabel+32 || len(b[3].Text) > maxNote+32 {
		t.Errorf("labels of %d and %d bytes, a note of %d", len(b[1].Call), len(b[1].Name), len(b[3].Text))
	}
}

// TestMessageBound: neither many nor large blocks make a message larger than
// its bound.
func TestMessageBound(t *testing.T) {
	large, small := make([]any, 20), make([]any, 40000)
	for n := range large {
		large[n] = map[string]any{"type": "text", "text": strings.Repeat("x", maxBlock)}
	}
	for n := range small {
		small[n] = map[string]any{"type": "text"}
	}
	for name, blocks := range map[string][]any{"large": large, "small": small} {
		page := readAll(t, Claude, claudeFile(t, blocks...), Position{}, Query{})
		shown := page.Messages[0].Blocks
		if size := textOf(page.Messages) + blockCost*len(shown); size > maxMessage {
			t.Errorf("%s: %d bytes", name, size)
		}
		if page.Cut < len(blocks)-len(shown) || page.Cut == 0 || len(shown) < 4 {
			t.Errorf("%s: %d blocks of %d, %d cut", name, len(shown), len(blocks), page.Cut)
		}
	}
}

// TestManyMessagesInOneRecord: they are divided among pages by the position's
// index.
func TestManyMessagesInOneRecord(t *testing.T) {
	var b strings.Builder
	for n := range 250 {
		b.WriteString(`{"id":"m` + strconv.Itoa(n) + `","type":"user","content":"x"},`)
	}
	file := `{"$set":{"messages":[` + strings.TrimSuffix(b.String(), ",") + `]}}` + "\n"
	var at Position
	var ids []string
	for _, want := range []int{100, 200, 0} {
		page := readAll(t, Gemini, file, at, Query{})
		for _, m := range page.Messages {
			ids = append(ids, m.ID)
		}
		if at = page.Next; at.Index != want || page.AtEnd != (want == 0) {
			t.Errorf("next %+v", at)
		}
	}
	if len(ids) != 250 || ids[249] != "m249" || !slices.Contains(ids, "m100") {
		t.Errorf("%d ids", len(ids))
	}
}

func TestChanged(t *testing.T) {
	line := grokLine(50) + "\n"
	second := int64(len(line))
	for name, c := range map[string]struct {
		file string
		size int64
		at   Position
	}{
		"shorter than the position":   {line, second, Position{Offset: second + 1}},
		"no line begins there":        {line + line, 2 * second, Position{Offset: second - 1}},
		"fewer messages in the line":  {line, second, Position{Index: 1}},
		"less than its size":          {line, second + 10, Position{}},
		"gone":                        {"", second + 10, Position{Offset: second}},
		"less than its size, skipped": {line, second + 10, Position{Offset: 3, Skipping: true}},
	} {
		if _, err := Read(t.Context(), strings.NewReader(c.file), c.size, Grok, c.at, Query{}); !errors.Is(err, ErrChanged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	export := samples(t)["opencode-export.json"]
	cut := export[:len(export)/2]
	if _, err := Read(t.Context(), bytes.NewReader(cut), int64(len(export)), OpenCode, Position{}, Query{}); !errors.Is(err, ErrChanged) {
		t.Errorf("a document that has less than its size: %v", err)
	}
	for name, at := range map[string]Position{"lines before": {Offset: 1}, "skipped before": {Skipping: true}} {
		if _, err := Read(t.Context(), bytes.NewReader(export), int64(len(export)), OpenCode, at, Query{}); !errors.Is(err, ErrChanged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Read(t.Context(), strings.NewReader("{"), 1, OpenCode, Position{Offset: 1}, Query{}); !errors.Is(err, ErrChanged) {
		t.Errorf("nothing to tell the form by: %v", err)
	}
}

func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		provider string
		at       Position
	}{
		"provider": {"copilot", Position{}},
		"offset":   {Grok, Position{Offset: -1}},
		"index":    {Grok, Position{Index: -1}},
		"carry":    {Grok, Position{Carry: strings.Repeat("x", maxCarry+1)}},
	} {
		if _, err := Read(t.Context(), strings.NewReader("\n"), 1, c.provider, c.at, Query{}); !hub.IsCode(err, hub.CodeInvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewMeter("copilot"); !hub.IsCode(err, hub.CodeInvalidArgument) {
		t.Error(err)
	}
}

// broken fails at every read from an offset on.
type broken struct {
	io.ReaderAt
	from int64
	err  error
}

func (b broken) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > b.from {
		return 0, b.err
	}
	return b.ReaderAt.ReadAt(p, off)
}

func TestErrorsPass(t *testing.T) {
	failure := errors.New("the disk is gone")
	for name, raw := range samples(t) {
		provider, size := providerOf(name), int64(len(raw))
		src := broken{bytes.NewReader(raw), 0, failure}
		if _, err := Read(t.Context(), src, size, provider, Position{}, Query{}); !errors.Is(err, failure) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Tail(t.Context(), src, size, provider, 10); !errors.Is(err, failure) {
			t.Errorf("%s, tail: %v", name, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := Sum(ctx, bytes.NewReader(raw), size, provider); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, cancelled: %v", name, err)
		}
	}
}

func TestDocumentBounds(t *testing.T) {
	element := func(size int) string {
		text := `{"info":{"role":"user"},"parts":[{"type":"text","text":""}]}`
		return text[:len(text)-4] + strings.Repeat("x", size-len(text)) + text[len(text)-4:]
	}
	file := `{"info":{"id":"s"},"messages":[` + element(MaxRecord) + "," + element(MaxRecord+1) + "," + element(100) + `]}`
	page := readAll(t, OpenCode, file, Position{}, Query{})
	if len(page.Messages) != 2 || page.Skipped != 1 || !page.AtEnd || page.Next.Index != 3 {
		t.Errorf("%d messages, %+v", len(page.Messages), page.Next)
	}
	long := `{"info":{"id":"s"},"messages":[` + element(100) + "," + strings.Repeat(" ", MaxDocument) + element(100) + `]}`
	page = readAll(t, OpenCode, long, Position{}, Query{})
	if len(page.Messages) != 1 || !page.Limited || !page.AtEnd || len(page.Warnings) != 1 {
		t.Errorf("a document that is too long: %d messages, %+v", len(page.Messages), page.Warnings)
	}
}
