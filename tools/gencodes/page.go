package main

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

const intro = `# Errors

<!-- Made by tools/gencodes from openapi/errors.yaml; do not edit. -->

Every refusal is a problem document (RFC 9457, ` + "`application/problem+json`" + `); the
command line prints it on stderr, as it is with ` + "`--json`" + `. Its ` + "`code`" + ` is the stable
contract: scripts decide by it or by the exit code, and by nothing else. It may also
say what exactly was wrong (` + "`detail`, `field`" + `), what to do next (` + "`hint`" + `; the last
column below where nothing better is known), under which id the request is or may
be on record (` + "`request_id`" + `), and commands that help in just this state
(` + "`next_commands`" + `: argv arrays that run as they are printed; one that repeats the
request may be refused again until the cause is gone).

| Retry | What a repetition is worth |
|---|---|
| ` + "`never`" + ` | it is refused again until something has been changed |
| ` + "`same_request`" + ` | nothing happened; repeat it under the same request id when the cause is gone |
| ` + "`after_ms`" + ` | nothing happened; repeat it after that many milliseconds |
| ` + "`inspect`" + ` | the effect may be there: look, or repeat it under the same request id, which has at most one effect |

Exit codes: 1 failed, 2 usage, 3 not found, 4 credential, 5 conflict, 6 unreachable
or busy and nothing happened, 10 outcome unknown.
`

// page returns docs/errors.md: the codes by status, for people. Codes that
// nothing produces yet stand at its end.
func page(entries []entry) []byte {
	var b bytes.Buffer
	b.WriteString(intro)
	var statuses []int
	for _, e := range entries {
		if e.Future == "" && !slices.Contains(statuses, e.Status) {
			statuses = append(statuses, e.Status)
		}
	}
	for _, status := range statuses {
		fmt.Fprintf(&b, "\n## %s\n\n| Code | Status | Exit | Retry | Title | What to do next |\n|---|---|---|---|---|---|\n", heading(status))
		for _, e := range entries {
			if e.Future == "" && e.Status == status {
				b.WriteString(row("`"+e.Code+"`", fmt.Sprint(e.Status), fmt.Sprint(e.Exit), "`"+e.Retry+"`", e.Title, sentence(e.Next)))
			}
		}
	}
	reserved(&b, entries)
	return b.Bytes()
}

func reserved(b *bytes.Buffer, entries []entry) {
	b.WriteString("\n## Reserved\n\nNothing produces these yet; clients may know them already.\n\n" +
		"| Code | Comes with | Status | Exit | Retry | Title | What to do next |\n|---|---|---|---|---|---|---|\n")
	for _, e := range entries {
		if e.Future != "" {
			b.WriteString(row("`"+e.Code+"`", e.Future, fmt.Sprint(e.Status), fmt.Sprint(e.Exit), "`"+e.Retry+"`", e.Title, sentence(e.Next)))
		}
	}
}

func heading(status int) string {
	if status == 0 {
		return "Without an answer: made by the client, or by a hub that cannot start"
	}
	return fmt.Sprintf("%d %s", status, http.StatusText(status))
}

// row is one line of a table.
func row(cells ...string) string {
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(c, "|", `\|`)
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

// sentence is a hint as it stands alone.
func sentence(hint string) string { return strings.ToUpper(hint[:1]) + hint[1:] + "." }
