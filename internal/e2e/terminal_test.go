//go:build unix

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Terminal is a pseudo terminal whose shell runs command lines of one hub, so
// that they share a context.
type Terminal struct {
	hub  *Hub
	dir  string
	fifo *os.File
	n    int
}

// NewTerminal opens a terminal with a shell in it.
func NewTerminal(t testing.TB, h *Hub) *Terminal {
	t.Helper()
	script, err := exec.LookPath("script")
	if err != nil {
		t.Skipf("no terminal can be made here: script (util-linux) is not installed: %v", err)
	}
	term := &Terminal{hub: h, dir: t.TempDir()}
	lines := filepath.Join(term.dir, "lines")
	must(t, syscall.Mkfifo(lines, 0o600))
	term.fifo, err = os.OpenFile(lines, os.O_RDWR, 0)
	must(t, err)
	shell := filepath.Join(term.dir, "shell")
	must(t, os.WriteFile(shell, []byte("while read -r line; do eval \"$line\"; done < '"+lines+"'\n"), 0o600))
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, script, "-qec", "sh "+quoted(shell), os.DevNull)
	cmd.Env, cmd.Dir = h.environ(), h.Home
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // script hangs its shell up
	cmd.WaitDelay = 10 * time.Second
	must(t, cmd.Start())
	t.Cleanup(func() {
		term.send("exit 0")
		time.AfterFunc(5*time.Second, cancel)
		_ = cmd.Wait() // its status says nothing about the product
		cancel()
		term.fifo.Close()
	})
	return term
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func (term *Terminal) send(line string) {
	if _, err := term.fifo.WriteString(line + "\n"); err != nil {
		term.hub.t.Errorf("writing to the terminal's shell: %v", err)
	}
}

// Run runs one command line in the terminal.
func (term *Terminal) Run(args ...string) Result {
	term.hub.t.Helper()
	term.n++
	base := filepath.Join(term.dir, strconv.Itoa(term.n))
	line := quoted(wavehubBin)
	for _, arg := range args {
		line += " " + quoted(arg)
	}
	term.send(fmt.Sprintf("%s >%[2]s.out 2>%[2]s.err; echo $? >%[2]s.tmp; mv %[2]s.tmp %[2]s.rc", line, quoted(base)))
	eventually(term.hub.t, fmt.Sprintf("%q ends in the terminal", args), commandLimit, func() bool { return exists(base + ".rc") })
	r := Result{Args: args, Stdout: term.read(base + ".out"), Stderr: term.read(base + ".err")}
	var err error
	r.Code, err = strconv.Atoi(strings.TrimSpace(term.read(base + ".rc")))
	must(term.hub.t, err)
	return r
}

func (term *Terminal) read(path string) string {
	raw, err := os.ReadFile(path)
	must(term.hub.t, err)
	return string(raw)
}

// inTerminal runs a command line with --json that has to succeed.
func inTerminal[T any](t testing.TB, term *Terminal, args ...string) T {
	t.Helper()
	r := term.Run(append(args, "--json")...)
	if r.Code != 0 {
		t.Fatalf("%q: exit %d\n%s%s", args, r.Code, r.Stdout, r.Stderr)
	}
	return decode[T](t, r.Stdout)
}
