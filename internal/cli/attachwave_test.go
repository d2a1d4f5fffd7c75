package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/capfile"
	"github.com/wavehub/wavehub/internal/hub"
)

// A turn is told of its wave and of what its Task depends on; a bare one gets the
// Task's text alone, and the rest by its environment.
func TestTurnsAreToldOfTheirWave(t *testing.T) {
	ref := &hub.WaveRef{Wave: "w1", Token: "T002"}
	b := hub.NewBackground([]hub.Dependency{{Task: "task_1", Title: "the schema", Result: "Two tables."}}, 1)
	s := hub.SessionStart{
		Dispatch: hub.NewDispatchID(), Task: hub.NewTaskID(), Run: hub.NewRunID(), Session: ref.Session(), Preamble: "How to report.\n",
		Prompt: b.Behind("echo 1"), SpecBytes: len("echo 1"), Background: b, WaveMark: ref.Mark(),
	}
	l := &attachLoop{notes: noteBook{dir: t.TempDir()}, conn: client.Config{URL: "https://h:1", Fingerprint: "f", Token: "whw_x"}}
	one, dir := newTurn(note{Start: s}, "true"), l.notes.private("x")
	if err := l.furnish(one, dir); err != nil {
		t.Fatal(err)
	}
	if got := l.prompt(one); !strings.Contains(got, "echo 1\n\nWhat this task depends on") || !strings.Contains(got, "      Two tables.\n") {
		t.Errorf("the prompt is\n%s", got)
	}
	l.flags.bare = true
	if got := l.prompt(one); got != "echo 1" {
		t.Errorf("bare it is %q", got)
	}
	env, file := l.environment(one, dir), filepath.Join(dir, "dependencies.json")
	for _, want := range []string{"WAVEHUB_WAVE_ID=w1", "WAVEHUB_WAVE_TASK_ID=T002", "WAVEHUB_SESSION_ID=w1--T002", "WAVEHUB_DEPENDENCIES_FILE=" + file} {
		if !slices.Contains(env, want) {
			t.Errorf("no %s in %q", want, env)
		}
	}
	if raw, err := os.ReadFile(file); err != nil || !strings.Contains(string(raw), `"result":"Two tables."`) {
		t.Errorf("the file is %s, %v", raw, err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "dispatch.json"))
	if err != nil {
		t.Fatal(err)
	}
	if own, err := capfile.Decode(raw); err != nil || own.WaveTaskID != "T002" {
		t.Errorf("the turn's credential names %q, %v", own.WaveTaskID, err)
	}
}

func TestTurnsOfNoWaveAreToldNothing(t *testing.T) {
	s := hub.SessionStart{Dispatch: hub.NewDispatchID(), Task: hub.NewTaskID(), Run: hub.NewRunID(), Prompt: "echo 1"}
	l := &attachLoop{notes: noteBook{dir: t.TempDir()}, conn: client.Config{URL: "https://h:1", Fingerprint: "f", Token: "whw_x"}}
	one, dir := newTurn(note{Start: s}, "true"), l.notes.private("x")
	if err := l.furnish(one, dir); err != nil {
		t.Fatal(err)
	}
	for _, entry := range l.environment(one, dir) {
		if strings.HasPrefix(entry, "WAVEHUB_WAVE_") || strings.HasPrefix(entry, hub.EnvDependencies) {
			t.Errorf("it is told %s", entry)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "dependencies.json")); !os.IsNotExist(err) {
		t.Errorf("there is a file of nothing: %v", err)
	}
}

// The token of a wave's task is spooled as the hub would take it, and no other name.
func TestATokenIsSpooledToo(t *testing.T) {
	s := newSpooler(t)
	s.cap.WaveTaskID = "T002"
	s.writeCap()
	s.srv.Close()
	args := func(token string) []string {
		return []string{"send", "--type", "worker_done", "--task-id", token, "--dispatch-id", s.cap.DispatchID, "--outcome", "succeeded", "--body", "B", "--json"}
	}
	s.mustSpool(wavehub(t, args("T002")...), "B")
	wavehub(t, args("T003")...).want(t, 2, "lifecycle_invalid")
	wavehub(t, append(args("T002"), "--usage", "[1]")...).want(t, 2, "usage")
	if n := len(s.lines()); n != 1 {
		t.Errorf("%d lines are spooled", n)
	}
}
