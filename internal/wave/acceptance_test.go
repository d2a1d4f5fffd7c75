package wave_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/run"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/wave"
	"github.com/wavehub/wavehub/internal/work"
)

// policyOf is the default policy, changed.
func policyOf(change func(*hub.WavePolicy)) hub.WavePolicy {
	p := hub.DefaultWavePolicy(90)
	change(&p)
	return p
}

func plain(*hub.WavePolicy) {}

// succeeds is a script in which all that is not named succeeds.
func succeeds(other map[string]deed) script {
	return func(token string, _ int) deed {
		if d, ok := other[token]; ok {
			return d
		}
		return deed{outcome: hub.OutcomeSucceeded}
	}
}

var (
	hangs = deed{}
	fails = deed{outcome: hub.OutcomeFailed}
)

// wants checks what the tasks came to: "token: status reason", one a line.
func wants(t *testing.T, rows map[string]hub.WaveRow, want map[string]string) {
	t.Helper()
	for token, as := range want {
		if r := rows[token]; strings.TrimSpace(string(r.EndedAs)+" "+r.EndedReason) != as {
			t.Errorf("%s is %s %q, not %s", token, r.EndedAs, r.EndedReason, as)
		}
	}
}

func TestAcceptance_V04_SpawnIsIdempotentAndFinalIsFinal(t *testing.T) {
	for _, token := range []string{"a--b", "a.b", strings.Repeat("x", 129), "", "-a", "a-", "a b", "a*", "a>", "a/b", "é"} {
		if hub.ValidToken(token) {
			t.Errorf("%q may name a wave", token)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, succeeds(map[string]deed{"a": {outcome: hub.OutcomeSucceeded, after: "go"}}))
		p := started(t, h, policyOf(plain), []planned{{token: "a", level: 1}})
		defer p.down()
		p.until("a is at work", func(_ hub.Wave, rows map[string]hub.WaveRow) bool { return atWork(rows["a"]) })
		if _, err := p.spawn(""); err != nil {
			t.Errorf("spawned again while it runs: %v", err)
		}
		if err := p.retry(wave.RetryInput{}); !hub.IsCode(err, hub.CodeWaveRunning) {
			t.Errorf("retried while it runs: %v", err)
		}
		h.witness.saw("elsewhere", effect{token: "go"})
		w, rows := p.final()
		if w.Iteration != 1 || rows["a"].Attempts != 1 || w.Status != hub.WaveCompleted {
			t.Errorf("it is %+v after %d attempts", w, rows["a"].Attempts)
		}
		_, again := p.spawn("")
		for what, err := range map[string]error{"spawn": again, "cancel": p.cancel(""), "retry": p.retry(wave.RetryInput{})} {
			if !hub.IsCode(err, hub.CodeWaveFinal) {
				t.Errorf("%s of a completed wave: %v", what, err)
			}
		}
		if n := count(p.events(), hub.EventWaveStarted); n != 1 {
			t.Errorf("it has started %d times", n)
		}
	})
}

func count(es []hub.WaveEvent, kind string) (n int) {
	for _, e := range es {
		if e.Type == kind {
			n++
		}
	}
	return n
}

func TestAcceptance_V06_FailFastEndsTheRestAndContinueOnlyDescendants(t *testing.T) {
	tasks := []planned{
		{token: "bad", level: 1}, {token: "long", level: 1}, {token: "next", deps: []string{"bad"}, level: 2},
		{token: "far", deps: []string{"next"}, level: 3}, {token: "other", deps: []string{"long"}, level: 2},
	}
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, succeeds(map[string]deed{"bad": {outcome: hub.OutcomeFailed, after: "long"}, "long": hangs}))
		p := started(t, h, policyOf(plain), tasks)
		defer p.down()
		w, rows := p.final()
		if w.Status != hub.WaveFailed || reasonOf(w) != hub.EndTaskFailed || rows["long"].Dispatch.State != hub.Stopped {
			t.Errorf("it is %s (%s), and the worker of long %s", w.Status, reasonOf(w), rows["long"].Dispatch.State)
		}
		wants(t, rows, map[string]string{"bad": "failed", "long": "cancelled task_failed", "next": "cancelled blocked", "far": "cancelled blocked", "other": "cancelled task_failed"})
	})
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, succeeds(map[string]deed{"bad": fails}))
		p := started(t, h, policyOf(func(p *hub.WavePolicy) { p.OnFailure = hub.FailContinue }), tasks)
		defer p.down()
		w, rows := p.final()
		if w.Status != hub.WaveFailed {
			t.Errorf("it is %s", w.Status)
		}
		wants(t, rows, map[string]string{"bad": "failed", "long": "completed", "other": "completed", "next": "cancelled blocked", "far": "cancelled blocked"})
	})
}

