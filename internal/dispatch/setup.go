package dispatch

import (
	"encoding/json"
	"fmt"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// setupState is the payload of a setup_state notice.
type setupState struct {
	Kind     string         `json:"kind"`
	Dispatch hub.DispatchID `json:"dispatch_id"`
	Task     hub.TaskID     `json:"task_id"`
	State    string         `json:"state"` // succeeded, failed or unknown
	ExitCode *int           `json:"exit_code"`
	Terminal hub.TerminalID `json:"terminal_id"`
}

// NoteSetup records at its owner what is known of the setup of a Dispatch's
// worktree. Its end is told to the home: in its own record if that is here, else
// as a message of the owner's, from which the home writes the notice at import.
func NoteSetup(tx store.Tx, home hub.PeerID, id hub.DispatchID, s hub.SetupReport) error {
	a, ok, err := tx.Attachment(home, id)
	if err != nil || !ok {
		return err
	}
	a.Receipt.NoteSetup(s)
	if err := tx.SaveAttachment(a); err != nil {
		return err
	}
	if home == "" {
		return HearSetup(tx, id, s)
	}
	if !s.Over() {
		return nil
	}
	payload, err := encode(s)
	if err != nil {
		return err
	}
	m := hub.Message{ID: hub.NewMessageID(), Run: a.Run, From: hubName, To: a.Run.Box(), Type: hub.TypeNotice, Payload: payload, CreatedAt: tx.Now()}
	return enqueue(tx, toHome(a), hub.ItemMessage, m.ID, m)
}

// HearSetup records at the home what the owner of a Dispatch knows of the setup.
// The first end that it hears of is final, and the Run gets one notice of it:
// not where the setup holds the start, whose own end tells of it, and not of a
// success that the answer to the start, which is still to come, tells of, nor of
// a setup that was not come to.
func HearSetup(tx store.Tx, id hub.DispatchID, s hub.SetupReport) error {
	d, err := tx.Dispatch(id)
	if err != nil {
		return err
	}
	r, err := tx.StartReceipt(id)
	if err != nil || r.Setup.Over() {
		return err
	}
	starting := r.State == hub.StartStarting
	r.NoteSetup(s)
	if err := tx.SaveStartReceipt(id, r); err != nil || !s.Over() {
		return err
	}
	if s.Terminal == "" || s.Gates() || starting && s.State == hub.SetupSucceeded {
		return nil
	}
	return postNotice(tx, d.Run, setupNotice(d, s))
}

func setupNotice(d hub.Dispatch, s hub.SetupReport) notice {
	subject := "The setup of " + string(d.ID) + " has succeeded"
	switch {
	case s.State == hub.SetupFailed && s.ExitCode != nil:
		subject = fmt.Sprintf("The setup of %s failed with exit code %d", d.ID, *s.ExitCode)
	case s.State == hub.SetupFailed:
		subject = fmt.Sprintf("The setup of %s failed", d.ID)
	case s.State == hub.SetupUnknown:
		subject = fmt.Sprintf("The setup of %s has ended, and its exit code is not known", d.ID)
	}
	return notice{subject: subject, body: "Its worker goes on as before.", history: d.Quiet, payload: setupState{
		Kind: noticeSetupState, Dispatch: d.ID, Task: d.Task, State: s.State, ExitCode: s.ExitCode, Terminal: s.Terminal,
	}}
}

// arriveSetup takes an owner's word on the end of a setup, only in the owner's
// name.
func arriveSetup(d hub.Dispatch, m hub.Message, by string) (arrival, error) {
	var s hub.SetupReport
	if by != hubName || json.Unmarshal(m.Payload, &s) != nil {
		return arrival{}, refusef("a worker cannot send a %s", m.Type)
	}
	if !s.Over() || hub.CheckText("last_error", s.LastError, hub.MaxSubjectBytes) != nil || !hub.ValidID(hub.PrefixTerminal, string(s.Terminal)) {
		return arrival{}, refusef("malformed setup")
	}
	return arrival{apply: func(tx store.Tx) (*hub.ItemVerdict, error) { return nil, HearSetup(tx, d.ID, s) }}, nil
}
