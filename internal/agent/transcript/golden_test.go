package transcript

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/wavehub/wavehub/internal/hub"
)

var update = flag.Bool("update", false, "write the golden files")

// samples are all transcripts in testdata by their names. Those that end in
// "-odd" were written by hand; the others are of the real CLIs.
func samples(t testing.TB) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "*.json*"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(path)] = raw
	}
	if len(all) < 12 {
		t.Fatalf("%d samples only", len(all))
	}
	return all
}

func providerOf(name string) string {
	provider, _, _ := strings.Cut(name, ".")
	provider, _, _ = strings.Cut(provider, "-")
	return provider
}

// shot is what is known of a whole file.
type shot struct {
	Session string
	Usage   hub.Usage
	Page    Page
}

func TestGolden(t *testing.T) {
	for name, raw := range samples(t) {
		t.Run(name, func(t *testing.T) {
			provider := providerOf(name)
			session, _ := Identify(provider, raw)
			usage, err := Sum(t.Context(), bytes.NewReader(raw), int64(len(raw)), provider)
			if err != nil {
				t.Fatal(err)
			}
			page, err := Read(t.Context(), bytes.NewReader(raw), int64(len(raw)), provider, Position{}, Query{Messages: MaxMessages})
			if err != nil {
				t.Fatal(err)
			}
			checkGolden(t, name, shot{session, usage, page})
		})
	}
}

func checkGolden(t *testing.T, name string, s shot) {
	t.Helper()
	var got bytes.Buffer
	enc := json.NewEncoder(&got)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(s); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "golden", name)
	if *update {
		if err := os.WriteFile(path, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestSamplesAgree: the five CLIs ran the same script, so that their
// transcripts say the same, each in its words.
func TestSamplesAgree(t *testing.T) {
	for name, raw := range samples(t) {
		if strings.Contains(name, "-odd") {
			continue
		}
		provider := providerOf(name)
		page, err := Read(t.Context(), bytes.NewReader(raw), int64(len(raw)), provider, Position{}, Query{})
		if err != nil {
			t.Fatal(err)
		}
		want := "user: Create the file done.txt, then stop.\ntask_id: t-1\nassistant: I will run one command.\ncall: touch done.txt && echo touched\nresult: touched\nassistant: finished\n"
		if strings.HasPrefix(name, "opencode-run") {
			_, want, _ = strings.Cut(want, "t-1\n") // the prompt is not among the events
		}
		if got := told(page.Messages); got != want {
			t.Errorf("%s tells:\n%s", name, got)
		}
		usage, err := Sum(t.Context(), bytes.NewReader(raw), int64(len(raw)), provider)
		if err != nil {
			t.Fatal(err)
		}
		checkScripted(t, name, usage)
	}
}

func checkScripted(t *testing.T, name string, u hub.Usage) {
	t.Helper()
	if providerOf(name) == Grok {
		if given(u) || u.Source != hub.UsageUnknown {
			t.Errorf("%s: %+v", name, u)
		}
		return
	}
	if u.Source != hub.UsageReported || *u.InputTokens != 2500 || *u.CachedInputTokens != 2200 || *u.OutputTokens != 45 {
		t.Errorf("%s: %d %d %d", name, *u.InputTokens, *u.CachedInputTokens, *u.OutputTokens)
	}
	if (u.CostUSD != nil) != (providerOf(name) == OpenCode) || (u.ReasoningTokens == nil) != (providerOf(name) == Claude) {
		t.Errorf("%s: cost %v, reasoning %v", name, u.CostUSD, u.ReasoningTokens)
	}
}

// told is a conversation with the last message of each id, without what the
// CLIs say on their own.
func told(all []hub.TranscriptMessage) string {
	last := map[string]int{}
	for n, m := range all {
		last[m.ID] = n
	}
	var b strings.Builder
	for n, m := range all {
		if last[m.ID] != n || strings.Contains(m.Role+m.Blocks[0].Text, "left out") {
			continue
		}
		for _, block := range m.Blocks {
			tellBlock(&b, m.Role, block)
		}
	}
	return b.String()
}

func tellBlock(b *strings.Builder, role string, block hub.TranscriptBlock) {
	switch block.Kind {
	case hub.BlockText:
		if role == roleUser || role == roleAssistant {
			b.WriteString(role + ": " + strings.TrimSpace(block.Text) + "\n")
		}
	case hub.BlockToolCall:
		var in struct{ Cmd, Command string }
		fill(block.Input, &in)
		b.WriteString("call: " + in.Cmd + in.Command + "\n")
	case hub.BlockToolResult:
		if strings.Contains(block.Text, "touched") && !block.Error {
			b.WriteString("result: touched\n")
		}
	case hub.BlockThinking, hub.BlockImageRef, hub.BlockOther:
	}
}
