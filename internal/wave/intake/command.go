package intake

import (
	"regexp"
	"slices"
	"strings"
)

// programs are what the first word of a command is, besides a path.
var programs = strings.Fields(`
	bash bazel bun bundle cargo cmake composer ctest curl deno docker dotnet eslint flake8 git go golangci-lint gradle grep
	jest make mix mocha mvn mypy ninja node npm npx php phpunit playwright pnpm poetry pre-commit pytest python python3
	rake rspec ruby ruff rustc sbt sh swift terraform tox tsc uv vitest yarn xcodebuild zig`)

// said is what people put behind a command to say that it should succeed.
var said = regexp.MustCompile(`(?i)\s+(?:passes|pass|succeeds|succeed|works|is green|exits (?:with )?0|completes)\.?$`)

// words are in sentences that begin like a command.
var words = strings.Fields("a all an and any are be error errors exists has if is must no of passes pass returns should shows succeeds sure that the then to with without works")

// command is the shell command that a description of a verification is, "" if it is
// words for people. A text in backquotes is taken at its word; else it is one line
// that begins with a program and is no sentence.
func command(text string) string {
	text = strings.TrimSpace(text)
	if inner, ok := quoted(text); ok {
		return inner
	}
	text = said.ReplaceAllString(text, "")
	if inner, ok := quoted(text); ok {
		return inner
	}
	if strings.ContainsAny(text, "\n\r`") {
		return ""
	}
	parts := strings.Fields(text)
	if len(parts) == 0 || !isProgram(parts) || isSentence(unquoted(text)) {
		return ""
	}
	return text
}

// isProgram: test is a word too, and a program only with an option.
func isProgram(parts []string) bool {
	return slices.Contains(programs, parts[0]) || strings.HasPrefix(parts[0], "./") ||
		parts[0] == "test" && len(parts) > 1 && strings.HasPrefix(parts[1], "-")
}

// quoted is what is in backquotes, or in a fence of them, if that is all.
func quoted(text string) (string, bool) {
	if body, ok := strings.CutPrefix(text, "```"); ok {
		_, body, ok = strings.Cut(body, "\n")
		body, closed := strings.CutSuffix(body, "```")
		return strings.TrimSpace(body), ok && closed && !strings.Contains(body, "```") && strings.TrimSpace(body) != ""
	}
	inner, ok := strings.CutPrefix(text, "`")
	inner, closed := strings.CutSuffix(inner, "`")
	return strings.TrimSpace(inner), ok && closed && !strings.ContainsAny(inner, "`\n") && strings.TrimSpace(inner) != ""
}

var quotes = regexp.MustCompile(`"[^"]*"|'[^']*'`)

// unquoted is a text without what is in quotes.
func unquoted(text string) string { return quotes.ReplaceAllString(text, "") }

func isSentence(text string) bool {
	return strings.HasSuffix(text, ".") && !strings.HasSuffix(text, " .") && !strings.HasSuffix(text, "..") && !strings.HasSuffix(text, "/.") ||
		slices.ContainsFunc(strings.Fields(text), func(word string) bool {
			return slices.Contains(words, strings.ToLower(strings.Trim(word, ",.;:")))
		})
}
