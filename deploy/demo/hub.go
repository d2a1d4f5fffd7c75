package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// hub is one hub process with its own home folder.
type hub struct {
	name, home, bin string
	url             string
	cmd             *exec.Cmd
	exited          chan struct{} // closed when cmd has ended
	env             []string      // of commands that are given to it
}

func newHub(bin, dir, name string) *hub {
	home := filepath.Join(dir, name)
	h := &hub{name: name, home: home, bin: bin}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "WAVEHUB_") {
			h.env = append(h.env, kv)
		}
	}
	h.env = append(h.env, "WAVEHUB_HOME="+home)
	return h
}

// start runs the hub and returns when it has printed its ready line.
func (h *hub) start(ctx context.Context) error {
	log, err := os.OpenFile(h.home+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	h.cmd = exec.Command(h.bin, "serve", "--name", h.name, "--listen", "127.0.0.1:0")
	h.cmd.Env, h.cmd.Stderr = h.env, log
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := h.cmd.Start(); err != nil {
		return err
	}
	h.exited = make(chan struct{})
	ready := make(chan string, 1)
	go h.follow(bufio.NewReader(out), ready)
	select {
	case line := <-ready:
		fields := strings.Fields(line)
		if len(fields) != 4 {
			return fmt.Errorf("%s is not ready: see %s.log", h.name, h.home)
		}
		h.url = fields[2]
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// follow reads the ready line, then waits for the process to end.
func (h *hub) follow(out *bufio.Reader, ready chan<- string) {
	line, err := out.ReadString('\n')
	if err != nil {
		line = ""
	}
	ready <- line
	_, _ = out.WriteTo(bytes.NewBuffer(nil)) // a hub prints nothing more
	_ = h.cmd.Wait()                         // killed on purpose, or stopped
	close(h.exited)
}

// kill ends the hub as a crash would.
func (h *hub) kill() error {
	if err := h.cmd.Process.Kill(); err != nil {
		return err
	}
	<-h.exited
	return nil
}

// stop ends the hub politely, by force after ten seconds.
func (h *hub) stop() error {
	if h == nil || h.cmd == nil {
		return nil
	}
	select {
	case <-h.exited:
		return nil
	default:
	}
	if err := h.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-h.exited:
		return nil
	case <-time.After(10 * time.Second):
		return errors.Join(errors.New(h.name+" did not stop in ten seconds"), h.kill())
	}
}

// do runs one wavehub command against the hub and decodes its JSON answer.
func (h *hub) do(ctx context.Context, out any, args ...string) error {
	cmd := exec.CommandContext(ctx, h.bin, append(args, "--json")...)
	cmd.Env = h.env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("wavehub %s on %s: %w: %s", strings.Join(args, " "), h.name, err, strings.TrimSpace(stderr.String()))
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(stdout.Bytes(), out)
}

// stream runs one wavehub command that prints lines, and hands each to fn.
func (h *hub) stream(ctx context.Context, fn func(line []byte) error, args ...string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, h.bin, args...)
	var stderr bytes.Buffer
	cmd.Env, cmd.Stderr = h.env, &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for err == nil && lines.Scan() {
		err = fn(lines.Bytes())
	}
	if err != nil {
		cancel()
		_ = cmd.Wait() // it was ended because of err
		return err
	}
	if err := errors.Join(lines.Err(), cmd.Wait()); err != nil {
		return fmt.Errorf("wavehub %s on %s: %w: %s", strings.Join(args, " "), h.name, err, strings.TrimSpace(stderr.String()))
	}
	return nil
}
