package cli

import (
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/wavehub/wavehub/client"
)

func (a *app) progressCommand() *cobra.Command {
	var file string
	cmd := mark(&cobra.Command{
		Use:     "progress [TEXT]",
		Short:   "Say how far this Dispatch's work is, without ending it",
		Long:    "The short form of send --type status inside a Dispatch. The subject is the text's first line.",
		Example: "wavehub progress \"Half of the tests pass\"\nwavehub progress --body-file -",
		Args:    cobra.ArbitraryArgs,
	}, isMutation)
	cmd.Flags().StringVar(&file, "body-file", "", "the text, from a file (- for stdin)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		text, err := a.positionalText(cmd, "TEXT", args, file)
		if err != nil {
			return err
		}
		in := client.MessageSend{Type: client.MessageSendTypeStatus, Subject: firstLine(text), Body: text}
		return a.sendInside(cmd, in, false)
	}
	return cmd
}

// maxDerivedSubject bounds a subject that is made of a text, in bytes.
const maxDerivedSubject = 72

// firstLine is the first line that says something, cut.
func firstLine(text string) string {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if len(line) <= maxDerivedSubject && line != "" {
			return line
		}
		if line != "" {
			return cut(line, maxDerivedSubject) + "…"
		}
	}
	return ""
}

// cut is the longest beginning of at most n bytes of valid text that has more.
func cut(text string, n int) string {
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
