package wave

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/wavehub/wavehub/internal/hub"
)

const testFolder = "/checkpoints/w"

func mustKeep(t interface {
	Helper()
	Fatal(...any)
}, p *projector, files []folderFile,
) int {
	t.Helper()
	through, err := p.keep(context.Background(), files)
	if err != nil {
		t.Fatal(err)
	}
	return through
}

// mustHold fails unless the folder holds the files and former failures only.
func mustHold(t interface {
	Helper()
	Fatalf(string, ...any)
}, got map[string][]byte, files []folderFile,
) {
	t.Helper()
	want := contents(files)
	for name, data := range want {
		if string(got[name]) != string(data) {
			t.Fatalf("%s is\n%s\nwant\n%s", name, got[name], data)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok && !strings.Contains(name, "/failures.") {
			t.Fatalf("%s is there", name)
		}
	}
}

func TestFolderIsTheProjection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMemory()
		p := newProjector(m, testFolder)
		x := newCheckpointWorld(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 14).Draw(t, "tasks"))
		for range rapid.IntRange(1, 60).Draw(t, "changes") {
			x.change()
			if rapid.IntRange(0, 9).Draw(t, "restart") == 0 {
				p = newProjector(m, testFolder)
			}
			through := mustKeep(t, p, x.files())
			mustHold(t, m.below(testFolder), x.files())
			if done := x.doneLevels(); through > 0 && !done[through] || done[through+1] {
				t.Fatalf("done through %d of %v", through, done)
			}
			before := m.changes
			if mustKeep(t, p, x.files()) != through || m.changes != before {
				t.Fatal("the same state is written twice")
			}
		}
	})
}

// TestFolderAfterKills: cut before or behind any change to the folder, at each
// instant the files tell one story, and the next start puts them right.
func TestFolderAfterKills(t *testing.T) {
	for seed := range uint64(4) {
		for _, half := range []bool{false, true} {
			cutEverywhere(t, seed, half)
		}
	}
}

func cutEverywhere(t *testing.T, seed uint64, half bool) {
	t.Helper()
	x := newCheckpointWorld(seed, 8)
	m := newMemory()
	for range 25 {
		mustKeep(t, newProjector(m, testFolder), x.files())
		former := maps.Clone(m.files)
		for range 4 {
			x.change()
		}
		for cut := 0; ; cut++ {
			m.files, m.left, m.half = maps.Clone(former), cut, half
			p := newProjector(m, testFolder)
			through, err := p.keep(context.Background(), x.files())
			mustBeStory(t, m.below(testFolder))
			for level := 1; level <= through; level++ {
				if string(m.files[testFolder+"/"+doneName(level)]) != string(contents(x.files())[doneName(level)]) {
					t.Fatalf("done through %d, but %d is not written", through, level)
				}
			}
			m.left, m.half = -1, false
			if err != nil && !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			// Both the process that got the error and the next one put it right.
			if cut%2 == 0 {
				p = newProjector(m, testFolder)
			}
			mustKeep(t, p, x.files())
			mustHold(t, m.below(testFolder), x.files())
			if err == nil {
				break
			}
		}
	}
}

func TestFormerFailuresAreKept(t *testing.T) {
	x := newCheckpointWorld(3, 1)
	m := newMemory()
	p := newProjector(m, testFolder)
	for range 2 {
		x.fail(&x.rows[0])
		mustKeep(t, p, x.files())
		x.retry()
		mustKeep(t, p, x.files())
	}
	x.complete(&x.rows[0])
	mustKeep(t, p, x.files())
	got := m.below(testFolder)
	want := []string{"graph.json", "state.json", "waves/1/done.json", "waves/1/failures.1.json", "waves/1/failures.2.json"}
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
		t.Errorf("files are %q, want %q", names, want)
	}
	if !strings.Contains(string(got["waves/1/failures.2.json"]), `"iteration": 2`) {
		t.Errorf("failures.2.json is %s", got["waves/1/failures.2.json"])
	}
}

// TestFailuresGiveWayAfterRestart: the hub was down while the wave went on to fail
// again.
func TestFailuresGiveWayAfterRestart(t *testing.T) {
	x := newCheckpointWorld(3, 1)
	m := newMemory()
	x.fail(&x.rows[0])
	mustKeep(t, newProjector(m, testFolder), x.files())
	x.retry()
	x.fail(&x.rows[0])
	mustKeep(t, newProjector(m, testFolder), x.files())
	got := m.below(testFolder)
	if !strings.Contains(string(got["waves/1/failures.1.json"]), `"iteration": 1`) || !strings.Contains(string(got["waves/1/failures.json"]), `"iteration": 2`) {
		t.Errorf("files are %q", slices.Sorted(maps.Keys(got)))
	}
}

