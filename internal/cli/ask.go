package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

// exitTimedOut is the exit code where an answer was asked for and none came.
const exitTimedOut = 7

// defaultAskWait is short because agents' shell tools kill long commands; the
// question stays, and --resume waits on.
const defaultAskWait = 90 * time.Second

type askFlags struct {
	question, resume string
	options          []string
	body             *body
	exitStatus       bool
}

func (a *app) askCommand() *cobra.Command {
	var f askFlags
	cmd := mark(&cobra.Command{
		Use:   "ask --question TEXT",
		Short: "Ask the coordinator from inside a Dispatch and wait for the answer",
		Long: "Stores the question, prints its message id and the command that resumes the wait on\n" +
			"stderr, then waits (--timeout, default 90s). A time-out exits 0 with timed_out true, or 7 with\n" +
			"--exit-status; a wait that is cut exits 7 with connection_lost true. The question stays open.",
		Example: "wavehub ask --question \"May I delete the branch?\" --option yes --option no\nwavehub ask --resume msg_01j8zq4h5n6p7r8s9t0v1w2x3y",
		Args:    exactly(),
	}, isMutation, isWait, isLongWait)
	cmd.Flags().StringVar(&f.question, "question", "", "the question")
	f.body = bodyFlags(cmd, "body", "the question, if it is long")
	cmd.Flags().StringArrayVar(&f.options, "option", nil, "a possible answer; may be repeated")
	cmd.Flags().StringVar(&f.resume, "resume", "", "wait on for the answer to this message")
	cmd.Flags().BoolVar(&f.exitStatus, "exit-status", false, "exit 7 on a time-out")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return a.ask(cmd, &f) }
	return cmd
}

func (a *app) ask(cmd *cobra.Command, f *askFlags) error {
	q, err := f.read(a, cmd)
	if err != nil {
		return err
	}
	s, err := a.connect(0)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := a.expandMail(cmd.Context(), s, cmd, nil); err != nil {
		return err
	}
	var raw json.RawMessage
	out, message, err := a.waitForAnswer(cmd.Context(), s, f.resume, q, &raw)
	if lost(err) && message != "" {
		return a.lostAnswer(err, message)
	}
	if err != nil {
		return err
	}
	return a.printAnswer(raw, out, f.exitStatus)
}

// lost reports whether err ended a wait and nothing else: what was waited for
// is stored.
func lost(err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	return ok && e.ExitCode() == 6
}

// lostAnswer shows a question whose wait was cut: it stays open.
func (a *app) lostAnswer(err error, message string) error {
	a.report(err)
	raw, err := json.Marshal(map[string]any{
		"message_id": message, "thread_id": message, "answer": nil, "answer_message_id": nil,
		"timed_out": false, "connection_lost": true, "resume_command": resumeCommand(message),
	})
	if err != nil {
		return err
	}
	if err := a.emit(raw, func(p *printer) { noAnswer(p, message) }); err != nil {
		return err
	}
	return exitCode(exitTimedOut)
}

func noAnswer(p *printer, message string) {
	p.line("no answer yet; resume with: %s", commandLine(resumeCommand(message)))
}

func (f *askFlags) read(a *app, cmd *cobra.Command) (client.Question, error) {
	text, err := f.body.read(a)
	if err != nil {
		return client.Question{}, err
	}
	switch {
	case f.resume != "" && (f.question != "" || text != "" || len(f.options) > 0):
		return client.Question{}, misused(cmd, "--resume takes no new question")
	case f.resume != "" && a.flags.retryRequest != "":
		return client.Question{}, misused(cmd, "--resume changes nothing, so --retry-request has no meaning")
	case f.question != "" && text != "":
		return client.Question{}, misused(cmd, "takes --question or --body, not both")
	case f.resume == "" && f.question+text == "":
		return client.Question{}, misused(cmd, "needs --question")
	}
	return client.Question{Body: f.question + text, Options: f.options}, nil
}

// waitForAnswer asks or resumes. The message id is returned as soon as it is
// known, also with an error.
func (a *app) waitForAnswer(ctx context.Context, s *session, resume string, q client.Question, raw *json.RawMessage) (*client.Answer, string, error) {
	message, wait := resume, a.wait(defaultAskWait)
	var stop func()
	if resume == "" {
		q.Wait, q.Dispatch = wait, s.turn()
		q.Asked = func(sent client.SendResult) {
			message = sent.Message.MessageId
			a.note("wavehub: asked as %s; resume with: %s", message, commandLine(resumeCommand(message)))
			stop = a.progress("waiting for the answer")
		}
		out, err := s.Ask(ctx, q, a.options(raw)...)
		if stop != nil {
			stop()
		}
		return out, message, err
	}
	stop = a.progress("waiting for the answer")
	out, err := s.Answer(ctx, resume, wait, client.WithBody(raw))
	stop()
	return out, message, err
}

func resumeCommand(message string) []string {
	return []string{"wavehub", "ask", "--resume", message}
}

func (a *app) printAnswer(raw json.RawMessage, out *client.Answer, exitStatus bool) error {
	err := a.emit(raw, func(p *printer) {
		if out.Answer != nil {
			p.text(*out.Answer)
			return
		}
		noAnswer(p, out.MessageId)
	})
	if err == nil && exitStatus && out.TimedOut {
		return exitCode(exitTimedOut)
	}
	return err
}

// unmarshalExact decodes JSON and keeps numbers as they are written.
func unmarshalExact(raw []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return dec.Decode(v)
}
