package work

import (
	"context"
	"slices"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/receipt"
	"github.com/wavehub/wavehub/internal/store"
)

// MaxSendBytes bounds the text of one send.
const MaxSendBytes = 64 << 10

// maxKeys bounds the keys of one send.
const maxKeys = 256

// pastePause is between a paste and the Enter that submits it: agents take an
// Enter that comes with it for a part of the text.
const pastePause = 400 * time.Millisecond

// SendInput is the argument of SendTerminal: text, then keys, then Enter.
type SendInput struct {
	Terminal hub.TerminalID
	Text     string
	Paste    bool // the text is pasted, in brackets if the process asked for them
	Keys     []string
	Enter    bool
}

// strokes are what is written, in two parts where a pause has to be between.
func (in SendInput) strokes() (text string, rest string, err error) {
	switch {
	case in.Text == "" && len(in.Keys) == 0 && !in.Enter:
		return "", "", hub.Invalid("text", "there is nothing to send: give a text, keys or enter")
	case len(in.Keys) > maxKeys:
		return "", "", hub.Invalid("keys", "at most %d keys are sent at once", maxKeys)
	case in.Paste && in.Text == "":
		return "", "", hub.Invalid("paste", "there is no text to paste")
	}
	if err = hub.CheckText("text", in.Text, MaxSendBytes); err == nil && in.Paste {
		err = checkPaste(in.Text)
	}
	if err == nil {
		rest, err = keysBytes(in.Keys)
	}
	if in.Enter {
		rest += keys["enter"]
	}
	return in.Text, rest, err
}

// SendTerminal writes to the terminal as a keyboard would, at most once: a
// write whose end is not known is outcome_unknown and is never sent again.
func (s *Service) SendTerminal(ctx context.Context, r receipt.Request, in SendInput) (hub.TerminalInput, error) {
	text, rest, err := in.strokes()
	if err != nil {
		return hub.TerminalInput{}, err
	}
	var process hub.Incarnation
	return receipt.Long(ctx, s.Gate, r, receipt.Operation[hub.TerminalInput]{
		Class: store.New, Prepare: func(ctx context.Context) error { return s.handed(ctx, r.Principal, in.Terminal) },
		Begin: func(tx store.Tx) (hub.TerminalInput, error) {
			t, err := hold(tx, r.Principal, in.Terminal)
			if err == nil {
				process, err = typable(t)
			}
			return hub.TerminalInput{Terminal: in.Terminal, State: hub.StartStarting, Bytes: len(text) + len(rest)}, err
		},
		Perform: func(ctx context.Context, begun hub.TerminalInput) (hub.TerminalInput, error) {
			began, err := s.typeInto(ctx, process, text, rest, in.Paste)
			return sent(begun, began, err), nil
		},
		Observe: func(_ context.Context, begun hub.TerminalInput) (hub.TerminalInput, error) {
			return lostInput(begun), nil
		},
		Unknown: func(r hub.TerminalInput) bool { return r.State == hub.TerminalUnknown },
		Open:    lostInput,
	})
}

// typable is the process that can be typed to.
func typable(t hub.Terminal) (hub.Incarnation, error) {
	switch {
	case t.Over() || t.ClosedAt != 0:
		return hub.Incarnation{}, noneLives(t)
	case t.Process == nil:
		return hub.Incarnation{}, hub.Errorf(hub.CodePreconditionFailed, "whether %s has a process is not known", t.ID)
	case t.Size == hub.TerminalSize{}:
		return hub.Incarnation{}, hub.Invalid("terminal_id", "%s has pipes and takes no input", t.ID)
	}
	return *t.Process, nil
}

// noneLives refuses a terminal that has ended.
func noneLives(t hub.Terminal) error {
	e := hub.Errorf(hub.CodeTerminalNotFound, "%s has ended", t.ID)
	e.Hint = "make another one with terminal create, or name an agent to start"
	return e
}

// typeInto writes text, and after it rest. began tells whether any of it may
// have arrived.
func (s *Service) typeInto(ctx context.Context, in hub.Incarnation, text, rest string, paste bool) (began bool, err error) {
	release, err := s.typing.take(ctx, in.Terminal)
	if err != nil {
		return false, err
	}
	defer release()
	if !paste {
		return s.write(ctx, in, []byte(text+rest))
	}
	st, err := s.Terminals.State(ctx, in)
	if err != nil {
		return false, err
	}
	if began, err = s.write(ctx, in, pasted(text, st.BracketedPaste)); err != nil || rest == "" {
		return began, err
	}
	if err := sleep(ctx, pastePause); err != nil {
		return true, err
	}
	_, err = s.write(ctx, in, []byte(rest))
	return true, err
}

func (s *Service) write(ctx context.Context, in hub.Incarnation, data []byte) (began bool, err error) {
	err = s.Terminals.Input(ctx, in, data)
	return !untouched(err), err
}

// untouched reports whether an error of Input proves that nothing was written:
// the process was refused, gone, or not proven to be the one that is meant.
func untouched(err error) bool {
	return err != nil && slices.Contains([]hub.Code{
		hub.CodeInvalidArgument, hub.CodeDispatchInactive, hub.CodePreconditionFailed, hub.CodeCapabilityUnsupported, hub.CodeTerminalNotFound,
	}, hub.CodeOf(err))
}

// sent is the answer of a send that came to its end.
func sent(begun hub.TerminalInput, began bool, err error) hub.TerminalInput {
	switch {
	case err == nil:
		begun.State = hub.TerminalSent
		return begun
	case began:
		begun = lostInput(begun)
	default:
		begun.State = hub.TerminalFailed
	}
	begun.LastError = err.Error()
	return begun
}

// lostInput is the answer where it is not known whether the input arrived.
func lostInput(begun hub.TerminalInput) hub.TerminalInput {
	begun.State, begun.LastError = hub.TerminalUnknown, "the input may have arrived; it is not sent again"
	return begun
}
