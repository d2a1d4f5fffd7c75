//go:build unix

package e2e

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/openapi/api"
)

// TestAcceptance_V09_OfflineWorkersOfAWaveGetTheirStartOnce: what is given to workers
// that are away waits for them, here and on a peer, and comes once, whatever is
// restarted meanwhile.
func TestAcceptance_V09_OfflineWorkersOfAWaveGetTheirStartOnce(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	run, near, far := p.Home.NewRun("offline"), registered(t, p.Home, ""), registered(t, p.Worker, "")
	w := run.spawned(t, []waveEntry{attachedTask("near", near.Name), attachedTask("far", far.Name+"@worker"), shTask(t, "after", done+"fine", "near", "far")})
	eventually(t, "both wait for their workers", waveLimit, func() bool {
		s := run.waveNow(t, w)
		return orNone(taskIn(t, s, "near").WaitingFor) == "worker" && orNone(taskIn(t, s, "far").WaitingFor) == "worker"
	})
	p.Home.Restart()
	p.Worker.Restart()
	get[api.WaveSnapshot](t, run.Caller, "wave", "spawn", w)
	s := run.waveNow(t, w)
	for token, who := range map[string]attachedWorker{"near": near, "far": far} {
		x := taskIn(t, s, token)
		start := who.startOf(t, *x.DispatchId)
		if start.WaveRef == nil || string(start.WaveRef.Wave) != w || start.WaveRef.Token != token || start.Session != w+"--"+token || string(start.Task) != x.HubTaskId {
			t.Errorf("%s is started by %+v", token, start)
		}
		get[api.SendResult](t, who.turn(t, start), "done", "did "+token)
	}
	s = run.waveEnds(t, w, "completed")
	for token, who := range map[string]attachedWorker{"near": near, "far": far} {
		if x := taskIn(t, s, token); x.Attempts != 1 || orEmpty(x.Result) != "did "+token {
			t.Errorf("%s is %+v", token, x)
		}
		if n := who.starts(t); n != 1 {
			t.Errorf("%s got %d starts", token, n)
		}
	}
}

// starts is how many a worker got in all.
func (w attachedWorker) starts(t testing.TB) (n int) {
	t.Helper()
	all, err := w.client().History(t.Context(), w.box(), "all", nil, client.Page{})
	must(t, err)
	for _, m := range all.Messages {
		if m.Type == "session_start" {
			n++
		}
	}
	return n
}

// TestAcceptance_V13_VerificationInAWave: the policy's word on what a check that is
// not passed means, and what is on record of it.
func TestAcceptance_V13_VerificationInAWave(t *testing.T) {
	atEachSite(t, func(t *testing.T, s site) {
		passes, fails := s.entry("passes", done+"good"), s.entry("fails", done+"good")
		passes.VerifyCmd, fails.VerifyCmd = "echo looked", "echo looked; exit 4"
		tasks := []waveEntry{passes, fails, s.entry("unchecked", done+"good")}
		recorded := s.run.spawned(t, tasks, "--on-failure", "continue")
		s.run.waveEnds(t, recorded, "completed")
		required := s.run.spawned(t, tasks[:2], "--on-failure", "continue", "--verify", "required")
		snap := s.run.waveEnds(t, required, "failed")
		if got := standings(snap); !maps.Equal(got, map[string]string{"passes": "completed", "fails": "failed verification_failed"}) {
			t.Errorf("required: %v", got)
		}
		for _, w := range []string{recorded, required} {
			snap := s.run.waveNow(t, w)
			for token, result := range map[string]string{"passes": "passed", "fails": "failed"} {
				if x := taskIn(t, snap, token); orNone(x.VerifyResult) != result || orNone(x.VerifiedBy) != "hub" {
					t.Errorf("%s of %s: %s by %s", token, w, orNone(x.VerifyResult), orNone(x.VerifiedBy))
				}
			}
			v := s.run.verifications(t, w)
			if f := v["verify_failed fails"]; f.Command != "echo looked; exit 4" || f.ExitCode == nil || *f.ExitCode != 4 || f.OutputTail != "looked\n" {
				t.Errorf("of %s is on record %+v", w, f)
			}
			if ok := v["verify_passed passes"]; len(v) != 2 || ok.ExitCode == nil || *ok.ExitCode != 0 || ok.OutputTail != "looked\n" {
				t.Errorf("of %s is on record %+v", w, v)
			}
		}
		if x := taskIn(t, s.run.waveNow(t, recorded), "unchecked"); x.VerifyResult != nil {
			t.Errorf("without a check: %s", *x.VerifyResult)
		}
	})
}

