package agent

import (
	"fmt"

	"github.com/wavehub/wavehub/internal/hub"
)

const attachedText = `You are an attached worker of wavehub. Do the task at the end of this text, then report it.

Task:      %[1]s
Dispatch:  %[2]s
%[4]s%[3]s
Report with these commands, run in a shell of this session. They find your identity by themselves.

When the task is done (say what you did and found; this ends the task):
    wavehub done "what was done"
When it cannot be done (say why; this ends the task too):
    wavehub done "why it failed" --failed
When you need an answer before you can go on (waits for it and prints it):
    wavehub ask --question "your question" --option "first" --option "second" --timeout 90s
    If no answer came in time, the command prints how to resume the wait.
To tell how far you are, without ending the task:
    wavehub progress "half way"

Report once, with done, as your last act. If you do not, the end of this session is the report.
`

// AttachedPreamble is how an attached worker's agent is told to report. The
// Task's text comes behind it. w is the task of a wave that it works at, nil for none.
func AttachedPreamble(task hub.TaskID, dispatch hub.DispatchID, c hub.Checks, w *hub.WaveRef) string {
	return fmt.Sprintf(attachedText, task, dispatch, terms(c, "run this before you report success, and add how it ended as --verify-result passed or failed: %s"), waveLine(w))
}
