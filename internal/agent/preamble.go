package agent

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/safetext"
)

// PreambleInput is what a worker has to know. Bin and Worktree are absolute;
// Worktree is the folder that the agent is started in.
type PreambleInput struct {
	Worktree string
	Task     hub.TaskID
	Dispatch hub.DispatchID
	Bin      string
	Spec     string
	// Checks is what the owner looks at before a success counts.
	Checks hub.Checks
	// MayCoordinate says that it may have workers of its own.
	MayCoordinate bool
	// Wave is the task of a wave that it works at, nil for none; Background is what
	// the Task depends on, nil for nothing.
	Wave       *hub.WaveRef
	Background *hub.Background
}

const preambleText = `You are a worker of wavehub. Do the task at the end of this text, then report it.

Worktree:  %[1]s
Task:      %[2]s
Dispatch:  %[3]s
%[8]s%[5]s
Report with these commands, run in a shell of this session. They find your identity by themselves.

When the task is done (say what you did and found; this ends the task):
    %[4]s done "what was done"
When it cannot be done (say why; this ends the task too):
    %[4]s done "why it failed" --failed
A long report can come from a file or from standard input:
    %[4]s done --body-file report.md
    %[4]s done --body-file -
When you need an answer before you can go on (waits for it and prints it):
    %[4]s ask --question "your question" --option "first" --option "second" --timeout 90s
    If no answer came in time, the command prints how to resume the wait.
To tell how far you are, without ending the task:
    %[4]s progress "half way"
To read guidance that was sent to you:
    %[4]s check
%[6]s
Report once, with done, as your last act. Exit code 0 means that the report is safe, even if the hub cannot be reached now.

The task:

%[7]s`

// Preamble returns the prompt of one attempt: who and where the worker is, the
// exact commands to report with, and the Task's text verbatim at the end, only with
// what the Task depends on behind it.
func Preamble(in PreambleInput) string {
	return fmt.Sprintf(preambleText, safetext.Line(in.Worktree, 4096), in.Task, in.Dispatch,
		in.bin(), terms(in.Checks, "when you report success, this is run here: %s"), in.helpers(), ended(in.Background.Behind(in.Spec)), waveLine(in.Wave))
}

// waveLine names the task of a wave; "" for nil.
func waveLine(w *hub.WaveRef) string {
	if w == nil {
		return ""
	}
	return fmt.Sprintf("Wave:      %s, its task %s\n", w.Wave, w.Token)
}

func (in PreambleInput) bin() string { return quote(in.Bin, runtime.GOOS == "windows") }

// terms are the lines that say what a success is judged by, each behind its label;
// "" for nothing. check says what is done with the command.
func terms(c hub.Checks, check string) string {
	var b strings.Builder
	line := func(label, format, value string) {
		fmt.Fprintf(&b, "%-10s %s\n", label+":", safetext.Line(fmt.Sprintf(format, value), maxTerm))
	}
	if len(c.WriteScope) > 0 {
		line("Scope", "change nothing but %s", strings.Join(c.WriteScope, ", "))
	}
	if c.VerifyCmd != "" {
		line("Check", check, c.VerifyCmd)
	}
	if c.HandoffPath != "" {
		line("Notes", "leave in %s what those need who go on after you", c.HandoffPath)
	}
	return b.String()
}

const maxTerm = 4096

const helpersText = `To have parts of the task done by workers of your own (create one Run, then give it tasks; --help says more):
    %[1]s run create --objective "what it is for"
    %[1]s worker start --spec "what to do" --worktree new-child --agent AGENT
    %[1]s check --mailbox run --wait
`

func (in PreambleInput) helpers() string {
	if !in.MayCoordinate {
		return ""
	}
	return fmt.Sprintf(helpersText, in.bin())
}

// ended is text that ends its last line.
func ended(text string) string {
	if strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

var plainPath = regexp.MustCompile(`^[A-Za-z0-9_./:\\+@-]+$`)

// quote makes a path one word of a shell command: in double quotes, which all
// shells take, unless it holds what they would expand.
func quote(path string, windows bool) string {
	if windows || plainPath.MatchString(path) && !strings.Contains(path, `\`) {
		return `"` + path + `"`
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
