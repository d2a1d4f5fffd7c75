//go:build unix

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/openapi/api"
)

// eventsOf are the whole lines that watchers printed, as events. A line that a kill
// has cut is none.
func eventsOf(t testing.TB, text string) (es []api.WaveEvent) {
	t.Helper()
	for line := range strings.Lines(text) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		var e api.WaveEvent
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("a watcher printed %q: %v", line, err)
		}
		es = append(es, e)
	}
	return es
}

// oneWave writes a tasks file of n shell tasks without scopes to share, and makes
// the wave of it.
func oneWave(t testing.TB, c Caller, id, dir string, n int) {
	t.Helper()
	tasks := make([]string, n)
	for i := range tasks {
		tasks[i] = fmt.Sprintf(`{"task_id":"t%d","goal":%q,"start":{"worktree":"path:%s","agent":"sh"},"write_scope":[]}`,
			i, `"$WAVEHUB_BIN" send --type status --subject s --body b --milestone half && `+done+`ok`, dir)
	}
	file := filepath.Join(t.TempDir(), id+".json")
	must(t, os.WriteFile(file, []byte("["+strings.Join(tasks, ",")+"]"), 0o600))
	get[api.WaveResult](t, c, "wave", "create", "--goal", id, "--id", id, "--tasks", file)
}

// TestAcceptance_V17_WatchersSeeEveryEventOnce: one wave's watcher sees nothing of
// another one whose name begins with its own; one that is killed and goes on from its
// last cursor sees every event once.
func TestAcceptance_V17_WatchersSeeEveryEventOnce(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("watched")
	for _, id := range []string{"w1", "w10"} {
		oneWave(t, run.Caller, id, t.TempDir(), 6)
	}
	for _, id := range []string{"w1", "w10"} {
		get[api.WaveSnapshot](t, run.Caller, "wave", "spawn", id)
	}
	var seen []api.WaveEvent
	for kills := 0; ; kills++ {
		args := []string{"wave", "watch", "w1"}
		if n := len(seen); n > 0 {
			args = append(args, "--cursor", strconv.FormatInt(seen[n-1].Seq, 10))
		}
		cmd := run.command(t.Context(), args...)
		if kills == 5 {
			out, err := cmd.Output()
			must(t, err)
			seen = append(seen, eventsOf(t, string(out))...)
			break
		}
		seen = append(seen, eventsOf(t, killedBehind(t, cmd, 3))...)
	}
	whole := run.CLI("events", "--wave", "w1")
	want := eventsOf(t, whole.Stdout)
	if len(want) < 20 || len(seen) != len(want) {
		t.Fatalf("%d events were seen, the log has %d\n%s", len(seen), len(want), whole.Stderr)
	}
	for i, e := range seen {
		if e.Seq != want[i].Seq || e.WaveId == nil || *e.WaveId != "w1" {
			t.Errorf("event %d is %+v, the log has %+v", i, e, want[i])
		}
	}
	if last := want[len(want)-1]; last.Type != "wave_completed" {
		t.Errorf("the last event is %+v", last)
	}
	kept := run.CLI("watch", "--wave", "w1", "--timeout", "1s") // it goes on until it is told to end
	if got := eventsOf(t, kept.Stdout); kept.Code != 0 || !slices.EqualFunc(got, want, sameEvent) {
		t.Errorf("watch: exit %d, %d events of %d\n%s", kept.Code, len(got), len(want), kept.Stderr)
	}
	behind := run.CLI("watch", "--wave", "w1", "--timeout", "1s", "--cursor", strconv.FormatInt(want[9].Seq, 10))
	if got := eventsOf(t, behind.Stdout); !slices.EqualFunc(got, want[10:], sameEvent) {
		t.Errorf("watch behind the tenth event: %d events of %d\n%s", len(got), len(want)-10, behind.Stderr)
	}
}

func sameEvent(a, b api.WaveEvent) bool { return a.Seq == b.Seq && a.Type == b.Type }

// killedBehind starts a watcher, kills it after so many lines, and returns what it
// printed until it was gone. One that ends by itself is not killed.
func killedBehind(t testing.TB, cmd *exec.Cmd, lines int) string {
	t.Helper()
	pipe, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	var out strings.Builder
	r := bufio.NewReader(pipe)
	for n := 0; ; n++ {
		if n == lines {
			must(t, cmd.Process.Kill())
		}
		line, err := r.ReadString('\n')
		out.WriteString(line)
		if err != nil {
			break
		}
	}
	_ = cmd.Wait() // it was killed
	return out.String()
}

// TestEvents_MilestonesOfARelayedWorkerAreInTheHomesLog: also a Task of no wave has
// events, once, and they outlive the hub.
func TestEvents_MilestonesOfARelayedWorkerAreInTheHomesLog(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	run := p.Home.NewRun("milestones")
	g := newGate(t)
	start := run.Work(`"$WAVEHUB_BIN" send --type status --subject s --body b --milestone half`+"\n"+g.wait()+done+`ok`, p.Place()...)
	watch := run.command(t.Context(), "watch", "--run", run.Run)
	pipe, err := watch.StdoutPipe()
	must(t, err)
	must(t, watch.Start())
	t.Cleanup(func() { _ = watch.Process.Kill(); _ = watch.Wait() })
	line, err := bufio.NewReader(pipe).ReadString('\n')
	must(t, err)
	g.open(t, 1)
	run.Done(start.DispatchId)
	p.Home.Kill()
	p.Home.Start()
	again := run.CLI("events", "--run", run.Run)
	es := eventsOf(t, again.Stdout)
	if again.Code != 0 || again.Stdout != line || len(es) != 1 || es[0].Type != "milestone" || *es[0].HubTaskId != start.TaskId ||
		!strings.Contains(string(es[0].Data), `"half"`) || !strings.Contains(string(es[0].Data), start.DispatchId) {
		t.Errorf("watched %s, then %+v", line, again)
	}
	if other := p.Worker.Caller().CLI("events", "--all"); other.Code != 0 || other.Stdout != "" {
		t.Errorf("the owner's log has %+v", other)
	}
}
