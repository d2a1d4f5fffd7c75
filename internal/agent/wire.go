package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
)

// hookSeconds bounds how long a hook may keep its agent waiting.
const hookSeconds = 10

// wiring is what the hooks of one attempt are made from.
type wiring struct {
	mode    Mode
	kind    string
	events  []string
	bin     string            // absolute path of wavehub
	dir     string            // the terminal's private folder
	own     map[string]string // the hub's variables
	windows bool
}

// wired is what they add to the plan.
type wired struct {
	args  []string
	env   map[string]string
	files []File
}

// command is the shell command of a hook.
func (w wiring) command(event string) string {
	return quote(w.bin, w.windows) + " hook " + w.kind + " " + event
}

// shellCommand is the same where the CLI runs its hooks with PowerShell on
// Windows (not run there).
func (w wiring) shellCommand(event string) string {
	if !w.windows {
		return w.command(event)
	}
	return "& '" + strings.ReplaceAll(w.bin, "'", "''") + "' hook " + w.kind + " " + event
}

func (w wiring) file(name string, data []byte) File {
	return File{Path: filepath.Join(w.dir, name), Mode: 0o600, Data: data}
}

// hookGroup is the form of a hook that Claude Code and gemini-cli share.
type hookGroup struct {
	Hooks []hookCommand `json:"hooks"`
}

type hookCommand struct {
	Type    string `json:"type"`
	Command string `json:"command"`
	Timeout int    `json:"timeout"`
}

// settings is a settings file that holds nothing but hooks.
func (w wiring) settings(timeout int, command func(event string) string) []byte {
	hooks := map[string][]hookGroup{}
	for _, name := range w.events {
		hooks[name] = []hookGroup{{Hooks: []hookCommand{{"command", command(name), timeout}}}}
	}
	return append(compact(map[string]any{"hooks": hooks}), '\n')
}

// compact encodes a value of strings, numbers, maps and structs, with sorted
// keys and without escapes for HTML.
func compact(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("agent: encoding a hook: %v", err)) // only for types that JSON does not know
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// fileURL is the URL of an absolute path.
func fileURL(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}
