package hub

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

var eventKinds = []EventKind{EvStarted, EvStartFailed, EvStartLost, EvReport, EvExit, EvStop, EvStopProved, EvStopLost, EvAbandon}

func drawEvent(t *rapid.T) Event {
	code := rapid.IntRange(0, 3).Draw(t, "code")
	return Event{
		Kind:     rapid.SampledFrom(eventKinds).Draw(t, "kind"),
		Outcome:  rapid.SampledFrom([]Outcome{OutcomeSucceeded, OutcomeFailed, OutcomeCancelled}).Draw(t, "outcome"),
		Evidence: EvidenceReport,
		Sum:      rapid.SampledFrom([]string{"a", "b"}).Draw(t, "sum"),
		ExitCode: &code,
		At:       1,
	}
}

// TestFinalIsFinal: whatever happens, in whatever order, at most one settlement
// takes place and nothing changes afterwards.
func TestFinalIsFinal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := Dispatch{State: Starting}
		accepted := 0
		for range rapid.IntRange(1, 12).Draw(t, "n") {
			e := drawEvent(t)
			nd, changed, v := Apply(d, e)
			if d.State.Final() && (changed || !reflect.DeepEqual(nd, d)) {
				t.Fatalf("%s left by %s", d.State, e.Kind)
			}
			if changed == reflect.DeepEqual(nd, d) {
				t.Fatalf("changed=%v but %+v → %+v", changed, d, nd)
			}
			if v == VerdictAccepted {
				accepted++
			}
			if (v != VerdictNone) != (e.Kind == EvReport) {
				t.Fatalf("verdict %q on %s", v, e.Kind)
			}
			d = nd
		}
		if accepted > 1 {
			t.Fatalf("%d reports were accepted", accepted)
		}
	})
}

// TestFencesHold: once a Dispatch is fenced no report but its worker's own
// cancellation changes it, and none completes or fails the Task.
func TestFencesHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := Dispatch{State: rapid.SampledFrom([]DispatchState{Starting, Ready, StartUnknown}).Draw(t, "from")}
		d, _, _ = Apply(d, Event{Kind: rapid.SampledFrom([]EventKind{EvStop, EvAbandon}).Draw(t, "fence")})
		for range rapid.IntRange(1, 8).Draw(t, "n") {
			d, _, _ = Apply(d, drawEvent(t))
			if !d.State.Fenced() {
				t.Fatalf("a fenced Dispatch became %s", d.State)
			}
			if s := TaskStateFor(d.State); s != TaskBlocked {
				t.Fatalf("the Task of a fenced Dispatch became %s", s)
			}
		}
	})
}

func TestTableOfTheContract(t *testing.T) {
	done := func(o Outcome) Event { return Event{Kind: EvReport, Outcome: o, Evidence: EvidenceReport, Sum: "s"} }
	for _, c := range []struct {
		from    DispatchState
		event   Event
		to      DispatchState
		verdict Verdict
	}{
		{Starting, Event{Kind: EvStarted}, Ready, VerdictNone},
		{Starting, Event{Kind: EvStartLost}, StartUnknown, VerdictNone},
		{Starting, done(OutcomeSucceeded), Succeeded, VerdictAccepted},
		{StartUnknown, Event{Kind: EvStarted}, Ready, VerdictNone},
		{StartUnknown, done(OutcomeFailed), Failed, VerdictAccepted},
		{StartUnknown, Event{Kind: EvStopProved}, Stopped, VerdictNone},
		{Ready, Event{Kind: EvExit}, Failed, VerdictNone},
		{Ready, Event{Kind: EvStarted}, Ready, VerdictNone},
		{Ready, done(OutcomeCancelled), Stopped, VerdictAccepted},
		{Stopping, done(OutcomeSucceeded), Stopping, VerdictStale},
		{Stopping, done(OutcomeCancelled), Stopped, VerdictAccepted},
		{Stopping, Event{Kind: EvExit}, Stopped, VerdictNone},
		{Stopping, Event{Kind: EvStopLost}, StopUnknown, VerdictNone},
		{StopUnknown, Event{Kind: EvStopProved}, Stopped, VerdictNone},
		{StopUnknown, Event{Kind: EvAbandon}, Abandoned, VerdictNone},
		{Failed, done(OutcomeSucceeded), Failed, VerdictStale},
		{Abandoned, Event{Kind: EvExit}, Abandoned, VerdictNone},
	} {
		d, _, v := Apply(Dispatch{State: c.from}, c.event)
		if d.State != c.to || v != c.verdict {
			t.Errorf("%s + %s %s = %s %q, want %s %q", c.from, c.event.Kind, c.event.Outcome, d.State, v, c.to, c.verdict)
		}
	}
}

func TestRepeatedReport(t *testing.T) {
	d, _, _ := Apply(Dispatch{State: Ready}, Event{Kind: EvReport, Outcome: OutcomeSucceeded, Sum: "s"})
	if _, changed, v := Apply(d, Event{Kind: EvReport, Outcome: OutcomeSucceeded, Sum: "s"}); changed || v != VerdictDuplicate {
		t.Errorf("the same report again: changed=%v %q", changed, v)
	}
	if _, changed, v := Apply(d, Event{Kind: EvReport, Outcome: OutcomeFailed, Sum: "t"}); changed || v != VerdictStale {
		t.Errorf("another outcome: changed=%v %q", changed, v)
	}
}

func TestEveryStateHasATaskState(t *testing.T) {
	for _, s := range DispatchStates {
		if !slices.Contains(TaskStates, TaskStateFor(s)) {
			t.Errorf("%s maps to %q", s, TaskStateFor(s))
		}
	}
}