// TestAcceptance_V07 has another worker report and be present for a Dispatch that
// is not its own: the dead worker is called lost all the same.
func TestAcceptance_V07_ForeignReportsAndPresenceChangeNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, succeeds(map[string]deed{"dead": hangs, "busy": hangs}))
		p := started(t, h, policyOf(func(p *hub.WavePolicy) { p.OnFailure = hub.FailContinue }), []planned{{token: "dead", level: 1}, {token: "busy", level: 1}})
		defer p.down()
		p.until("both are at work", func(_ hub.Wave, rows map[string]hub.WaveRow) bool {
			return atWork(rows["dead"]) && atWork(rows["busy"])
		})
		_, rows := p.now()
		dead, foreign := rows["dead"].Dispatch, principalOf(p.worker("w-busy"))
		p.deaf("w-dead")
		err := p.send(t.Context(), foreign, dispatch.SendInput{
			Type: hub.TypeWorkerDone, Subject: "s", Body: "b", Report: hub.Report{Task: dead.Task, Dispatch: dead.ID, Outcome: hub.OutcomeSucceeded},
		})
		if err == nil {
			t.Error("the report of a foreign worker was taken")
		}
		p.every(30*time.Second, func(ctx context.Context) error {
			_, _, err := p.work.Present(ctx, foreign, work.WorkerPresence{Dispatches: []hub.DispatchID{dead.ID, rows["busy"].Dispatch.ID}})
			return err
		})
		p.until("the dead worker is found out", func(_ hub.Wave, rows map[string]hub.WaveRow) bool { return rows["dead"].EndedAs != "" })
		_, rows = p.now()
		wants(t, rows, map[string]string{"dead": "failed liveness", "busy": ""})
		if !atWork(rows["busy"]) {
			t.Errorf("the worker that lives is %s", rows["busy"].Dispatch.State)
		}
	})
}

// deaf has a worker say nothing any more: its loop has been taken by nobody.
func (p *process) deaf(name string) {
	p.t.Helper()
	p.muted.Store(name, true)
	p.update(func(tx store.Tx) error {
		w, err := tx.WorkerByName(name)
		if err != nil {
			return err
		}
		tx.Signal(hub.Signal{Topic: hub.TopicMailbox, Key: string(w.ID.Box())})
		return nil
	})
}

// every runs something now and then until the hub stops.
func (p *process) every(d time.Duration, fn func(context.Context) error) {
	p.jobs.Go(func(ctx context.Context) {
		tick := time.NewTicker(d)
		defer tick.Stop()
		for {
			if err := fn(ctx); err != nil && ctx.Err() == nil {
				p.t.Error(err)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
}

func TestAcceptance_V08_AReportThatIsNotOfTheDispatchIsHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, func(_ string, attempt int) deed {
			if attempt == 1 {
				return fails
			}
			return hangs
		})
		p := started(t, h, policyOf(func(p *hub.WavePolicy) { p.Retry = 1 }), []planned{{token: "a", level: 1}, {token: "b", deps: []string{"a"}, level: 2}})
		defer p.down()
		p.until("the second attempt is at work", func(_ hub.Wave, rows map[string]hub.WaveRow) bool {
			return rows["a"].Attempts == 2 && atWork(rows["a"])
		})
		_, rows := p.now()
		before, d := p.events(), rows["a"].Dispatch
		in := dispatch.SendInput{
			Type: hub.TypeWorkerDone, Subject: "s", Body: "late", Report: hub.Report{Task: d.Task, Dispatch: d.RetryOf, Outcome: hub.OutcomeSucceeded},
		}
		sent, err := p.disp.Send(t.Context(), p.request(principalOf(p.worker("w-a")), "", "send", in), in)
		if err == nil && sent.Verdict != hub.VerdictStale {
			t.Errorf("the report of the first attempt is %+v", sent)
		}
		in.Report.Task, in.Report.Dispatch = rows["b"].Task, hub.NewDispatchID()
		if err := p.send(t.Context(), principalOf(p.worker("w-b")), in); err == nil {
			t.Error("a result before any dispatch was taken")
		}
		synctest.Wait()
		_, rows = p.now()
		if !atWork(rows["a"]) || rows["b"].State != hub.TaskPending || len(p.events()) != len(before) {
			t.Errorf("it changed something: %s", told(rows))
		}
	})
}

