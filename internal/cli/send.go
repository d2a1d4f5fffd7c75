package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

// defaultVerdictWait is how long --wait-verdict waits without --timeout.
const defaultVerdictWait = time.Minute

type sendFlags struct {
	in                                   client.MessageSend
	kind, verify, payload, usage, result string
	body                                 *body
	waitVerdict                          bool
}

func (a *app) sendCommand() *cobra.Command {
	var f sendFlags
	cmd := mark(&cobra.Command{
		Use:   "send --type TYPE",
		Short: "Send a message, or report from inside a Dispatch",
		Long: "Inside a Dispatch the recipient is always its own Run, and worker_done reports the end\n" +
			"of the work. The operator names the recipient with --to run:RUN or --to dispatch:DISPATCH.\n\n" +
			"A verdict of stale or rejected exits 5. With --wait-verdict, none within --timeout exits 7.\n\n" +
			"Inside a Dispatch, what no hub answers is spooled (state spooled, exit 0): it is on this disk,\n" +
			"and the hub takes it in its order when it is back. A question is not spooled.",
		Example: "wavehub send --to dispatch:" + exampleDispatch + " --type guidance --subject \"A hint\" --body \"Look at main.go first\"\n" +
			"wavehub send --type status --subject \"Half way\" --body-file - --milestone half",
		Args: exactly(),
	}, isMutation, isWait, isLongWait)
	f.register(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		in, err := f.message(a, cmd)
		if err != nil {
			return err
		}
		return a.send(cmd, in, f.waitVerdict)
	}
	return cmd
}

func (f *sendFlags) register(cmd *cobra.Command) {
	f.body = bodyFlags(cmd, "body", "the text")
	flags := cmd.Flags()
	flags.StringVar(&f.in.To, "to", "", "run:RUN or dispatch:DISPATCH; not inside a Dispatch")
	flags.StringVar(&f.kind, "type", "", "worker_done, question, guidance, status, escalation or handoff")
	flags.StringVar(&f.in.Subject, "subject", "", "one line")
	flags.StringVar(&f.payload, "payload", "", "free-form JSON object")
	flags.StringVar(&f.in.ThreadId, "thread-id", "", "thread to continue")
	flags.StringVar(&f.in.Milestone, "milestone", "", "name of the milestone that a status reaches")
	flags.StringArrayVar(&f.in.Options, "option", nil, "a possible answer to a question; may be repeated")
	flags.StringVar(&f.in.TaskId, "task-id", "", "of a worker_done")
	flags.StringVar(&f.in.DispatchId, "dispatch-id", "", "of a worker_done")
	flags.StringVar(&f.in.Outcome, "outcome", "", "of a worker_done: succeeded, failed or cancelled")
	flags.StringVar(&f.in.Topic, "topic", "", "topic of the result")
	flags.StringVar(&f.result, "result-file", "", "file with the result: JSON, or any text (- for stdin)")
	flags.StringSliceVar(&f.in.FilesModified, "files-modified", nil, "paths that were changed, with commas")
	flags.StringVar(&f.in.ReportPath, "report-path", "", "file with the full report")
	flags.StringVar(&f.verify, "verify-result", "", "passed, failed or missing")
	flags.StringVar(&f.usage, "usage", "", "JSON object with what the work cost")
	flags.BoolVar(&f.waitVerdict, "wait-verdict", false, "wait for the verdict on a worker_done")
}

func (f *sendFlags) message(a *app, cmd *cobra.Command) (client.MessageSend, error) {
	in := f.in
	in.Type, in.VerifyResult = client.MessageSendType(f.kind), client.MessageSendVerifyResult(f.verify)
	if f.kind == "" {
		return in, misused(cmd, "needs --type")
	}
	if f.waitVerdict && in.Type != client.MessageSendTypeWorkerDone {
		return in, misused(cmd, "--wait-verdict is for --type worker_done only")
	}
	var err error
	if in.Body, err = f.body.read(a); err != nil {
		return in, err
	}
	if in.Result, err = a.readResult(f.result); err != nil {
		return in, err
	}
	if in.Payload, err = jsonFlag("payload", f.payload); err != nil {
		return in, err
	}
	in.Usage, err = jsonFlag("usage", f.usage)
	return in, err
}

