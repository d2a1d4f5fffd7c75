package dispatch_test

import (
	"context"
	"testing"

	"github.com/wavehub/wavehub/internal/dispatch"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// Invariant 13: the end of a setup at an owner makes one notice at the home,
// however often and whatever the owner says of it, and settles nothing.
func TestTheEndOfASetupComesHomeOnce(t *testing.T) {
	p := newPair(t)
	r, _ := p.home.newRun()
	task := p.home.newTask(r)
	id := p.begin(task)
	code := 7
	end := hub.SetupReport{Effective: hub.SetupRun, StartupPolicy: hub.PolicyImmediate, State: hub.SetupRunning, Terminal: hub.NewTerminalID(), Launched: true}
	note := func() {
		t.Helper()
		err := p.owner.store.Update(context.Background(), store.Settle, func(tx store.Tx) error {
			return dispatch.NoteSetup(tx, p.homeAtOwner, id, end)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	note()
	if n := len(p.outbox()); n != 0 {
		t.Errorf("a setup that runs is told: %d items", n)
	}
	end.State, end.Ended, end.ExitCode = hub.SetupFailed, true, &code
	note()
	p.importHome(p.outbox())
	end.State = hub.SetupSucceeded
	note()
	p.importHome(p.outbox())
	mail := p.home.inbox(r)
	if len(mail) != 1 || mail[0].Type != hub.TypeNotice || mail[0].From != "hub" || mail[0].Subject != "The setup of "+string(id)+" failed with exit code 7" {
		t.Errorf("the mail is %+v", mail)
	}
	var known hub.Receipt
	err := p.home.store.View(context.Background(), func(rx store.Rx) (err error) {
		known, err = rx.StartReceipt(id)
		return err
	})
	if err != nil || known.Setup.State != hub.SetupFailed {
		t.Errorf("the home knows %+v, %v", known.Setup, err)
	}
	if _, d := p.home.states(task, id); d.State.Final() {
		t.Errorf("it made the Dispatch %s", d.State)
	}
}