func TestAcceptance_V09_AnOfflineWorkerGetsItsStartOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, succeeds(nil))
		h.absent["w-a"] = true
		p := started(t, h, policyOf(plain), []planned{{token: "a", level: 1}})
		p.until("it is dispatched", func(_ hub.Wave, rows map[string]hub.WaveRow) bool { return rows["a"].Noted != "" })
		passes(10 * time.Minute) // of the bubble's time: nobody is lost before it began
		p.down()
		p = h.up() // and a restart sends nothing again
		defer p.down()
		passes(time.Minute)
		w, rows := p.now()
		if w.Status != hub.WaveRunning || rows["a"].Dispatch.State != hub.Starting || rows["a"].Attempts != 1 || p.starts("w-a") != 1 {
			t.Fatalf("after a restart it is %s with %d session_starts\n%s", w.Status, p.starts("w-a"), told(rows))
		}
		p.listen(p.worker("w-a"))
		if w, rows = p.final(); w.Status != hub.WaveCompleted || rows["a"].Attempts != 1 || p.starts("w-a") != 1 {
			t.Errorf("it is %s after %d session_starts", w.Status, p.starts("w-a"))
		}
	})
}

// starts is how many session_starts the mailbox of a worker has.
func (p *process) starts(name string) (n int) {
	box := p.worker(name).ID.Box()
	p.view(func(rx store.Rx) error {
		ms, _, err := rx.History(box, store.HistoryFilter{Limit: 1000, Types: []hub.MessageType{hub.TypeSessionStart}})
		n = len(ms)
		return err
	})
	return n
}

// TestAcceptance_V12 steps the wall clock by a day and by ten minutes, both ways,
// also while the hub is down: a worker that lives does not fail, a dead one does.
func TestAcceptance_V12_ClockSteps(t *testing.T) {
	for _, step := range []time.Duration{24 * time.Hour, -24 * time.Hour, 10 * time.Minute, -10 * time.Minute} {
		t.Run(step.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { stepped(t, step) })
		})
	}
}

func stepped(t *testing.T, step time.Duration) {
	h := newHost(t, succeeds(map[string]deed{"alive": hangs, "dead": hangs}))
	began, ahead := time.Now(), atomic.Int64{}
	h.clock = func() wave.Instant {
		up := time.Since(began)
		return wave.Instant{Mono: up, Wall: hub.MicrosOf(began.Add(up + time.Duration(ahead.Load()))), Boot: "b1", SinceBoot: time.Hour + up}
	}
	p := started(t, h, policyOf(func(p *hub.WavePolicy) { p.OnFailure = hub.FailContinue }), []planned{{token: "alive", level: 1, timeout: 1800}, {token: "dead", level: 1}})
	p.until("both are at work", func(_ hub.Wave, rows map[string]hub.WaveRow) bool {
		return atWork(rows["alive"]) && atWork(rows["dead"])
	})
	p.present("alive")
	ahead.Add(int64(step))
	passes(time.Minute)
	p.down()
	ahead.Add(int64(step))
	p = h.up()
	defer p.down()
	p.present("alive")
	p.deaf("w-dead")
	p.until("the dead one is found out", func(_ hub.Wave, rows map[string]hub.WaveRow) bool { return rows["dead"].EndedAs != "" })
	w, rows := p.now()
	wants(t, rows, map[string]string{"dead": "failed liveness", "alive": ""})
	if !atWork(rows["alive"]) || time.Duration(w.ElapsedMS)*time.Millisecond > time.Since(began) {
		t.Errorf("%v after the start %d ms have elapsed, and the worker that lives is %s", time.Since(began), w.ElapsedMS, rows["alive"].Dispatch.State)
	}
	p.until("its own time is over", func(_ hub.Wave, rows map[string]hub.WaveRow) bool { return rows["alive"].EndedAs != "" })
	_, rows = p.now()
	wants(t, rows, map[string]string{"alive": "failed timeout"})
	if after := time.Since(began); after < 30*time.Minute || after > 31*time.Minute {
		t.Errorf("a time of 30 minutes was over after %v", after)
	}
}

