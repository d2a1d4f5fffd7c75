package cli

import (
	"context"
	"errors"
	"slices"

	"github.com/wavehub/wavehub/client"
)

// resolveRun is the Run that a verb acts on: --run, inside a Dispatch its own,
// else the one that the caller is bound to.
func (a *app) resolveRun(ctx context.Context, s *session) (string, error) {
	switch {
	case a.flags.run != "":
		return a.flags.run, nil
	case s.dispatch != nil:
		return s.dispatch.RunID, nil
	}
	return s.boundRun(ctx)
}

func (s *session) boundRun(ctx context.Context) (string, error) {
	if !s.bound && s.dispatch == nil {
		return "", s.runRequired(ctx)
	}
	binding, err := s.Binding(ctx)
	if e, ok := errors.AsType[*client.Error](err); ok && unboundCode(e.Code) {
		return "", s.runRequired(ctx)
	}
	if err != nil {
		return "", err
	}
	return binding.Run.RunId, nil
}

func unboundCode(code client.Code) bool {
	return slices.Contains([]client.Code{
		client.CodeRunRequired, client.CodeConsumerRequired, client.CodeRunNotFound, client.CodeNotFound,
	}, code)
}

// runRequired names commands that can be pasted as they are.
func (s *session) runRequired(ctx context.Context) error {
	e := client.Errorf(client.CodeRunRequired, "no Run is named with --run, and this terminal is bound to none")
	if s.contextErr != nil {
		e.Detail += "; its identity could not be read: " + s.contextErr.Error()
	}
	e.Status = 0
	e.Next = [][]string{{"wavehub", "run", "create", "--objective", "Describe the goal"}}
	// The newest Run only makes the advice better: without it the advice stands.
	if runs, err := s.Runs(ctx, client.Page{Limit: 1}); err == nil && len(runs.Runs) > 0 {
		e.Next = append(e.Next, []string{"wavehub", "run", "use", runs.Runs[0].RunId})
	}
	return e
}

// Choices of check --mailbox besides a full name.
const (
	boxRun      = "run"
	boxDispatch = "dispatch"
)

// mailbox is the one that check reads: the Dispatch's own inside a Dispatch,
// else the Run's. Where both are meant the caller has to choose.
func (a *app) mailbox(ctx context.Context, s *session, choice string) (string, error) {
	inDispatch := s.dispatch != nil
	switch {
	case choice == "" && inDispatch && (a.flags.run != "" || consumerGiven()):
		return "", a.ambiguous()
	case choice == boxDispatch && !inDispatch:
		return "", usage("mailbox", "there is no Dispatch here: name dispatch:<id>")
	case choice == boxDispatch, choice == "" && inDispatch:
		return "dispatch:" + s.dispatch.DispatchID, nil
	case choice != "" && choice != boxRun:
		return choice, nil
	}
	run, err := a.flags.run, error(nil)
	if run == "" {
		run, err = s.boundRun(ctx)
	}
	return "run:" + run, err
}

func (a *app) ambiguous() error {
	e := client.Errorf(client.CodeMailboxAmbiguous, "inside a Dispatch with a Run given as well: say which mailbox")
	e.Status = 0
	ofRun := []string{"wavehub", "check", "--mailbox", boxRun}
	if a.flags.run != "" {
		ofRun = append(ofRun, "--run", a.flags.run)
	}
	e.Next = [][]string{{"wavehub", "check", "--mailbox", boxDispatch}, ofRun}
	return e
}