func jsonFlag(name, text string) (json.RawMessage, error) {
	if text == "" {
		return nil, nil
	}
	if !json.Valid([]byte(text)) {
		return nil, usage(name, "--%s is not valid JSON", name)
	}
	return json.RawMessage(text), nil
}

func (a *app) send(cmd *cobra.Command, in client.MessageSend, waitVerdict bool) error {
	s, err := a.connect(0)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := a.expandMail(cmd.Context(), s, cmd, nil); err != nil {
		return err
	}
	if to := cmd.Flags().Lookup("to"); to != nil {
		in.To = to.Value.String() // in full now
	}
	if in.Type != client.MessageSendTypeWorkerDone && in.DispatchId == "" {
		in.DispatchId = s.turn()
	}
	if s.dispatch == nil && in.To == "" {
		return misused(cmd, "needs --to run:RUN or --to dispatch:DISPATCH outside a Dispatch")
	}
	return a.sendOn(cmd, s, in, waitVerdict)
}

func (a *app) sendOn(cmd *cobra.Command, s *session, in client.MessageSend, waitVerdict bool) error {
	var raw json.RawMessage
	out, err := a.hand(cmd.Context(), s, in, &raw)
	if request, ok := errors.AsType[spooled](err); ok {
		return a.printSpooled(in, string(request))
	}
	if err != nil {
		return err
	}
	if waitVerdict && out.Verdict == nil {
		got, err := a.awaitVerdict(cmd.Context(), s, raw, out)
		switch {
		case lost(err):
			a.report(err) // the report is stored all the same: it is shown
		case err != nil:
			return err
		default:
			raw = got
		}
	}
	if err := a.emit(raw, func(p *printer) { printSent(p, out) }); err != nil {
		return err
	}
	if !waitVerdict && out.Verdict == nil {
		return nil
	}
	return verdictExit(or(out.Verdict, ""))
}

// awaitVerdict puts the verdict into out and into its JSON document.
func (a *app) awaitVerdict(ctx context.Context, s *session, raw json.RawMessage, out *client.SendResult) (json.RawMessage, error) {
	stop := a.progress("waiting for the verdict")
	verdict, err := s.Verdict(ctx, out.Message.MessageId, a.wait(defaultVerdictWait))
	stop()
	if err != nil {
		a.say("the report is stored as %s; only its verdict is open", out.Message.MessageId)
		return nil, underRequest(err, out.Mutation.RequestId)
	}
	out.Verdict, out.Reason = verdict.Verdict, verdict.Reason
	fields := map[string]any{"verdict": verdict.Verdict}
	if verdict.Reason != "" {
		fields["reason"] = verdict.Reason
	}
	return withFields(raw, fields)
}

// underRequest makes an error of the wait tell how to wait on: by repeating the
// request, which is on record.
func underRequest(err error, requestID string) error {
	e, ok := errors.AsType[*client.Error](err)
	if !ok || e.RequestID != "" {
		return err
	}
	copied := *e
	copied.RequestID = requestID
	return &copied
}

// withFields sets top-level fields of a JSON object.
func withFields(raw json.RawMessage, fields map[string]any) (json.RawMessage, error) {
	var doc map[string]any
	if err := unmarshalExact(raw, &doc); err != nil {
		return nil, fmt.Errorf("reading the answer: %w", err)
	}
	maps.Copy(doc, fields)
	return json.Marshal(doc)
}

func verdictExit(verdict string) error {
	switch verdict {
	case "":
		return exitCode(exitTimedOut)
	case "stale", "rejected":
		return exitCode(5)
	}
	return nil
}

func printSent(p *printer, out *client.SendResult) {
	p.line("%s  %s  %s", out.Message.MessageId, string(out.State), or(out.Verdict, ""))
	if out.Reason != "" {
		p.line("  %s", out.Reason)
	}
	if out.PendingQuestion != nil {
		p.line("  the worker waits for the answer to %s first", *out.PendingQuestion)
	}
}
