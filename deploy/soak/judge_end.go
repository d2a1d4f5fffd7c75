//go:build unix

package main

import (
	"maps"
	"slices"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/openapi/api"
)

// promised is how many worker_done the contract promises of a Dispatch that has
// ended, at least and at most: one for an end by report or exit; none for one
// that the answer of a call told; that or one where the answer was unknown for a
// while, for a restarted hub tells an end that it finds itself.
func (j *judgement) promised(d api.Dispatch) (least, most int) {
	switch orNone(d.Evidence) {
	case "report", "exit":
		return 1, 1
	case "stop":
		if l := j.lives[d.DispatchId]; l == nil || l.order == toldLater {
			return 0, 1
		}
	case "start":
		for _, s := range j.starts {
			if s.dispatch == d.DispatchId && s.cut {
				return 0, 1
			}
		}
	}
	return 0, 0
}

// judgeEnds holds that each Dispatch has ended, that its Task agrees, and that
// its end came as often as is promised.
func (j *judgement) judgeEnds() {
	var ended, promised, came, maybe, missing, doubled int
	for _, id := range slices.Sorted(maps.Keys(j.dispatches)) {
		d, mails := j.dispatches[id], len(j.dones[id])
		if !final(d.State) {
			j.wrongf("%s is %s in the end", id, d.State)
			continue
		}
		ended++
		j.judgeTask(d)
		j.sameEnd(d)
		least, most := j.promised(d)
		promised += least
		came += min(mails, least)
		maybe += min(mails, most) - min(mails, least)
		missing += max(0, least-mails)
		doubled += max(0, mails-most)
		if mails < least || mails > most {
			j.wrongf("worker_done: %d came of %s, which is %s by %q (%s); %d to %d are promised",
				mails, id, d.State, orNone(d.Evidence), orNone(d.Reason), least, most)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(j.dones)) {
		if _, ok := j.dispatches[id]; !ok {
			j.wrongf("worker_done: %d came of %q, which the hub does not know", len(j.dones[id]), id)
		}
	}
	j.row("Dispatches / ended", len(j.dispatches), ended)
	j.row("worker_done promised / came / missing / doubled", promised, came, missing, doubled)
	j.row("worker_done of ends that an unknown answer may have told", maybe)
}

func final(s api.DispatchState) bool {
	return slices.Contains([]api.DispatchState{
		client.DispatchStateSucceeded, client.DispatchStateFailed, client.DispatchStateStopped, client.DispatchStateAbandoned,
	}, s)
}

// sameEnd holds that worker_done mails say what the hub says.
func (j *judgement) sameEnd(d api.Dispatch) {
	for _, n := range j.dones[d.DispatchId] {
		if n.done.outcome != orNone(d.Outcome) || n.done.evidence != orNone(d.Evidence) {
			j.wrongf("%s says that %s has %s by %s; the hub says %s by %s", n.id, d.DispatchId,
				n.done.outcome, n.done.evidence, orNone(d.Outcome), orNone(d.Evidence))
		}
	}
}

// judgeTask holds that a Task has the state of its latest Dispatch.
func (j *judgement) judgeTask(d api.Dispatch) {
	want := map[api.DispatchState]api.TaskState{
		client.DispatchStateSucceeded: api.TaskStateCompleted, client.DispatchStateFailed: api.TaskStateFailed,
		client.DispatchStateStopped: api.TaskStateBlocked, client.DispatchStateAbandoned: api.TaskStateBlocked,
	}[d.State]
	t, ok := j.tasks[d.TaskId]
	if !ok || orNone(t.LatestDispatchId) == d.DispatchId && t.State != want {
		j.wrongf("%s is %q while its latest, %s, is %s", d.TaskId, t.State, d.DispatchId, d.State)
	}
}

// judgeReports holds that each report had a right verdict, and that one was
// accepted exactly of those Dispatches that ended by report.
func (j *judgement) judgeReports() {
	var lateOnes, staleOnes, repeats, duplicates int
	for _, id := range j.ids {
		taken := 0
		for _, r := range j.lives[id].reports {
			if !slices.Contains(r.want, r.verdict) {
				j.wrongf("the report of %s (%s) has the verdict %q, not %q", id, r.outcome, r.verdict, r.want)
			}
			switch r.kind {
			case late:
				lateOnes++
				staleOnes += one(r.verdict == stale)
			case repeated:
				repeats++
				duplicates += one(r.verdict == duplicate)
			case onTime:
			}
			taken += one(r.verdict == accepted)
		}
		if d := j.dispatches[id]; taken != one(orNone(d.Evidence) == "report") {
			j.wrongf("%d reports of %s were accepted, and it is %s by %q", taken, id, d.State, orNone(d.Evidence))
		}
	}
	j.row("late reports / stale", lateOnes, staleOnes)
	j.row("repeated reports / duplicate", repeats, duplicates)
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// judgeRest holds that no outcome stays unknown and no process stays behind.
func (j *judgement) judgeRest() {
	for _, key := range slices.Sorted(maps.Keys(j.open)) {
		j.wrongf("the outcome of %s (%s) is unknown", key, j.open[key])
	}
	for _, pid := range j.processes {
		j.wrongf("process %s outlived its end", pid)
	}
	if j.lateAcks != j.fencedAcks {
		j.wrongf("%d acks of former consumers, and %d were refused", j.lateAcks, j.fencedAcks)
	}
	j.row("acks of former consumers / refused", j.lateAcks, j.fencedAcks)
	j.row("calls that their caller left / unknown outcomes / resolved", j.cuts, j.unknowns, j.resolved)
	j.row("processes left behind", len(j.processes))
}
