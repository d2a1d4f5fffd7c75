package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/config"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/safetext"
)

// requestPrefix begins every request id.
const requestPrefix = "req_"

// usage is a refusal of the command line itself: exit code 2.
func usage(field, format string, args ...any) *client.Error {
	e := client.Errorf(client.CodeInvalidArgument, format, args...)
	e.Field, e.Status = field, 0
	return e
}

// report prints err on stderr and returns its exit code.
func (a *app) report(err error) int {
	if e, ok := errors.AsType[*client.Error](err); !ok && errors.Is(err, context.Canceled) {
		a.say("interrupted")
		return exitInterrupted
	} else if ok {
		return a.reportProblem(*e)
	}
	return a.reportProblem(problemOf(err))
}

func problemOf(err error) client.Error {
	if e, ok := errors.AsType[*config.InvalidError](err); ok {
		out := client.Errorf(client.CodeConfigInvalid, "%v", err)
		out.Hint = cmp.Or(e.Hint, out.Hint)
		return *out
	}
	e, ok := errors.AsType[*hub.Error](err)
	if !ok {
		return *client.Errorf(client.CodeInternal, "%v", err)
	}
	out := client.Errorf(client.Code(e.Code), "%v", err)
	for _, f := range e.Findings {
		out.Findings = append(out.Findings, client.PlanFinding{Code: f.Code, Tasks: f.Tasks, Detail: f.Detail, Line: f.Line})
	}
	out.Hint, out.Field, out.Next, out.AfterMS = cmp.Or(e.Hint, out.Hint), e.Field, e.Next, e.AfterMS
	return *out
}

func (a *app) reportProblem(e client.Error) int {
	again := a.recovery(e)
	if again != nil && !slices.ContainsFunc(e.Next, func(c []string) bool { return slices.Equal(c, again) }) {
		e.Next = append(slices.Clone(e.Next), again)
	}
	if a.usedStdin && recoverable(e) {
		e.Hint = "repeat it with the same input and --retry-request " + e.RequestID + ": it has at most one effect"
	}
	if a.flags.json || slices.Contains(a.argv, "--json") {
		a.problemJSON(e)
	} else {
		a.problemText(e, again)
	}
	return e.ExitCode()
}

// recovery is the command that tells what became of a mutation, or repeats it
// without a second effect; nil when that cannot help. What was read from stdin
// cannot be printed: then only the former is left.
func (a *app) recovery(e client.Error) []string {
	switch {
	case !recoverable(e):
		return nil
	case !a.usedStdin:
		return a.repeated(e.RequestID)
	case e.Retry == client.RetryInspect && a.flags.hub == "": // what a paired hub has on record only the request itself tells
		return []string{"wavehub", "request", "show", e.RequestID}
	}
	return nil
}

func recoverable(e client.Error) bool {
	return (e.Retry == client.RetrySameRequest || e.Retry == client.RetryInspect) && strings.HasPrefix(e.RequestID, requestPrefix)
}

// repeated is this command line under the request id.
func (a *app) repeated(requestID string) []string {
	var head, tail []string
	head = []string{"wavehub"}
	for i := 0; i < len(a.argv); i++ {
		switch arg := a.argv[i]; {
		case arg == "--":
			tail = a.argv[i:]
			i = len(a.argv)
		case arg == "--retry-request":
			i++
		case strings.HasPrefix(arg, "--retry-request="):
		default:
			head = append(head, arg)
		}
	}
	return append(append(head, "--retry-request", requestID), tail...)
}

func (a *app) problemJSON(e client.Error) {
	raw, err := json.Marshal(client.Problem{
		Code: client.ErrorCode(e.Code), Title: e.Title, Detail: e.Detail, Hint: e.Hint, Field: e.Field,
		Status: cmp.Or(e.Status, client.Errorf(e.Code, "").Status), RequestId: e.RequestID, Retry: client.ProblemRetry(e.Retry), AfterMs: e.AfterMS, NextCommands: e.Next,
		Findings: e.Findings,
	})
	if err != nil {
		raw = []byte(`{"code":"internal","title":"The problem cannot be encoded","status":0,"retry":"inspect"}`)
	}
	a.note("%s", raw)
}

func (a *app) problemText(e client.Error, again []string) {
	text := e.Detail
	if text == "" {
		text = e.Title
	}
	a.note("%s %s (%s)", a.style("31", "wavehub:"), safetext.Line(text, 2000), e.Code)
	for _, f := range e.Findings {
		a.note("  %s", findingLine(f))
	}
	if e.Hint != "" {
		a.note("  hint: %s", safetext.Line(e.Hint, 2000))
	}
	if strings.HasPrefix(e.RequestID, requestPrefix) {
		a.note("  request: %s", e.RequestID)
	}
	for _, argv := range e.Next {
		label := "try"
		if slices.Equal(argv, again) {
			label = "recover"
		}
		a.note("  %s: %s", label, commandLine(argv))
	}
}

// commandLine quotes argv so that it can be pasted into a POSIX shell.
func commandLine(argv []string) string {
	parts := make([]string, len(argv))
	for i, arg := range argv {
		parts[i] = quoted(safetext.Clean(arg))
	}
	return strings.Join(parts, " ")
}

const plainChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,=@%+"

func quoted(arg string) string {
	if arg != "" && strings.Trim(arg, plainChars) == "" {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

// note writes one line to stderr. A failure to write there cannot be told to
// anybody, and the exit code still speaks.
func (a *app) note(format string, args ...any) {
	_, _ = fmt.Fprintf(a.stderr, format+"\n", args...)
}

// say is a note that --quiet silences.
func (a *app) say(format string, args ...any) {
	if !a.flags.quiet {
		a.note("wavehub: "+format, args...)
	}
}

func (a *app) style(code, text string) string {
	if a.flags.noColor || os.Getenv("NO_COLOR") != "" || !isTerminal(a.stderr) {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
