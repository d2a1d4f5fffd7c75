package config

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

func (c Config) validate(src sources) error {
	switch {
	case !validName(c.Name):
		return src.invalid(KeyName, "%q must have 1 to 64 visible characters without spaces", c.Name)
	case !validAddress(c.Listen, true):
		return src.invalid(KeyListen, "%q is not host:port", c.Listen)
	case !slices.Contains([]string{"debug", "info", "warn", "error"}, c.LogLevel):
		return src.invalid(KeyLogLevel, "%q is not debug, info, warn or error", c.LogLevel)
	case c.Limits.Workers < 0:
		return src.invalid(keyWorkers, "must not be negative")
	case c.VerifyTimeout <= 0 || c.VerifyTimeout > maxVerifySecs*time.Second:
		return src.invalid(keyVerify, "must be 1 to %d", maxVerifySecs)
	}
	for _, address := range c.Advertise {
		if !validAddress(address, false) {
			return src.invalid(KeyAdvertise, "%q is not host:port", address)
		}
	}
	return c.validateAgents(src.file)
}

func (c Config) validateAgents(file string) error {
	for name, limit := range c.Limits.PerAgent {
		if limit < 0 {
			return invalidFile(file, fmt.Sprintf("limits.per_agent.%s: must not be negative", name))
		}
	}
	for name, a := range c.Agents {
		if problem := a.problem(); problem != "" {
			return invalidFile(file, fmt.Sprintf("agents.%s.%s", name, problem))
		}
		if !validName(name) {
			return invalidFile(file, fmt.Sprintf("agents: %q is not a name", name))
		}
	}
	return nil
}

func (a AgentDefinition) problem() string {
	switch {
	case len(a.Command) > 0 && a.Command[0] == "":
		return "command: the program is empty"
	case !slices.Contains([]string{"", "argv", "stdin", "file", "paste"}, a.Deliver):
		return fmt.Sprintf("deliver: %q is not argv, stdin, file or paste", a.Deliver)
	case !slices.Contains([]string{"", "report", "result", "exit"}, a.Completion):
		return fmt.Sprintf("completion: %q is not report, result or exit", a.Completion)
	}
	for key := range a.Env {
		if key == "" || strings.ContainsAny(key, "=\x00") {
			return fmt.Sprintf("env: %q is not the name of a variable", key)
		}
	}
	return ""
}

func validName(s string) bool {
	visible := func(r rune) bool { return unicode.IsGraphic(r) && !unicode.IsSpace(r) }
	n := utf8.RuneCountInString(s)
	return n >= 1 && n <= 64 && strings.IndexFunc(s, func(r rune) bool { return !visible(r) }) < 0
}

// validAddress checks host:port; only an address to listen on may have no
// host, or port 0.
func validAddress(s string, listen bool) bool {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && (listen || (host != "" && n > 0))
}

// hostName is the default name: the first label of the host's name.
func hostName() string {
	name, err := os.Hostname()
	if err != nil { // no name is no reason not to start: the name is a label
		return "hub"
	}
	name, _, _ = strings.Cut(strings.ToLower(name), ".")
	if !validName(name) {
		return "hub"
	}
	return name
}
