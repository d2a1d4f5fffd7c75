package wave

import (
	"fmt"
	"strconv"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// Kinds of notices about waves.
const (
	noticeState  = "wave_state"
	noticeBudget = "budget_exceeded"
	noticeIdle   = "worker_waiting"
)

// Bounds of a notice: of the entries of each list, and of the bytes of all of them
// together, which leave room for the rest of the message.
const (
	maxTold      = 50
	maxToldBytes = 128 << 10
)

// final is what is told of the end of a wave; more is how many of each list are left
// out.
type final struct {
	bytes     int // of the entries of all lists
	counts    map[hub.WaveStatus]int
	failed    []failedTask
	blocked   []string
	residuals []residual
	more      map[string]int
}

type failedTask struct {
	Token    string         `json:"task_id"`
	Task     hub.TaskID     `json:"hub_task_id"`
	Error    string         `json:"error"`
	Dispatch hub.DispatchID `json:"dispatch_id,omitempty"` // worker read shows its output
	Output   string         `json:"output,omitempty"`
}

type residual struct {
	Dispatch hub.DispatchID    `json:"dispatch_id"`
	Token    string            `json:"task_id"`
	State    hub.DispatchState `json:"state"`
	Server   string            `json:"server"`
}

// maxOutputTold bounds what a notice says of one failed task's words, and of the
// reason of its failure.
const maxOutputTold = 400

// noteFinal tells the Run once that a wave has ended, and how.
func noteFinal(tx store.Tx, w hub.Wave, rows []hub.WaveRow) error {
	f := final{counts: map[hub.WaveStatus]int{}, failed: []failedTask{}, blocked: []string{}, residuals: []residual{}, more: map[string]int{}}
	for _, r := range rows {
		f.add(standingOf(w, r, 0), r)
	}
	subject, reason := fmt.Sprintf("wave %s %s", w.ID, w.Status), ""
	if w.Ending != nil {
		reason = w.Ending.Reason
		subject += ": " + reason
	}
	body := fmt.Sprintf("%d of %d tasks completed. See wavehub wave status %s.", f.counts[hub.WaveCompleted], w.Total, w.ID)
	return dispatch.WaveNotice(tx, w.Run, noticeState, subject, body, map[string]any{
		"wave_id": w.ID, "status": w.Status, "reason": reason, "iteration": w.Iteration, "by_status": f.counts,
		"failed": f.failed, "blocked": f.blocked, "residuals": f.residuals, "more": f.more,
	})
}

// add counts a task and tells of it where it did not complete as planned.
func (f *final) add(st standing, r hub.WaveRow) {
	f.counts[st.status]++
	if st.status == hub.WaveFailed {
		t := failedTask{Token: r.Entry.Token, Task: r.Task, Error: clip(st.reason, maxOutputTold), Dispatch: latest(r)}
		if t.Dispatch != "" && r.Dispatch.State == hub.Failed {
			t.Output = clip(r.Result, maxOutputTold)
		}
		f.failed = told(f, "failed", f.failed, t)
	}
	if st.status == hub.WaveCancelled && st.reason == hub.EndBlocked {
		f.blocked = told(f, "blocked", f.blocked, r.Entry.Token)
	}
	if left, ok := residualOf(r); ok {
		f.residuals = told(f, "residuals", f.residuals, residual(left))
	}
}

// told is a list of a notice with one more entry, or with one more left out.
func told[T any](f *final, name string, list []T, one T) []T {
	raw, err := encode(one)
	if size := f.bytes + len(raw); err == nil && len(list) < maxTold && size <= maxToldBytes {
		f.bytes = size
		return append(list, one)
	}
	f.more[name]++
	return list
}

// residualOf is the Dispatch of a task that has ended whose worker is not proven
// gone.
func residualOf(r hub.WaveRow) (Residual, bool) {
	d := r.Dispatch
	if r.EndedAs == "" || d == nil || r.Noted != d.ID {
		return Residual{}, false
	}
	if d.State.Final() && d.State != hub.Abandoned {
		return Residual{}, false
	}
	return Residual{Dispatch: d.ID, Token: r.Entry.Token, State: d.State, Server: d.Server.Name}, true
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return hub.PlainText([]byte(s[:n])) + "…"
}

// noteBudget tells the Run that a wave has used more than it may.
func noteBudget(tx store.Tx, w hub.Wave, spent Usage) error {
	return dispatch.WaveNotice(tx, w.Run, noticeBudget, fmt.Sprintf("wave %s is over its budget", w.ID),
		fmt.Sprintf("It has used %.4f USD and %d tokens, and is ended. wavehub wave retry %s --budget … goes on with more.", spent.CostUSD, spent.Tokens, w.ID),
		map[string]any{"wave_id": w.ID, "cost_usd": spent.CostUSD, "tokens": spent.Tokens, "budget": w.Policy.Budget})
}

// noteIdle tells the Run of a worker that has said and written nothing for long.
func noteIdle(tx store.Tx, w hub.Wave, r hub.WaveRow, about warning) error {
	return dispatch.WaveNotice(tx, w.Run, noticeIdle, fmt.Sprintf("wave %s: the worker of %s is idle", w.ID, r.Entry.Token),
		"There was "+about.Detail+". Nothing is done about it: look with wavehub worker read "+string(about.Dispatch)+".",
		map[string]any{"wave_id": w.ID, "wave_task_id": r.Entry.Token, "task_id": r.Task, "dispatch_id": about.Dispatch, "waiting_for": "idle"})
}

// noteExhausted tells the Run that no iteration is left.
func noteExhausted(tx store.Tx, w hub.Wave) error {
	return dispatch.WaveNotice(tx, w.Run, noticeState, fmt.Sprintf("wave %s: no iteration is left", w.ID),
		fmt.Sprintf("It was to be run again beyond its %d iterations. Find out why its tasks fail; wavehub wave retry %s --max-iterations N --reason … allows more.", w.Policy.MaxIterations, w.ID),
		map[string]any{"wave_id": w.ID, "status": w.Status, "reason": "max_iterations_reached", "iteration": w.Iteration})
}

func number(n int) string { return strconv.Itoa(n) }
