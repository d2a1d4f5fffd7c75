package wave

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/wavehub/wavehub/internal/hub"
)

var updateCheckpoint = flag.Bool("update-checkpoint", false, "write the golden files of checkpoints")

// TestFilesAreAsWritten: the files of a wave that failed in its second level, and of
// one that is completed, are what programs of others read.
func TestFilesAreAsWritten(t *testing.T) {
	failed := finishedWave()
	code := 7
	failed.rows[1].Dispatch = &hub.Dispatch{
		ID: "dispatch_b", State: hub.Failed, Reason: hub.ReasonVerificationFailed, ExitCode: &code, SettledAt: failed.clock + 5_000_000,
		Findings: &hub.Findings{
			VerifyResult: hub.VerifyFailed, VerifiedBy: hub.VerifiedByHub, Violations: []string{"other/file"}, ViolationCount: 1,
			Verification: &hub.Verification{Command: "make test", ExitCode: &code, OutputTail: "FAIL <a>\n", Attempts: 1},
		},
	}
	failed.rows[1].State, failed.rows[1].Result = hub.TaskFailed, "the tests fail"
	failed.rows[3].State, failed.rows[3].Dispatch, failed.rows[3].Result, failed.rows[3].CompletedAt = hub.TaskPending, nil, "", 0
	failed.standings["b"] = standing{status: hub.WaveFailed, reason: hub.ReasonVerificationFailed}
	failed.standings["d"] = standing{status: hub.WaveCancelled, reason: hub.EndBlocked}
	failed.wave.Status, failed.wave.Exhausted, failed.wave.Iteration = hub.WaveFailed, true, 3
	failed.wave.Ending = &hub.WaveEnding{As: hub.WaveFailed, Reason: hub.EndTaskFailed, At: failed.clock + 6_000_000}
	for name, x := range map[string]*checkpointWorld{"completed": finishedWave(), "failed": failed} {
		for path, data := range contents(x.files()) {
			golden := filepath.Join("testdata", "checkpoint", name, filepath.FromSlash(path))
			if *updateCheckpoint {
				if err := (diskFiles{}).Write(golden, data); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(golden); err != nil || string(want) != string(data) {
				t.Errorf("%s of the %s wave is\n%s\nwant\n%s, %v", path, name, data, want, err)
			}
		}
	}
}

func TestBlockedUnderBarrier(t *testing.T) {
	x := finishedWave()
	x.wave.Policy.Order = hub.OrderBarrier
	x.rows[3].Entry.Dependencies = []string{"c"} // does not depend on what fails
	for _, token := range []string{"b", "d"} {
		x.standings[token] = standing{status: hub.WaveFailed, reason: "exit"}
	}
	x.standings["d"] = standing{status: hub.WaveCancelled, reason: hub.EndBlocked}
	p := projectedOf(x.wave, x.rows, x.statuses)
	if got := p.tokens(p.blocked(2, []int{1})); !reflect.DeepEqual(got, []string{"d"}) {
		t.Errorf("behind b are %q", got)
	}
	x.wave.Policy.Order = hub.OrderDAG
	p = projectedOf(x.wave, x.rows, x.statuses)
	if got := p.tokens(p.blocked(2, []int{1})); len(got) != 0 {
		t.Errorf("without a barrier, behind b are %q", got)
	}
}

// TestOwnReasonsOfCancelledTasks: what is cancelled since something else ended is
// no failure of its level.
func TestOwnReasonsOfCancelledTasks(t *testing.T) {
	for reason, failure := range map[string]bool{
		hub.EndByWorker: true, hub.EndSetByOperator: true, hub.EndBlocked: false, hub.EndWave: false, hub.EndCancelled: false,
	} {
		x := finishedWave()
		x.standings["d"] = standing{status: hub.WaveCancelled, reason: reason}
		files := contents(x.files())
		if _, there := files[failuresName(3)]; there != failure || files[doneName(3)] != nil {
			t.Errorf("%s: failures.json is there: %v", reason, there)
		}
	}
}

func TestPathNames(t *testing.T) {
	for name, want := range map[string]string{"wave_1-a": "wave_1-a", "Wave": "%57ave", "a%b": "a%25b", "é:\\": "%C3%A9%3A%5C", "..": "%2E%2E"} {
		if got := pathName(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		if (pathName(a) == pathName(b)) != (a == b) {
			t.Fatalf("%q and %q have the names %q and %q", a, b, pathName(a), pathName(b))
		}
	})
}

// TestSameEntryAgreesWithItsJSON: no member of an entry or a start is forgotten.
func TestSameEntryAgreesWithItsJSON(t *testing.T) {
	full := func() hub.WaveEntry {
		e := hub.WaveEntry{Start: &hub.WaveStart{}}
		fill(reflect.ValueOf(&e).Elem(), "x")
		fill(reflect.ValueOf(e.Start).Elem(), "x")
		return e
	}
	if a, b := full(), full(); !sameEntry(a, b) || tasksSum([]hub.WaveEntry{a}) != tasksSum([]hub.WaveEntry{b}) {
		t.Fatal("equal entries differ")
	}
	differ := func(what string, a, b hub.WaveEntry) {
		if sameEntry(a, b) || tasksSum([]hub.WaveEntry{a}) == tasksSum([]hub.WaveEntry{b}) {
			t.Errorf("entries that differ in %s are the same", what)
		}
	}
	for i := range reflect.TypeFor[hub.WaveEntry]().NumField() {
		e := full()
		reflect.ValueOf(&e).Elem().Field(i).SetZero()
		differ(reflect.TypeFor[hub.WaveEntry]().Field(i).Name, full(), e)
	}
	for i := range reflect.TypeFor[hub.WaveStart]().NumField() {
		e := full()
		reflect.ValueOf(e.Start).Elem().Field(i).SetZero()
		differ(reflect.TypeFor[hub.WaveStart]().Field(i).Name, full(), e)
	}
	differ("a scope that is empty", hub.WaveEntry{}, hub.WaveEntry{WriteScope: []string{}})
}

// fill gives every member a value.
func fill(v reflect.Value, text string) {
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.String:
			f.SetString(text)
		case reflect.Slice:
			f.Set(reflect.ValueOf([]string{text}))
		case reflect.Int64:
			f.SetInt(7)
		case reflect.Pointer:
		default:
			panic("a member of another kind: " + f.Kind().String())
		}
	}
}

// TestGraphMemoFollowsChanges: a remembered sum is never that of another graph.
func TestGraphMemoFollowsChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newCheckpointWorld(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 8).Draw(t, "tasks"))
		var memo graphMemo
		for range rapid.IntRange(1, 40).Draw(t, "changes") {
			x.change()
			p := projectedOf(x.wave, x.rows, x.statuses)
			if got, want := memo.sum(p, x.orders), graphSum(p.graphBody(x.orders)); got != want {
				t.Fatalf("remembered is %s, the sum is %s", got, want)
			}
		}
	})
}