// verifications are those of a wave's log, by event and task.
func (c Coordinator) verifications(t testing.TB, wave string) map[string]hub.Verification {
	t.Helper()
	all := map[string]hub.Verification{}
	for _, e := range c.logOf(t, wave) {
		var data struct {
			Verify hub.Verification `json:"verify"`
		}
		if strings.HasPrefix(string(e.Type), "verify_") {
			must(t, json.Unmarshal(e.Data, &data))
			all[string(e.Type)+" "+orEmpty(e.TaskId)] = data.Verify
		}
	}
	return all
}

// TestAcceptance_V13_MissingIsNotPassed: an attached worker grades itself; one that
// says nothing has not passed where that is required.
func TestAcceptance_V13_MissingIsNotPassed(t *testing.T) {
	t.Parallel()
	p := NewPair(t)
	run := p.Home.NewRun("missing")
	for policy, want := range map[string][2]string{"record": {"completed", "completed"}, "required": {"completed", "failed verification_failed"}} {
		for _, at := range []*Hub{p.Home, p.Worker} {
			who, name := registered(t, at, ""), ""
			if name = who.Name; at == p.Worker {
				name += "@worker"
			}
			says, silent := attachedTask("says", name), attachedTask("silent", name)
			says.VerifyCmd, silent.VerifyCmd = "exit 1", "exit 1" // nobody runs it
			w := run.spawned(t, []waveEntry{says, silent}, "--verify", policy, "--on-failure", "continue", "--concurrency", "1")
			for _, more := range [][]string{{"--verify-result", "passed"}, nil} {
				get[api.SendResult](t, who.turn(t, who.nextStart(t)), append([]string{"done", "did it"}, more...)...)
			}
			s := run.endsAnyhow(t, w)
			if got := standings(s); got["says"] != want[0] || got["silent"] != want[1] {
				t.Errorf("%s on %s: %v", policy, at.Name, got)
			}
			if x := taskIn(t, s, "silent"); policy == "required" && orNone(x.VerifyResult) != "missing" {
				t.Errorf("on %s: what is missing is %s", at.Name, orNone(x.VerifyResult))
			}
			if x := taskIn(t, s, "says"); orNone(x.VerifyResult) != "passed" || orNone(x.VerifiedBy) != "worker" {
				t.Errorf("%s on %s: %s by %s", policy, at.Name, orNone(x.VerifyResult), orNone(x.VerifiedBy))
			}
		}
	}
}

// nextStart takes mail until a session_start is among it.
func (w attachedWorker) nextStart(t testing.TB) hub.SessionStart {
	t.Helper()
	for range 10 {
		for _, m := range w.mail(t) {
			if m.Type == "session_start" {
				return decode[hub.SessionStart](t, string(m.Payload))
			}
		}
	}
	t.Fatal("there is no session_start in 10 batches")
	return hub.SessionStart{}
}

// endsAnyhow waits until a wave has ended.
func (c Coordinator) endsAnyhow(t testing.TB, wave string) (s api.WaveSnapshot) {
	t.Helper()
	eventually(t, wave+" has ended", waveLimit, func() bool {
		s = c.waveNow(t, wave)
		return s.Wave.CompletedAt != nil
	})
	return s
}

