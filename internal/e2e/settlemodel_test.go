//go:build unix

package e2e

import (
	"fmt"
	"hash/maphash"
	"testing"

	"github.com/anishathalye/porcupine"
)

// attemptIn is a call about one Dispatch. A stop is two operations of the same
// time, its fence and its end, for it takes effect twice.
type attemptIn struct {
	Dispatch string
	Op       string // report, fence, end, abandon, show or task
	Outcome  string // of a report
	Body     string // of a report
	Stop     int    // numbers the stops of the Dispatch
}

// attemptOut is its answer.
type attemptOut struct {
	Lost    bool // it never came
	Verdict string
	State   string // of the Dispatch, or of the Task; what a stale verdict names
	Already bool   // already_settled
}

// attempt is a Dispatch after a start that was answered: page "contract", 3.5.
type attempt struct {
	State string
	Sum   string // of the report that settled it
	Begun uint64 // the stops whose fence was set, by bit
	Late  uint64 // those that found a final state
}

// behind are the states that a proof may have led to without any call.
func (s attempt) behind() []attempt {
	var unproved []string
	switch s.State {
	case "stopping":
		unproved = []string{"stopping", "stop_unknown", "stopped"}
	case "stop_unknown":
		unproved = []string{"stop_unknown", "stopped"}
	default:
		return []attempt{s}
	}
	all := make([]attempt, len(unproved))
	for i, state := range unproved {
		all[i] = s
		all[i].State = state
	}
	return all
}

func (s attempt) final() bool {
	return s.State == "succeeded" || s.State == "failed" || s.State == "stopped" || s.State == "abandoned"
}

// step applies a call and says whether it can have had this answer.
func (s attempt) step(in attemptIn, out attemptOut) (bool, attempt) {
	ok := true
	switch in.Op {
	case "report":
		ok, s = s.report(in, out)
	case "fence":
		s = s.fence(uint64(1) << in.Stop)
	case "end":
		ok = s.ends(uint64(1)<<in.Stop, out)
		return ok || out.Lost, s
	case "abandon":
		already := s.final()
		if !already {
			s.State = "abandoned"
		}
		ok = out.State == s.State && out.Already == already
	case "show":
		ok = out.State == s.State
	case "task":
		ok = out.State == s.task()
	}
	return ok || out.Lost, s
}

// report settles a Dispatch that is not fenced; the worker's own word that it
// was cancelled also proves a stop.
func (s attempt) report(in attemptIn, out attemptOut) (bool, attempt) {
	sum := in.Outcome + ": " + in.Body
	switch {
	case s.State == "ready", in.Outcome == "cancelled" && !s.final():
		s.State, s.Sum = map[string]string{"cancelled": "stopped"}[in.Outcome], sum
		if s.State == "" {
			s.State = in.Outcome
		}
		return out.Verdict == "accepted", s
	case s.Sum == sum:
		return out.Verdict == "duplicate", s
	default:
		return out.Verdict == "stale" && out.State == s.State, s
	}
}

func (s attempt) fence(stop uint64) attempt {
	s.Begun |= stop
	switch {
	case s.final():
		s.Late |= stop
	case s.State == "ready":
		s.State = "stopping"
	}
	return s
}

// ends says whether a stop can have this answer. It has been settled already if
// it was so at the fence, or if something else than a stop came in between.
func (s attempt) ends(stop uint64, out attemptOut) bool {
	already := s.final() && (s.State != "stopped" || s.Late&stop != 0)
	return s.Begun&stop != 0 && s.State != "stopping" && out.State == s.State && out.Already == already
}

func (s attempt) task() string {
	switch s.State {
	case "ready":
		return "dispatched"
	case "succeeded":
		return "completed"
	case "failed":
		return "failed"
	}
	return "blocked"
}

// attemptModel decides each Dispatch for itself. What is not seen of a stop's
// proof makes it nondeterministic.
var attemptModel = (&porcupine.NondeterministicModel{
	Partition: byDispatch,
	Init:      func() []any { return []any{attempt{State: "ready"}} },
	Step: func(state, in, out any) (next []any) {
		for _, s := range state.(attempt).behind() {
			if ok, s := s.step(in.(attemptIn), out.(attemptOut)); ok {
				next = append(next, s)
			}
		}
		return next
	},
	Hash:              func(state any) uint64 { return maphash.Comparable(modelSeed, state.(attempt)) },
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v → %+v", in, out) },
	DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
}).ToModel()

