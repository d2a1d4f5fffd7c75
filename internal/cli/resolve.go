package cli

import (
	"cmp"
	"context"
	"errors"
	"os"
	"runtime"
	"slices"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/config"
)

// resolveRun is the Run that a verb acts on: --run, inside a Dispatch its own or
// the child Run that it coordinates, else the one that the caller is bound to.
func (a *app) resolveRun(ctx context.Context, s *session) (string, error) {
	switch {
	case a.flags.run != "":
		return a.flags.run, nil
	case s.dispatch != nil && !s.dispatch.MayCoordinate:
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
	e.Status = 0
	create := []string{"wavehub", "run", "create", "--objective", "Describe the goal"}
	if s.dispatch != nil {
		e.Detail = "this worker coordinates no child Run yet"
		e.Next = [][]string{create}
		return e
	}
	if s.contextErr != nil {
		e.Detail += "; its identity could not be read: " + s.contextErr.Error()
		e.Next = [][]string{append(create, "--no-bind"), {"wavehub", "run", "list"}} // nothing can be bound here
		return e
	}
	if e.Next = [][]string{create}; consumerGiven() {
		e.Detail = "no Run is named with --run, and the consumer token of the environment is of no Run of this hub"
		e.Hint = "unset " + envConsumer + " and " + envConsumerFile + " to use the terminal's own Run, or name one"
		e.Next = nil
	}
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
	case choice == "" && s.turn() != "", choice == boxDispatch && s.turn() != "":
		return "", usage("mailbox", "an attached worker's mail goes to its loop, which appends that of this turn to the file %s names", envMail)
	case choice == "" && inDispatch:
		return a.ownMailbox(ctx, s)
	case choice == boxDispatch && !inDispatch:
		return "", usage("mailbox", "there is no Dispatch here: name dispatch:<id>")
	case choice == boxDispatch:
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

// ownMailbox is the Dispatch's own where nothing else can be meant: a worker that
// coordinates a child Run reads two.
func (a *app) ownMailbox(ctx context.Context, s *session) (string, error) {
	coordinates := s.dispatch.MayCoordinate
	switch {
	case coordinates && a.flags.run != "":
		return "run:" + a.flags.run, nil
	case coordinates:
		if _, err := s.boundRun(ctx); !isRunRequired(err) {
			return "", cmp.Or(err, a.ofWorkerOrChild())
		}
	case consumerGiven():
		return "", a.ambiguous()
	case a.flags.run != "":
		return "", usage("run", "check takes no --run inside a Dispatch: its mailbox there is its own")
	}
	return "dispatch:" + s.dispatch.DispatchID, nil
}

func isRunRequired(err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	return ok && e.Code == client.CodeRunRequired
}

// ofWorkerOrChild prints how to read either mailbox of a worker that coordinates.
func (a *app) ofWorkerOrChild() error {
	e := client.Errorf(client.CodeMailboxAmbiguous, "this worker has a mailbox of its own and that of its child Run: say which")
	e.Status = 0
	e.Next = [][]string{{"wavehub", "check", "--mailbox", boxDispatch}, {"wavehub", "check", "--mailbox", boxRun}}
	return e
}

// ambiguous prints how to read either mailbox. Inside a Dispatch its capability
// is the only credential, and that of the Run's consumer counts outside only.
func (a *app) ambiguous() error {
	e := client.Errorf(client.CodeMailboxAmbiguous, "inside a Dispatch with a Run's consumer given as well: say which mailbox")
	e.Status = 0
	e.Next = [][]string{{"wavehub", "check", "--mailbox", boxDispatch}}
	if leavesDispatch() {
		ofRun := []string{"env", "-u", envDispatchFile, "wavehub", "check"}
		if a.flags.run != "" {
			ofRun = append(ofRun, "--run", a.flags.run)
		}
		e.Next = append(e.Next, ofRun)
	}
	return e
}

// leavesDispatch reports whether a program is outside of the Dispatch without
// the variable that names its file: it is not one of the worker's own.
func leavesDispatch() bool {
	if runtime.GOOS == "windows" || os.Getenv(envTerminal) != "" { // Windows has no env
		return false
	}
	cfg, err := config.Load(nil)
	if err != nil {
		return false
	}
	_, inside, err := supervised(cfg)
	return err == nil && !inside
}