// present has the worker of a task say every 30 s that it lives.
func (p *process) present(token string) {
	_, rows := p.now()
	id, by := rows[token].Dispatch.ID, principalOf(p.worker("w-"+token))
	p.every(30*time.Second, func(ctx context.Context) error {
		_, _, err := p.work.Present(ctx, by, work.WorkerPresence{Dispatches: []hub.DispatchID{id}})
		return err
	})
}

func TestAcceptance_V15_RetryKeepsWhatIsCompletedAndEndsAtItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, succeeds(map[string]deed{"bad": fails}))
		p := started(t, h, policyOf(plain), []planned{
			{token: "good", level: 1}, {token: "bad", deps: []string{"good"}, level: 2}, {token: "next", deps: []string{"bad"}, level: 3},
		})
		defer p.down()
		for i := 1; i <= 3; i++ {
			w, rows := p.final()
			if w.Iteration != i || rows["good"].Attempts != 1 || rows["bad"].Attempts != i || rows["next"].Attempts != 0 {
				t.Errorf("iteration %d: %+v\n%s", i, w, told(rows))
			}
			wants(t, rows, map[string]string{"good": "completed", "bad": "failed", "next": "cancelled blocked"})
			if err := p.retry(wave.RetryInput{}); i < 3 && err != nil || i == 3 && !hub.IsCode(err, hub.CodeMaxIterationsReached) {
				t.Errorf("retry %d: %v", i, err)
			}
		}
		if err := p.retry(wave.RetryInput{}); !hub.IsCode(err, hub.CodeMaxIterationsReached) {
			t.Errorf("the next retry: %v", err)
		}
		w, _ := p.now()
		if !w.Exhausted || w.Status != hub.WaveFailed || len(p.notices("wave_state")) != 4 {
			t.Errorf("marked: %v, it is %s, and %d notices came", w.Exhausted, w.Status, len(p.notices("wave_state")))
		}
		if err := p.retry(wave.RetryInput{MaxIterations: 4}); !hub.IsCode(err, hub.CodeInvalidArgument) {
			t.Errorf("raised without a reason: %v", err)
		}
		h.script = succeeds(nil)
		if err := p.retry(wave.RetryInput{MaxIterations: 4, Reason: "fixed"}); err != nil {
			t.Fatal(err)
		}
		w, rows := p.final()
		if w.Status != hub.WaveCompleted || w.Exhausted || w.RaiseReason != "fixed" || rows["good"].Attempts != 1 || rows["bad"].Attempts != 4 {
			t.Errorf("at last it is %+v\n%s", w, told(rows))
		}
	})
}

// notices are those of a kind.
func (p *process) notices(kind string) (out []hub.Message) {
	for _, m := range p.inbox() {
		if m.Type == hub.TypeNotice && kindOf(p.t, m) == kind {
			out = append(out, m)
		}
	}
	return out
}

// A wave that was cancelled before it was spawned runs as a whole when it is retried.
func TestRetryOfAWaveThatWasNeverSpawned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, succeeds(nil))
		p := h.open()
		p.install("w-a", "w-b")
		p.create(policyOf(plain), []planned{{token: "a", level: 1}, {token: "b", deps: []string{"a"}, level: 2}})
		p.down()
		p = h.up()
		defer p.down()
		if err := p.cancel(""); err != nil {
			t.Fatal(err)
		}
		w, rows := p.final()
		if w.Status != hub.WaveCancelled || w.Iteration != 0 || rows["a"].EndedAs != hub.WaveCancelled {
			t.Errorf("it is %+v\n%s", w, told(rows))
		}
		if err := p.retry(wave.RetryInput{}); err != nil {
			t.Fatal(err)
		}
		if w, rows = p.final(); w.Status != hub.WaveCompleted || w.Iteration != 1 || rows["b"].Attempts != 1 {
			t.Errorf("retried it is %+v\n%s", w, told(rows))
		}
	})
}

