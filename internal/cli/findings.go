package cli

import (
	"strconv"
	"strings"

	"github.com/wavehub/wavehub/client"
)

// printChecks shows what a Task asks its workers' hubs to find out.
func printChecks(p *printer, t client.Task) {
	if t.VerifyCmd != "" {
		first, _, more := strings.Cut(t.VerifyCmd, "\n")
		if more {
			first += " …"
		}
		p.line("  verify (%s): %s", orText(t.Verify, "record"), first)
	}
	if len(t.WriteScope) > 0 {
		p.line("  may change (%s): %s", orText(t.Scope, "advisory"), strings.Join(t.WriteScope, ", "))
	}
	if t.HandoffPath != "" {
		p.line("  notes in %s", t.HandoffPath)
	}
}

// printFindings shows what a worker's hub found out about its success.
func printFindings(p *printer, f *client.Findings) {
	if f == nil {
		return
	}
	if f.VerifyResult != "" {
		p.line("  verification: %s, by the %s", string(f.VerifyResult), orText(string(f.VerifiedBy), "hub"))
	}
	if v := f.Verify; v != nil {
		printVerification(p, v)
	}
	printScope(p, f)
	if h := f.Handoff; h != nil && h.Present {
		p.line("  notes: %d bytes, sha256 %s", h.Bytes, orText(h.Sha256, "not taken"))
	} else if h != nil {
		p.line("  notes: none")
	}
}

func printVerification(p *printer, v *client.Verification) {
	end := "no exit code"
	if v.ExitCode != nil {
		end = "exit code " + strconv.Itoa(*v.ExitCode)
	}
	if v.Reason != "" {
		end += ", " + string(v.Reason)
	}
	p.line("    %s after %d ms, run %d", end, v.DurationMs, v.Attempts)
	if v.OutputTail != "" {
		p.line("    the end of its output:")
		p.text(v.OutputTail)
	}
}

func printScope(p *printer, f *client.Findings) {
	if f.ScopeCheck == "" {
		return
	}
	shared := ""
	if f.ScopeShared {
		shared = ", together with other Tasks in the worktree"
	}
	p.line("  changes: %s%s", string(f.ScopeCheck), shared)
	if f.ScopeReason != "" {
		p.line("    %s", f.ScopeReason)
	}
	if f.ScopeSource == "worker" {
		p.line("    by the worker's own word:")
	}
	for _, path := range f.ScopeViolations {
		p.line("    outside of the scope: %s", path)
	}
	if more := f.ScopeViolationCount - len(f.ScopeViolations); more > 0 {
		p.line("    and %d more", more)
	}
}

// orText is the text, or another one for none.
func orText(text, other string) string {
	if text == "" {
		return other
	}
	return text
}
