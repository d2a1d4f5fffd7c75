//go:build unix

package e2e

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/agent/transcript"
	"github.com/wavehub/wavehub/openapi/api"
)

// O1: of all records in a folder a worker's is the one of the session that its own
// agent has named, and that says so itself.
func TestAcceptance_O01_SessionsInOneFolderAreNeverConfused(t *testing.T) {
	t.Parallel()
	run, dir := StartHub(t, "mac", withScribe).NewRun("one folder"), t.TempDir()
	first := newScribe(t, run, dir, `says a1 "of the first"; announce`)
	second := newScribe(t, run, dir, `says b1 "of the second"; announce`)
	silent := newScribe(t, run, dir, `says c1 "of the silent one"`)
	thief := newScribe(t, run, dir, `says d1 "of the thief"; record='`+first.record+`'; announce`)
	first.write(first.line("a2", "and goes on"))
	for name, x := range map[string]struct {
		of   scribe
		want string
	}{"first": {first, "of the first and goes on"}, "second": {second, "of the second"}} {
		if p := x.of.read(); p.Source != "transcript" || words(p) != x.want || *p.Provider != "claude" {
			t.Errorf("%s: %s %q", name, p.Source, words(p))
		}
	}
	for name, of := range map[string]scribe{"silent": silent, "thief": thief} {
		if p := of.read(); p.Source != "terminal" || p.Terminal.Text != "this is the terminal\n" {
			t.Errorf("%s: %s, %q, %+v", name, p.Source, words(p), p.Terminal)
		}
		of.refuses("transcript_required", "--source", "transcript")
	}
	if a, b := first.read().SourceIdentity, second.read().SourceIdentity; a == b || a == "" {
		t.Errorf("the identities are %q and %q", a, b)
	}
}

// O2: a record that is too long is skipped and counted, and one that is not whole
// yet waits.
func TestAcceptance_O02_LongAndTornRecords(t *testing.T) {
	t.Parallel()
	run := StartHub(t, "mac", withScribe).NewRun("records")
	s := newScribe(t, run, t.TempDir(), `says a one; announce`)
	s.write(s.line("long", strings.Repeat("x", transcript.MaxRecord)) + s.line("b", "two"))
	p := s.read()
	if words(p) != "one two" || !p.Transcript.Limited || len(p.Warnings) != 1 || !strings.HasSuffix(p.Warnings[0], "skipped: 1") {
		t.Errorf("%q, limited %v, %q", words(p), p.Transcript.Limited, p.Warnings)
	}
	torn := s.line("c", "three")
	for n, part := range []string{torn[:len(torn)/2], torn[len(torn)/2 : len(torn)-1]} {
		s.write(part)
		p = s.read("--cursor", *p.Cursor)
		if words(p) != "" || len(p.Warnings) != 0 {
			t.Errorf("torn, part %d: %q %q", n, words(p), p.Warnings)
		}
	}
	s.write("\n")
	if p = s.read("--cursor", *p.Cursor); words(p) != "three" {
		t.Errorf("when it is whole: %q", words(p))
	}
}

// O2: a cursor is of one file. What has become shorter, or another one, is not
// read on in, but can be read anew.
func TestAcceptance_O02_AReplacedRecordIsNoticed(t *testing.T) {
	t.Parallel()
	run, dir := StartHub(t, "mac", withScribe).NewRun("replaced"), t.TempDir()
	for name, text := range map[string]func(s scribe) string{
		"cut off":  func(s scribe) string { return s.line("a", "one") },
		"replaced": func(s scribe) string { return s.line("z", strings.Repeat("another ", 100)) + s.line("y", "and more") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScribe(t, run, dir, `says a one; announce`)
			must(t, os.WriteFile(s.record, []byte(s.line("a", "one")+s.line("b", "two")), 0o600))
			cursor := *s.read().Cursor
			other := s.record + ".new"
			must(t, os.WriteFile(other, []byte(text(s)), 0o600))
			must(t, os.Rename(other, s.record))
			s.refuses("source_changed", "--cursor", cursor)
			if p := s.read(); p.Source != "transcript" || words(p) == "" || strings.Contains(words(p), "two") {
				t.Errorf("anew: %s %q", p.Source, words(p))
			}
			must(t, os.Remove(s.record))
			s.refuses("source_changed", "--cursor", cursor)
		})
	}
}