// TestAcceptance_V22: the stopped worker itself confirms the stop.
func TestAcceptance_V22_APersonsStopTripsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, func(token string, attempt int) deed {
			if token == "a" && attempt == 1 {
				return hangs
			}
			return deed{outcome: hub.OutcomeSucceeded}
		})
		p := started(t, h, policyOf(plain), []planned{{token: "a", level: 1}, {token: "b", deps: []string{"a"}, level: 2}})
		defer p.down()
		p.until("a is at work", func(_ hub.Wave, rows map[string]hub.WaveRow) bool { return atWork(rows["a"]) })
		_, rows := p.now()
		stop := work.StopInput{Dispatch: rows["a"].Dispatch.ID}
		if out, err := p.work.Stop(t.Context(), p.request(operator, "", "stopWorker", stop), stop); err != nil || out.State != hub.Stopped {
			t.Fatalf("the stop is %+v, %v", out, err)
		}
		passes(10 * time.Minute)
		w, rows := p.now()
		if w.Status != hub.WaveRunning || w.Ending != nil || rows["a"].EndedAs != "" || rows["b"].EndedAs != "" || rows["a"].Attempts != 1 {
			t.Fatalf("after a person's stop it is %+v\n%s", w, told(rows))
		}
		again := work.DispatchInput{Task: rows["a"].Task, To: "worker:w-b", RetryOf: stop.Dispatch, NoWait: true, Wave: &hub.WaveRef{Wave: theWave, Token: "a"}}
		if _, err := p.work.Dispatch(t.Context(), p.request(operator, "", "createDispatch", again), again); err != nil {
			t.Fatal(err)
		}
		if w, rows = p.final(); w.Status != hub.WaveCompleted || rows["a"].Attempts != 2 || rows["b"].Attempts != 1 {
			t.Errorf("replaced it is %s\n%s", w.Status, told(rows))
		}
		if n := count(p.events(), hub.EventTaskDispatched); n != 3 {
			t.Errorf("the log has %d dispatches", n)
		}
	})
}

// A worker's own cancellation cancels its task and what depends on it.
func TestAWorkersCancellationCascades(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, succeeds(map[string]deed{"a": {outcome: hub.OutcomeCancelled}}))
		p := started(t, h, policyOf(plain), []planned{{token: "a", level: 1}, {token: "b", deps: []string{"a"}, level: 2}, {token: "c", level: 1}})
		defer p.down()
		w, rows := p.final()
		if w.Status != hub.WaveCancelled {
			t.Errorf("it is %s", w.Status)
		}
		wants(t, rows, map[string]string{"a": "cancelled cancelled_by_worker", "b": "cancelled blocked", "c": "completed"})
	})
}

func TestAcceptance_V23_DependentsWaitForARequiredVerification(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, func(token string, attempt int) deed {
			if token == "a" && attempt == 1 {
				return deed{outcome: hub.OutcomeSucceeded} // without a word on its check
			}
			return deed{outcome: hub.OutcomeSucceeded, claim: hub.VerifyPassed}
		})
		p := started(t, h, policyOf(func(p *hub.WavePolicy) { p.Retry = 1 }), []planned{{token: "a", level: 1, verify: true}, {token: "b", deps: []string{"a"}, level: 2}})
		defer p.down()
		w, rows := p.final()
		if w.Status != hub.WaveCompleted || rows["a"].Attempts != 2 || rows["b"].Attempts != 1 {
			t.Errorf("it is %s\n%s", w.Status, told(rows))
		}
		if rows["b"].StartedAt < rows["a"].CompletedAt {
			t.Error("the dependent was dispatched before the check had passed")
		}
	})
}

