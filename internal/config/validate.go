package config

import (
	"fmt"
	"maps"
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
	case c.WaveLivenessSecs < 0 || c.WaveLivenessSecs > maxLivenessSecs:
		return src.invalid(KeyWaveLiveness, "must be 0 to %d", maxLivenessSecs)
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

// problem is about one value by itself; what can be combined is not judged here.
func (a AgentDefinition) problem() string {
	if len(a.Command) > 0 && a.Command[0] == "" {
		return "command: the program is empty"
	}
	for _, c := range a.choices() {
		if c.value != "" && !slices.Contains(c.allowed, c.value) {
			return fmt.Sprintf("%s: %q is none of %s", c.key, c.value, strings.Join(c.allowed, ", "))
		}
	}
	for key := range a.Env {
		if key == "" || strings.ContainsAny(key, "=\x00") {
			return fmt.Sprintf("env: %q is not the name of a variable", key)
		}
	}
	return ""
}

// choice is a value that must be one of a few, or empty.
type choice struct {
	key, value string
	allowed    []string
}

var (
	deliveries = []string{"argv", "stdin", "file", "paste"}
	readiness  = []string{"launch", "hook", "title", "quiescence"}
)

func (a AgentDefinition) choices() []choice {
	all := []choice{
		{"mode", a.Mode, []string{"tui", "headless"}},
		{"deliver", a.Deliver, deliveries},
		{"completion", a.Completion, []string{"report", "result", "exit"}},
	}
	for _, name := range slices.Sorted(maps.Keys(a.Modes)) {
		m := a.Modes[name]
		all = append(all, choice{"modes." + name + ".deliver", m.Deliver, deliveries}, choice{"modes." + name + ".ready", m.Ready, readiness})
	}
	return all
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
