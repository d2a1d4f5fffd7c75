package cli

import (
	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

func (a *app) doneCommand() *cobra.Command {
	var failed, waitVerdict bool
	var file, result, verify string
	cmd := mark(&cobra.Command{
		Use:     "done [BODY]",
		Short:   "Report the end of this Dispatch's work",
		Long:    "The short form of send --type worker_done inside a Dispatch; the ids come from its file. What no\nhub answers is spooled (state spooled, exit 0), and goes out when the hub is back.",
		Example: "wavehub done \"All checks pass\"\nwavehub done \"The tests do not compile\" --failed",
		Args:    cobra.ArbitraryArgs,
	}, isMutation, isWait, isLongWait)
	cmd.Flags().BoolVar(&failed, "failed", false, "the work failed")
	cmd.Flags().StringVar(&file, "body-file", "", "the text, from a file (- for stdin)")
	cmd.Flags().StringVar(&result, "result-file", "", "file with the result: JSON, or any text (- for stdin)")
	cmd.Flags().StringVar(&verify, "verify-result", "", "how your own check ended: passed, failed or missing")
	cmd.Flags().BoolVar(&waitVerdict, "wait-verdict", false, "wait for the verdict")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		text, err := a.positionalText(cmd, "BODY", args, file)
		if err != nil {
			return err
		}
		in := client.MessageSend{Type: client.MessageSendTypeWorkerDone, Subject: "succeeded", Outcome: "succeeded", Body: text, VerifyResult: client.MessageSendVerifyResult(verify)}
		if failed {
			in.Subject, in.Outcome = "failed", "failed"
		}
		if in.Result, err = a.readResult(result); err != nil {
			return err
		}
		return a.sendInside(cmd, in, waitVerdict)
	}
	return cmd
}

// positionalText is a text given as the one argument or by --body-file.
func (a *app) positionalText(cmd *cobra.Command, name string, args []string, file string) (string, error) {
	switch {
	case len(args) == 1 && file == "" && args[0] != "":
		return args[0], nil
	case len(args) == 0 && file != "":
		return a.readText("body-file", file)
	}
	return "", misused(cmd, "takes either one %s (quote it) or --body-file", name)
}

// sendInside sends a message of this Dispatch; a report gets the ids of its file.
func (a *app) sendInside(cmd *cobra.Command, in client.MessageSend, waitVerdict bool) error {
	s, err := a.connect(a.silence(cmd))
	if err != nil {
		return err
	}
	defer s.Close()
	if err := a.expandMail(cmd.Context(), s, cmd, cmd.Flags().Args()); err != nil {
		return err
	}
	if s.dispatch == nil {
		return misused(cmd, "works inside a Dispatch only (%s is not set)", envDispatchFile)
	}
	if in.Type == client.MessageSendTypeWorkerDone {
		in.TaskId, in.DispatchId = s.dispatch.TaskID, s.dispatch.DispatchID
	}
	return a.sendOn(cmd, s, in, waitVerdict)
}