func TestAcceptance_V25_BarrierWithContinueEndsALevelAndNotTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, succeeds(map[string]deed{"bad": fails, "slow": {outcome: hub.OutcomeSucceeded, after: "go"}}))
		p := started(t, h, policyOf(func(p *hub.WavePolicy) { p.OnFailure, p.Order = hub.FailContinue, hub.OrderBarrier }), []planned{
			{token: "bad", level: 1}, {token: "slow", level: 1}, {token: "free", deps: []string{"slow"}, level: 2}, {token: "end", deps: []string{"free"}, level: 3},
		})
		defer p.down()
		p.until("the failure is written down", func(_ hub.Wave, rows map[string]hub.WaveRow) bool { return rows["bad"].EndedAs == hub.WaveFailed })
		passes(time.Minute)
		if _, rows := p.now(); !atWork(rows["slow"]) || rows["free"].EndedAs != "" {
			t.Errorf("the level does not run to its end: %s", told(rows))
		}
		h.witness.saw("elsewhere", effect{token: "go"})
		w, rows := p.final()
		wants(t, rows, map[string]string{"bad": "failed", "slow": "completed", "free": "cancelled blocked", "end": "cancelled blocked"})
		if w.Status != hub.WaveFailed || rows["free"].Attempts != 0 {
			t.Errorf("it is %s, with %d attempts of the next level", w.Status, rows["free"].Attempts)
		}
		var n struct{ Blocked []string }
		if ms := p.notices("wave_state"); len(ms) != 1 || json.Unmarshal(ms[0].Payload, &n) != nil || strings.Join(n.Blocked, " ") != "free end" {
			t.Errorf("told as blocked: %q", n.Blocked)
		}
	})
}

func TestAcceptance_V26_UsagePastTheBudgetEndsTheWave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, succeeds(map[string]deed{"a": hangs, "b": hangs}))
		p := started(t, h, policyOf(func(p *hub.WavePolicy) { p.Budget.Tokens = 1000 }), []planned{{token: "a", level: 1}, {token: "b", level: 1}, {token: "c", deps: []string{"b"}, level: 2}})
		defer p.down()
		p.until("both are at work", func(_ hub.Wave, rows map[string]hub.WaveRow) bool { return atWork(rows["a"]) && atWork(rows["b"]) })
		spend := func(token string, tokens int) {
			_, rows := p.now()
			usage := fmt.Appendf(nil, `{"input_tokens":%d,"output_tokens":1,"cached_input_tokens":0}`, tokens-1)
			in := work.WorkerPresence{Dispatches: []hub.DispatchID{rows[token].Dispatch.ID}, Usage: usage}
			if _, _, err := p.work.Present(t.Context(), principalOf(p.worker("w-"+token)), in); err != nil {
				t.Fatal(err)
			}
		}
		spend("a", 600)
		spend("b", 400)
		passes(time.Minute)
		if w, _ := p.now(); w.Ending != nil {
			t.Fatalf("at its budget it is ended: %+v", w.Ending)
		}
		at := time.Now()
		spend("b", 401)
		w, rows := p.final()
		if after := time.Since(at); reasonOf(w) != hub.EndBudget || w.Status != hub.WaveFailed || after > 5*time.Second {
			t.Errorf("past its budget it is %s (%s) after %v", w.Status, reasonOf(w), after)
		}
		wants(t, rows, map[string]string{"a": "cancelled budget_exceeded", "b": "cancelled budget_exceeded", "c": "cancelled budget_exceeded"})
		if n := len(p.notices("budget_exceeded")); n != 1 {
			t.Errorf("%d notices tell of the budget", n)
		}
		if err := p.retry(wave.RetryInput{}); !hub.IsCode(err, hub.CodeBudgetExceeded) {
			t.Errorf("retried without more: %v", err)
		}
		h.script = succeeds(nil)
		if err := p.retry(wave.RetryInput{Budget: &hub.BudgetChange{Tokens: new(int64(5000))}}); err != nil {
			t.Fatal(err)
		}
		if w, _ = p.final(); w.Status != hub.WaveCompleted {
			t.Errorf("with more it is %s", w.Status)
		}
	})
}