func byDispatch(ops []porcupine.Operation) (parts [][]porcupine.Operation) {
	index := map[string]int{}
	for _, op := range ops {
		d := op.Input.(attemptIn).Dispatch
		at, ok := index[d]
		if !ok {
			at, parts = len(parts), append(parts, nil)
			index[d] = at
		}
		parts[at] = append(parts[at], op)
	}
	return parts
}

func reported(outcome, verdict, state string) step {
	return step{attemptIn{Op: "report", Outcome: outcome, Body: "b"}, attemptOut{Verdict: verdict, State: state}}
}

func abandonEnds(state string, already bool) step {
	return step{attemptIn{Op: "abandon"}, attemptOut{State: state, Already: already}}
}

func shown(state string) step { return step{attemptIn{Op: "show"}, attemptOut{State: state}} }

func taskShown(state string) step { return step{attemptIn{Op: "task"}, attemptOut{State: state}} }

func fenceSet(stop int) step { return step{attemptIn{Op: "fence", Stop: stop}, attemptOut{}} }

func stopEnds(stop int, state string, already bool) step {
	return step{attemptIn{Op: "end", Stop: stop}, attemptOut{State: state, Already: already}}
}

func TestTheAttemptModelExplainsRightHistories(t *testing.T) {
	dead := inTurn(reported("succeeded", "", ""), abandonEnds("succeeded", true))
	dead[0].Output, dead[0].Return = attemptOut{Lost: true}, forever
	late := inTurn(reported("succeeded", "", ""), abandonEnds("abandoned", false), taskShown("blocked"))
	late[0].Output, late[0].Return = attemptOut{Lost: true}, forever
	explains(t, attemptModel, true, map[string][]porcupine.Operation{
		"a report":                      inTurn(shown("ready"), taskShown("dispatched"), reported("succeeded", "accepted", ""), reported("succeeded", "duplicate", ""), reported("failed", "stale", "succeeded"), taskShown("completed")),
		"a stop":                        inTurn(fenceSet(0), shown("stopping"), shown("stop_unknown"), stopEnds(0, "stopped", false), taskShown("blocked"), fenceSet(1), stopEnds(1, "stopped", true)),
		"a stop that cannot be proved":  inTurn(fenceSet(0), stopEnds(0, "stop_unknown", false), reported("succeeded", "stale", "stop_unknown"), reported("cancelled", "accepted", ""), shown("stopped")),
		"abandoned while it stops":      inTurn(fenceSet(0), abandonEnds("abandoned", false), stopEnds(0, "abandoned", true)),
		"an unanswered report that was": dead,
		"one that was not":              late,
	})
}

func TestTheAttemptModelRejectsWrongHistories(t *testing.T) {
	both := inTurn(reported("succeeded", "accepted", ""), abandonEnds("abandoned", false))
	both[0].Return, both[1].Call = 9, 0 // at the same time
	explains(t, attemptModel, false, map[string][]porcupine.Operation{
		"two winners":                     both,
		"two accepted reports":            inTurn(reported("succeeded", "accepted", ""), reported("failed", "accepted", "")),
		"a report after the fence":        inTurn(fenceSet(0), reported("succeeded", "accepted", "")),
		"a report after an abandon":       inTurn(abandonEnds("abandoned", false), reported("succeeded", "accepted", "")),
		"an abandon that changes the end": inTurn(reported("failed", "accepted", ""), abandonEnds("abandoned", false)),
		"a stop that changes the end":     inTurn(reported("failed", "accepted", ""), fenceSet(0), stopEnds(0, "stopped", false)),
		"a duplicate of nothing":          inTurn(abandonEnds("abandoned", false), reported("succeeded", "duplicate", "")),
		"a loser called duplicate":        inTurn(reported("failed", "accepted", ""), reported("succeeded", "duplicate", "")),
		"a lost settlement":               inTurn(reported("succeeded", "accepted", ""), shown("ready")),
		"a Task that disagrees":           inTurn(reported("succeeded", "accepted", ""), taskShown("dispatched")),
		"a Task that is freed too early":  inTurn(fenceSet(0), taskShown("dispatched")),
		"a proof that is taken back":      inTurn(fenceSet(0), shown("stopped"), shown("stop_unknown")),
		"a stop that was no stop":         inTurn(stopEnds(0, "stopped", false)),
		"a winner called late":            inTurn(fenceSet(0), stopEnds(0, "stopped", true)),
	})
}