// TestAcceptance_V14_AWaveNamesChangesOutsideOfTheScope: wave status has their names;
// where the scope is enforced the task fails.
func TestAcceptance_V14_AWaveNamesChangesOutsideOfTheScope(t *testing.T) {
	atEachSite(t, func(t *testing.T, s site) {
		for policy, want := range map[string]string{"advisory": "completed", "enforce": "failed scope_violation"} {
			stray := s.entry("stray", "echo x >> src/a; echo x > 'out "+policy+"'\n"+done+"strayed")
			stray.WriteScope = []string{"src"}
			w := s.run.spawned(t, []waveEntry{stray, s.entry("behind", done+"fine", "stray")}, "--scope", policy)
			snap := s.run.endsAnyhow(t, w)
			x := taskIn(t, snap, "stray")
			if standings(snap)["stray"] != want || !slices.Equal(x.ScopeViolations, []string{"out " + policy}) {
				t.Errorf("%s: %v, violations %q", policy, standings(snap), x.ScopeViolations)
			}
			if n := taskIn(t, snap, "behind").Attempts; (n == 1) != (want == "completed") {
				t.Errorf("%s: its dependent had %d attempts", policy, n)
			}
			if text := s.run.CLI("wave", "status", w).Stdout; !strings.Contains(text, "out "+policy) {
				t.Errorf("%s: people are shown\n%s", policy, text)
			}
		}
	})
}

// TestWave_ANewAttemptGoesOnInTheSameWorktree: the first one fails in a worktree that
// was made for it, the second finds what it left. No second one is made.
func TestWave_ANewAttemptGoesOnInTheSameWorktree(t *testing.T) {
	atEachSite(t, func(t *testing.T, s site) {
		get[api.RepoResult](t, s.owner.Caller(), "repo", "add", s.repo, "--name", "demo")
		l := newLedger(t)
		script := l.note(`"$(pwd)"`) + "if [ -e left ]; then " + done + "went-on; else touch left; exit 3; fi"
		named, unnamed := s.entry("named", script), s.entry("unnamed", script)
		for _, x := range []waveEntry{named, unnamed} {
			x.Start["worktree"], x.Start["repo"] = "new-top-level", "demo"
		}
		named.Start["name"] = "mine"
		w := s.run.spawned(t, []waveEntry{named, unnamed}, "--retry", "1")
		snap := s.run.waveEnds(t, w, "completed")
		places := map[string][]string{}
		for _, d := range l.read(t) {
			places[d.token] = append(places[d.token], d.word)
		}
		for _, x := range snap.Tasks {
			if at := places[x.TaskId]; x.Attempts != 2 || orEmpty(x.Result) != "went-on" || len(at) != 2 || at[0] != at[1] || !strings.HasPrefix(at[0], s.owner.Data("worktrees")) {
				t.Errorf("%s had %d attempts in %q", x.TaskId, x.Attempts, at)
			}
		}
		trees := get[api.WorktreePage](t, s.owner.Caller(), "worktree", "list")
		if len(trees.Worktrees) != 2 || filepath.Base(places["named"][0]) != "mine" {
			t.Errorf("the worktrees are %+v", trees.Worktrees)
		}
	})
}

// TestWave_AWorkerMayReportByItsToken: the wave's name for the task is as good as the
// Task's id, and another task's is refused.
func TestWave_AWorkerMayReportByItsToken(t *testing.T) {
	atEachSite(t, func(t *testing.T, s site) {
		refusal := filepath.Join(t.TempDir(), "refusal")
		report := `"$WAVEHUB_BIN" send --type worker_done --subject s --body "by token" --outcome succeeded --dispatch-id ` + dispatchID + ` --task-id `
		w := s.run.spawned(t, []waveEntry{
			s.entry("mine", report+"other 2> '"+refusal+"'; "+report+`"$WAVEHUB_WAVE_TASK_ID"`),
			s.entry("other", done+"fine"),
		})
		snap := s.run.waveEnds(t, w, "completed")
		if x := taskIn(t, snap, "mine"); orEmpty(x.Result) != "by token" {
			t.Errorf("it is %+v", x)
		}
		raw, err := os.ReadFile(refusal)
		if err != nil || !strings.Contains(string(raw), "lifecycle_invalid") {
			t.Errorf("with another task's token it is told %q %v", raw, err)
		}
	})
}