func TestAcceptance_V27_TwoHundredTasksAreOneMail(t *testing.T) {
	var tasks []planned
	for i := range 200 {
		x := planned{token: fmt.Sprintf("t%d", i), level: 1}
		if i >= 100 {
			x.deps, x.level = []string{fmt.Sprintf("t%d", i-100)}, 2
		}
		tasks = append(tasks, x)
	}
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, func(token string, attempt int) deed {
			if attempt == 1 && strings.HasSuffix(token, "7") {
				return fails
			}
			return deed{outcome: hub.OutcomeSucceeded}
		})
		p := started(t, h, policyOf(func(p *hub.WavePolicy) { p.Retry = 1 }), tasks)
		defer p.down()
		if w, _ := p.final(); w.Status != hub.WaveCompleted {
			t.Errorf("it is %s", w.Status)
		}
		synctest.Wait()
		if ms := p.inbox(); len(ms) != 1 || kindOf(t, ms[0]) != "wave_state" {
			t.Errorf("%d messages came: %+v", len(ms), ms)
		}
		if es := p.events(); count(es, hub.EventTaskDispatched) != 220 || count(es, hub.EventTaskCompleted) != 200 || count(es, hub.EventTaskFailed) != 0 {
			t.Errorf("the log has %d dispatches, %d completions", count(es, hub.EventTaskDispatched), count(es, hub.EventTaskCompleted))
		}
	})
}

// A Task that is set by somebody has the same effects, and one that has ended stays.
func TestATaskThatIsSetByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, succeeds(map[string]deed{"bad": fails, "slow": hangs}))
		h.absent["w-open"] = true
		p := started(t, h, policyOf(func(p *hub.WavePolicy) { p.OnFailure = hub.FailContinue }), []planned{
			{token: "bad", level: 1}, {token: "slow", level: 1}, {token: "next", deps: []string{"bad"}, level: 2}, {token: "hand", deps: []string{"slow"}, level: 2},
			{token: "then", deps: []string{"hand"}, level: 3},
		})
		defer p.down()
		p.until("bad has failed", func(_ hub.Wave, rows map[string]hub.WaveRow) bool {
			return rows["bad"].EndedAs != "" && rows["next"].EndedAs != ""
		})
		_, rows := p.now()
		set := func(token string, to hub.TaskState) {
			p.update(func(tx store.Tx) error {
				_, err := run.Update(tx, run.UpdateInput{Task: rows[token].Task, Change: hub.TaskChange{State: to}})
				return err
			})
		}
		set("bad", hub.TaskCompleted)
		set("hand", hub.TaskCompleted)
		p.until("then has run", func(_ hub.Wave, rows map[string]hub.WaveRow) bool { return rows["then"].EndedAs != "" })
		if err := p.cancel(""); err != nil {
			t.Fatal(err)
		}
		w, rows := p.final()
		wants(t, rows, map[string]string{"bad": "failed", "next": "cancelled blocked", "hand": "completed", "then": "completed", "slow": "cancelled cancelled"})
		if w.Status != hub.WaveCancelled || count(p.events(), hub.EventTaskCompleted) != 2 {
			t.Errorf("it is %s with %d completions", w.Status, count(p.events(), hub.EventTaskCompleted))
		}
		h.script = succeeds(nil)
		if err := p.retry(wave.RetryInput{}); err != nil {
			t.Fatal(err)
		}
		w, rows = p.final()
		if w.Status != hub.WaveCompleted || rows["bad"].Attempts != 1 || rows["next"].Attempts != 1 || rows["slow"].Attempts != 2 {
			t.Errorf("retried it is %s\n%s", w.Status, told(rows))
		}
	})
}

// A start that comes behind the end of its wave is refused by its transaction.
func TestAStartBehindTheEndOfItsWaveIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, succeeds(map[string]deed{"a": hangs}))
		p := started(t, h, policyOf(plain), []planned{{token: "a", level: 1}})
		defer p.down()
		p.until("a is at work", func(_ hub.Wave, rows map[string]hub.WaveRow) bool { return atWork(rows["a"]) })
		if err := p.cancel(""); err != nil {
			t.Fatal(err)
		}
		_, rows := p.final()
		refusal := errors.New("not any more")
		in := work.DispatchInput{Task: rows["a"].Task, To: "worker:w-a", RetryOf: rows["a"].Dispatch.ID, NoWait: true, Admit: func(store.Tx) error { return refusal }}
		if _, err := p.work.Dispatch(t.Context(), p.request(hub.Principal{Kind: hub.Engine}, "", "wave.start", in), in); !errors.Is(err, refusal) {
			t.Errorf("not admitted: %v", err)
		}
		if _, rows = p.now(); rows["a"].Attempts != 1 {
			t.Errorf("it has %d attempts", rows["a"].Attempts)
		}
	})
}