// O3: a cursor is good for the Dispatch that it was given for, unchanged.
func TestAcceptance_O03_CursorsOfOthersAndTamperedOnes(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac", withScribe)
	run, dir := h.NewRun("cursors"), t.TempDir()
	one := newScribe(t, run, dir, `says a one; says b two; announce`)
	other := newScribe(t, run, dir, `says c three; announce`)
	p := one.read("--limit", "1")
	if words(p) != "one" || !p.Transcript.Limited {
		t.Fatalf("the first page is %q", words(p))
	}
	cursor := *p.Cursor
	other.refuses("cursor_dispatch_mismatch", "--cursor", cursor)
	for n := 0; n < len(cursor)-1; n += len(cursor) / 12 {
		changed := []byte(cursor)
		if changed[n]++; changed[n] == 'z'+1 || changed[n] == '9'+1 || changed[n] == 'Z'+1 {
			changed[n] = 'A'
		}
		one.refuses("cursor_invalid", "--cursor", string(changed))
	}
	for _, bad := range []string{cursor[:len(cursor)-4], cursor + "AAAA", "../../etc/passwd", "x"} {
		one.refuses("cursor_invalid", "--cursor", bad)
	}
	one.refuses("source_changed", "--cursor", cursor, "--source", "terminal")
	if p := one.read("--cursor", cursor); words(p) != "two" {
		t.Errorf("after all that it goes on with %q", words(p))
	}
}

// O3: where a record lies is nobody's business: neither pages nor cursors nor
// errors say it, whatever is wrong with it.
func TestAcceptance_O03_ThePathIsNeverVisible(t *testing.T) {
	t.Parallel()
	run, dir := StartHub(t, "mac", withScribe).NewRun("paths"), t.TempDir()
	s := newScribe(t, run, dir, `says a one; announce`)
	cursor := *s.read().Cursor
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || strings.Contains(string(raw), dir) || strings.Contains(string(raw), s.session) {
		t.Errorf("the cursor holds %q, %v", raw, err)
	}
	spoil := []struct {
		what string
		by   func() error
	}{
		{"a file", func() error { return nil }},
		{"no file", func() error { return os.Remove(s.record) }},
		{"a folder", func() error { return os.Mkdir(s.record, 0o700) }},
		{"a pipe", func() error { return syscall.Mkfifo(s.record, 0o600) }},
		{"a link to itself", func() error { return os.Symlink(filepath.Base(s.record), s.record) }},
	}
	for n, x := range spoil {
		if n > 1 {
			must(t, os.RemoveAll(s.record))
		}
		must(t, x.by())
		for _, more := range [][]string{{}, {"--json"}, {"--cursor", cursor}, {"--source", "transcript"}, {"--source", "transcript", "--json"}} {
			r := run.CLI(append([]string{"worker", "read", s.DispatchId}, more...)...)
			if n == 0 && len(more) < 2 && (r.Code != 0 || !strings.Contains(r.Stdout, "one")) {
				t.Errorf("%s %q: exit %d %s", x.what, more, r.Code, r.Stderr)
			}
			if strings.Contains(r.Stdout+r.Stderr, dir) || strings.Contains(r.Stdout+r.Stderr, ".jsonl") {
				t.Errorf("%s %q: %s%s", x.what, more, r.Stdout, r.Stderr)
			}
		}
	}
	if show := run.CLI("worker", "show", s.DispatchId, "--json"); strings.Contains(show.Stdout, ".jsonl") {
		t.Errorf("worker show: %s", show.Stdout)
	}
}

// O4: auto says why it takes the terminal, and takes the transcript as soon as
// there is one; who asks for a transcript gets it or an error.
func TestAcceptance_O04_FallbacksSayWhy(t *testing.T) {
	t.Parallel()
	run := StartHub(t, "mac", withScribe).NewRun("reasons")
	started := func(agent string) scribe {
		g := newGate(t)
		place := []string{"--worktree", "path:" + t.TempDir(), "--agent", agent}
		if agent != "sh" {
			place = append(place, "--mode", "headless")
		}
		return scribe{run: run, StartReceipt: run.Begin(run.Task("echo this is the terminal; "+g.wait()), place...)}
	}
	late := newScribe(t, run, t.TempDir(), ":")
	gone := newScribe(t, run, t.TempDir(), `says a one; announce; rm "$record"`)
	for want, s := range map[string]scribe{
		"agent_without_transcript": started("sh"), "session_not_reported": started("mute"), "transcript_missing": gone,
	} {
		s.fallsBack(t, want)
		p := s.refuses("transcript_required", "--source", "transcript")
		if !strings.Contains(p.Detail, want) {
			t.Errorf("%s: %+v", want, p)
		}
		if p := s.read("--source", "terminal"); p.Source != "terminal" || p.FallbackReason != nil {
			t.Errorf("%s: the terminal itself: %+v", want, p)
		}
	}
	late.fallsBack(t, "transcript_missing")
	gone.write(gone.line("b", "back"))
	if p := gone.read(); p.Source != "transcript" || p.FallbackReason != nil || words(p) != "back" {
		t.Errorf("as soon as there is one: %+v", p)
	}
}

func (s scribe) fallsBack(t *testing.T, reason string) {
	t.Helper()
	var p api.OutputPage
	eventually(t, "the terminal shows something", 20*time.Second, func() bool {
		p = s.read()
		return p.Terminal != nil && p.Terminal.Text == "this is the terminal\n"
	})
	if p.Source != "terminal" || p.Transcript != nil || p.FallbackReason == nil || *p.FallbackReason != reason {
		t.Errorf("%s: %+v", reason, p)
	}
}