// TestOrderOfWriting: what a file speaks of is there before it.
func TestOrderOfWriting(t *testing.T) {
	x := newCheckpointWorld(3, 1)
	m := newMemory()
	x.wave.Exhausted = true
	x.complete(&x.rows[0])
	mustKeep(t, newProjector(m, testFolder), x.files())
	if want := []string{graphName, "done.json", markerName, stateName}; !slices.Equal(m.writes, want) {
		t.Errorf("written are %q, want %q", m.writes, want)
	}
}

// TestFolderFollowsOlderStore: a store that was restored from a copy knows less
// than its folder shows.
func TestFolderFollowsOlderStore(t *testing.T) {
	x := newCheckpointWorld(3, 1)
	m := newMemory()
	older := x.files()
	x.complete(&x.rows[0])
	x.wave.Exhausted = true
	mustKeep(t, newProjector(m, testFolder), x.files())
	if through := mustKeep(t, newProjector(m, testFolder), older); through != 0 {
		t.Errorf("done through %d", through)
	}
	mustHold(t, m.below(testFolder), older)
}

func TestFolderOfAnotherWaveIsLeftAlone(t *testing.T) {
	m := newMemory()
	x, other := newCheckpointWorld(1, 3), newCheckpointWorld(1, 3)
	other.wave.UID = "wave_other"
	mustKeep(t, newProjector(m, testFolder), other.files())
	for _, graph := range []string{string(m.files[testFolder+"/"+graphName]), "torn{", `{"format":"other/1"}`, `{}`} {
		m.files[testFolder+"/"+graphName] = []byte(graph)
		before := m.changes
		_, err := newProjector(m, testFolder).keep(context.Background(), x.files())
		if !hub.IsCode(err, hub.CodeCheckpointMismatch) || m.changes != before {
			t.Errorf("%.40s: %v, %d changes", graph, err, m.changes-before)
		}
	}
}

func TestChangedAndLostFilesComeBack(t *testing.T) {
	dir := t.TempDir()
	x := newCheckpointWorld(1, 2)
	for i := range x.rows {
		x.complete(&x.rows[i])
	}
	mustKeep(t, newProjector(diskFiles{}, dir), x.files())
	for _, f := range x.files() {
		name := filepath.Join(dir, filepath.FromSlash(f.path))
		if f.data == nil || f.path == graphName {
			continue
		}
		for _, damage := range []func() error{
			func() error { return os.Remove(name) },
			func() error { return os.WriteFile(name, append(f.data(), "more"...), 0o600) },
			func() error { return os.WriteFile(name, f.data()[1:], 0o600) },
		} {
			if err := damage(); err != nil {
				t.Fatal(err)
			}
			mustKeep(t, newProjector(diskFiles{}, dir), x.files())
			if got, err := os.ReadFile(name); err != nil || string(got) != string(f.data()) {
				t.Errorf("%s is %q, %v", f.path, got, err)
			}
		}
	}
}

func TestLeftoversOfCrashesGo(t *testing.T) {
	dir := t.TempDir()
	x := newCheckpointWorld(1, 1)
	x.complete(&x.rows[0])
	mustKeep(t, newProjector(diskFiles{}, dir), x.files())
	left := []string{filepath.Join(dir, ".tmp-A"), filepath.Join(dir, "waves", "1", ".tmp-B")}
	for _, name := range left {
		if err := os.WriteFile(name, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mustKeep(t, newProjector(diskFiles{}, dir), x.files())
	for _, name := range left {
		if _, err := os.Lstat(name); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "checkpoints")
	if err := checkFolder(dir, "W1"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Dir(dir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was left: %v", err)
	}
	x := newCheckpointWorld(1, 1)
	mustKeep(t, newProjector(diskFiles{}, waveFolder(dir, x.wave.ID)), x.files())
	if err := checkFolder(dir, "w1"); err != nil {
		t.Errorf("beside another wave: %v", err)
	}
	if err := checkFolder(waveFolder(dir, x.wave.ID), ""); err != nil {
		t.Errorf("a minted name in a folder that has such files: %v", err)
	}
	long := hub.WaveID(strings.Repeat("A", hub.MaxWaveToken)) // three bytes each: more than a name may have
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"another wave's": checkFolder(dir, x.wave.ID), "relative": checkFolder("checkpoints", "w1"), "too long": checkFolder(dir, long),
		"a file": checkFolder(file, "w1"), "below a file": checkFolder(filepath.Join(file, "d"), "w1"),
	} {
		if !hub.IsCode(err, hub.CodeInvalidArgument) || !strings.Contains(err.Error(), "checkpoint_dir") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
