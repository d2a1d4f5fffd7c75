//go:build unix

package terminal

import (
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
)

// sign is one sign of life as Attend told it.
type sign struct {
	at    hub.Micros
	again func()
}

// Invariant 20.
func TestAttendTellsOfOutputOnlyWhenAsked(t *testing.T) {
	m := newManager(t)
	inc := launched(t, m, typed(t, `stty -echo; echo ready; while read a; do echo "$a"; done; exit 3`))
	shows(t, m, inc.Terminal, "ready")
	signs, ended := make(chan sign, 100), make(chan hub.ProcessState, 1)
	go func() {
		st, err := m.Attend(within(t), inc, func(at hub.Micros, again func()) { signs <- sign{at, again} })
		if err != nil {
			t.Error(err)
		}
		ended <- st
	}()
	first := <-signs
	if first.at == 0 {
		t.Error("the output before is not told")
	}
	input(t, m, inc, "one\r") // nobody has asked
	shows(t, m, inc.Terminal, "one")
	first.again() // and asks too late: it is told at once
	second := <-signs
	if second.at < first.at {
		t.Errorf("told %d after %d", second.at, first.at)
	}
	second.again()
	input(t, m, inc, "two\r")
	third := <-signs
	input(t, m, inc, "three\r")
	shows(t, m, inc.Terminal, "three")
	input(t, m, inc, "\x04")
	wantExit(t, <-ended, 3, "")
	if len(signs) != 0 {
		t.Errorf("%d signs that nobody asked for", len(signs))
	}
	third.again() // too late, and no harm
}

func TestAttendOfWhatHasEnded(t *testing.T) {
	m := newManager(t)
	inc := launched(t, m, specOf(t, "exit", "7"))
	wantExit(t, waited(t, m, inc), 7, "")
	st, err := m.Attend(within(t), inc, func(hub.Micros, func()) { t.Error("a sign of life") })
	if err != nil {
		t.Fatal(err)
	}
	wantExit(t, st, 7, "")
}

func TestAttendProvesOnlyItsOwn(t *testing.T) {
	m := newManager(t)
	inc := launched(t, m, specOf(t, "block", ""))
	forged := inc
	forged.Nonce = "other"
	st, err := m.Attend(within(t), forged, func(hub.Micros, func()) { t.Error("a sign of life") })
	if err != nil || st.Liveness != hub.Unverifiable {
		t.Errorf("a forged incarnation is %s, %v", st.Liveness, err)
	}
}