// TestWave_DependentsAreToldWhatWasDone: results and notes of dependencies reach the
// script, the prompt, and the attached worker, over hubs.
func TestWave_DependentsAreToldWhatWasDone(t *testing.T) {
	t.Parallel()
	p := Pairing{Home: StartHub(t, "home"), Worker: StartHub(t, "worker", withEcho), Root: NewRepo(t, map[string]string{"a": "a"})}
	Pair(t, p.Home, p.Worker, p.Root, "")
	run, near, told := p.Home.NewRun("told"), registered(t, p.Home, ""), filepath.Join(t.TempDir(), "told")
	repo := NewRepo(t, map[string]string{"a": "a"})
	here := shTask(t, "here", "mkdir notes; printf 12345 > notes/here.md; "+done+`"the result of here"`)
	here.Start["worktree"], here.HandoffPath = "path:"+repo, "notes/here.md"
	there := p.far("there", done+`"the result of there"`)
	there.HandoffPath = "notes/missing.md"
	script := p.far("script", `cp "$WAVEHUB_DEPENDENCIES_FILE" '`+told+`.tmp'; mv '`+told+`.tmp' '`+told+`'; `+done+"read", "here", "there")
	prompted := p.far("prompted", "look at both", "here", "there")
	prompted.Start["agent"] = "echo"
	w := run.spawned(t, []waveEntry{here, there, script, prompted, attachedTask("attached", near.Name, "here", "there")})
	eventually(t, "the attached worker has its task", waveLimit, func() bool { return taskIn(t, run.waveNow(t, w), "attached").DispatchId != nil })
	start := near.startOf(t, *taskIn(t, run.waveNow(t, w), "attached").DispatchId)
	get[api.SendResult](t, near.turn(t, start), "done", "read")
	s := run.waveEnds(t, w, "completed")
	raw, err := os.ReadFile(told)
	must(t, err)
	b := decode[hub.Background](t, string(raw))
	if len(b.Dependencies) != 2 || b.More != 0 {
		t.Fatalf("the script is told %s", raw)
	}
	one, two := b.Dependencies[0], b.Dependencies[1]
	if one.Token != "here" || one.Result != "the result of here" || one.HandoffPath != "notes/here.md" || one.Handoff == nil || !one.Handoff.Present || one.Handoff.Bytes != 5 || len(one.Handoff.SHA256) != 64 || one.Hub != "home" || one.Folder != repo {
		t.Errorf("the script is told of here %+v %+v", one, one.Handoff)
	}
	if two.Token != "there" || two.Result != "the result of there" || two.Handoff == nil || two.Handoff.Present || two.Hub != "worker" || string(two.Task) != taskIn(t, s, "there").HubTaskId {
		t.Errorf("the script is told of there %+v %+v", two, two.Handoff)
	}
	for name, text := range map[string]string{"the attached worker": start.Prompt, "the prompt": orEmpty(taskIn(t, s, "prompted").Result)} {
		for _, want := range []string{"the result of here", "the result of there", "notes/here.md (5 bytes, sha256 " + one.Handoff.SHA256 + ")", "notes/missing.md (nothing was left there)", "on the hub worker"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s is not told %q:\n%s", name, want, text)
			}
		}
	}
}

// withEcho configures the agent echo, which reports its prompt.
func withEcho(t testing.TB, h *Hub) {
	program := filepath.Join(h.Home, "echo")
	writeProgram(t, program, "#!/bin/sh\nexec \"$WAVEHUB_BIN\" done --body-file -\n")
	withConfig("agents:\n  echo:\n    command: ["+program+"]\n    deliver: stdin\n")(t, h)
}
