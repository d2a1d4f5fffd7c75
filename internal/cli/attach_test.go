package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/proc"
)

func TestNotesSurviveAndAreStrict(t *testing.T) {
	b := noteBook{dir: t.TempDir()}
	n := note{Start: hub.SessionStart{Dispatch: hub.NewDispatchID(), Prompt: "p"}, State: started, TurnID: "x", Process: proc.Identity{PID: 7}}
	if err := errors.Join(b.put(n), os.WriteFile(filepath.Join(b.dir, "other.json"), []byte("{"), 0o600), os.Mkdir(b.private("x"), 0o700)); err != nil {
		t.Fatal(err)
	}
	got, ok, err := b.get(n.id())
	if err != nil || !ok || got.Start.Prompt != "p" || got.State != started || got.Process.PID != 7 {
		t.Errorf("%+v, %v, %v", got, ok, err)
	}
	if all, err := b.all(); err != nil || len(all) != 1 || all[0].id() != n.id() {
		t.Errorf("%+v, %v", all, err)
	}
	if _, ok, err := b.get(string(hub.NewDispatchID())); ok || err != nil {
		t.Errorf("a note of nothing: %v, %v", ok, err)
	}
	torn := string(hub.NewDispatchID())
	if err := os.WriteFile(b.path(torn), []byte(`{"state":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := b.all(); err == nil {
		t.Error("a note that cannot be read is passed over: its turn would run twice")
	}
	if err := errors.Join(b.drop(torn), b.drop(torn), b.drop(n.id())); err != nil {
		t.Error(err)
	}
	if all, err := b.all(); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	out := &tail{max: 8}
	for _, part := range []string{"", "abc", "defghij", "k", strings.Repeat("x", 20) + "END", "\xff\x00"} {
		if n, err := out.Write([]byte(part)); n != len(part) || err != nil {
			t.Errorf("Write(%q) = %d, %v", part, n, err)
		}
		if len(out.buf) > 8 {
			t.Errorf("it holds %d bytes", len(out.buf))
		}
	}
	if got := out.String(); got != "xxxEND\uFFFD\uFFFD" {
		t.Errorf("the end is %q", got)
	}
}

func TestWhichErrorsPass(t *testing.T) {
	for code, want := range map[client.Code]bool{
		client.CodeHubUnreachable: true, client.CodeHubDraining: true, client.CodeRateLimited: true, client.CodeOutcomeUnknown: true,
		client.CodeWaiterExists: true, client.CodeStorageFull: true,
		client.CodeInvalidToken: false, client.CodeConsumerFenced: false, client.CodeHubIdentityMismatch: false, client.CodeLifecycleInvalid: false,
	} {
		if got := passing(client.Errorf(code, "x")); got != want {
			t.Errorf("%s passes: %v", code, got)
		}
	}
	if passing(errors.New("x")) || !fatal(client.Errorf(client.CodeConsumerFenced, "x")) || fatal(client.Errorf(client.CodeLifecycleInvalid, "x")) {
		t.Error("what ends the loop is confused")
	}
}

func TestTurnKeepsMailThatCameEarly(t *testing.T) {
	l := &attachLoop{notes: noteBook{dir: t.TempDir()}, conn: client.Config{URL: "https://h:1", Fingerprint: "f", Token: "whw_x"}}
	n := note{Start: hub.SessionStart{Dispatch: hub.NewDispatchID(), Task: hub.NewTaskID(), Run: hub.NewRunID()}}
	one := newTurn(n, "true")
	for range maxEarly {
		if err := one.tell(client.Message{MessageId: "early"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := one.tell(client.Message{}); err == nil {
		t.Error("mail is kept without a bound")
	}
	dir := l.notes.private("x")
	if err := l.furnish(one, dir); err != nil {
		t.Fatal(err)
	}
	if err := one.tell(client.Message{MessageId: "late"}); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "mail.ndjson"))
	if lines := strings.Count(string(raw), "\n"); err != nil || lines != maxEarly+1 || !strings.HasSuffix(string(raw[:len(raw)-1]), "}") {
		t.Errorf("%d lines, %v", lines, err)
	}
	if raw, err := os.ReadFile(filepath.Join(dir, "dispatch.json")); err != nil || !strings.Contains(string(raw), "whw_x") || !strings.Contains(string(raw), n.id()) {
		t.Errorf("the turn's credential is %s, %v", raw, err)
	}
}
