//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/openapi/api"
)

// spawned makes a running wave of the tasks.
func (c Coordinator) spawned(t testing.TB, tasks []waveEntry, more ...string) string {
	t.Helper()
	return c.newWave(t, append([]string{"--tasks", taskFile(t, tasks...), "--spawn"}, more...)...)
}

// far is a task whose script sh runs on the worker hub, in the granted folder.
func (p Pairing) far(id, script string, dependencies ...string) waveEntry {
	return waveEntry{
		ID: id, Goal: script, Start: map[string]any{"on": p.Worker.Name, "agent": "sh", "worktree": "path:" + p.Root},
		Dependencies: dependencies, WriteScope: []string{},
	}
}

// attachedTask is a task for an attached worker, by name or name@peer.
func attachedTask(id, worker string, dependencies ...string) waveEntry {
	return waveEntry{ID: id, Goal: "do " + id, Worker: worker, Dependencies: dependencies, WriteScope: []string{}}
}

// entry is a task at the site, in its repository.
func (s site) entry(id, script string, dependencies ...string) waveEntry {
	start := map[string]any{"agent": "sh", "worktree": "path:" + s.repo}
	if s.owner != s.run.hub {
		start["on"] = s.owner.Name
	}
	return waveEntry{ID: id, Goal: script, Start: start, Dependencies: dependencies, WriteScope: []string{}}
}

// taskIn is one task of a snapshot.
func taskIn(t testing.TB, s api.WaveSnapshot, token string) api.WaveTask {
	t.Helper()
	for _, x := range s.Tasks {
		if x.TaskId == token {
			return x
		}
	}
	t.Fatalf("there is no task %s in %s", token, s.Wave.WaveId)
	return api.WaveTask{}
}

// standings are status and reason of each task.
func standings(s api.WaveSnapshot) map[string]string {
	all := map[string]string{}
	for _, x := range s.Tasks {
		if all[x.TaskId] = string(x.Status); x.Reason != nil {
			all[x.TaskId] += " " + *x.Reason
		}
	}
	return all
}

// logOf is what the log has of a wave.
func (c Coordinator) logOf(t testing.TB, wave string) []api.WaveEvent {
	t.Helper()
	r := c.CLI("events", "--wave", wave)
	if r.Code != 0 {
		t.Fatalf("the log of %s: %+v", wave, r)
	}
	return eventsOf(t, r.Stdout)
}

// ledger is a file in which scripts of waves write down what they do. It outlives
// hubs and is read by nobody but the test.
type ledger string

// deed is one line of it.
type deed struct{ word, token, dispatch string }

func newLedger(t testing.TB) ledger {
	t.Helper()
	return ledger(filepath.Join(t.TempDir(), "ledger"))
}

// dispatchID is shell text that is the worker's Dispatch.
const dispatchID = `"$(sed -n 's/.*"dispatch_id": *"\([^"]*\)".*/\1/p' "$WAVEHUB_DISPATCH_FILE")"`

// note is shell text that adds a line.
func (l ledger) note(word string) string {
	return `printf '%s %s %s\n' ` + word + ` "$WAVEHUB_WAVE_TASK_ID" ` + dispatchID + ` >> '` + string(l) + "'\n"
}

func (l ledger) read(t testing.TB) (all []deed) {
	t.Helper()
	raw, err := os.ReadFile(string(l))
	if os.IsNotExist(err) {
		return nil
	}
	must(t, err)
	for line := range strings.Lines(string(raw)) {
		if f := strings.Fields(line); len(f) == 3 && strings.HasSuffix(line, "\n") {
			all = append(all, deed{f[0], f[1], f[2]})
		} else {
			t.Fatalf("the ledger has the line %q", line)
		}
	}
	return all
}

// times is how often a word was written, by task.
func (l ledger) times(t testing.TB, word string) map[string]int {
	t.Helper()
	n := map[string]int{}
	for _, d := range l.read(t) {
		if d.word == word {
			n[d.token]++
		}
	}
	return n
}
