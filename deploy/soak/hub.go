//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/config"
)

// hub is one hub process at a time on a home of its own. One goroutine at a
// time may start and end it.
type hub struct {
	bin, home string
	env       []string
	cmd       *exec.Cmd
	exited    chan struct{} // closed when cmd has ended
	ending    error         // how cmd ended; read after exited is closed

	mu      sync.Mutex
	pid     int           // guarded by mu: of cmd
	most    memory        // guarded by mu: the largest of any of the processes
	slowest time.Duration // guarded by mu: of all starts
	crowd   crowd         // guarded by mu: the workers' memory, once it was looked at
}

func newHub(bin, dir string) *hub {
	h := &hub{bin: bin, home: filepath.Join(dir, "hub")}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "WAVEHUB_") {
			h.env = append(h.env, kv)
		}
	}
	h.env = append(h.env, "WAVEHUB_HOME="+h.home)
	return h
}

func (h *hub) data(parts ...string) string {
	return filepath.Join(append([]string{h.home, "data"}, parts...)...)
}

const startLimit = time.Minute

// start runs the hub and returns when it is ready.
func (h *hub) start(ctx context.Context) error {
	ready, err := h.launch()
	if err != nil {
		return err
	}
	began := time.Now()
	select {
	case line := <-ready:
		if !strings.HasPrefix(line, "wavehub ready https://") {
			return fmt.Errorf("the hub did not become ready but printed %q: see %s.log", line, h.home)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.slowest = max(h.slowest, time.Since(began))
		return nil
	case <-time.After(startLimit):
		return fmt.Errorf("the hub was not ready within %s: see %s.log", startLimit, h.home)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// launch begins the process; its first line comes through ready.
func (h *hub) launch() (ready <-chan string, err error) {
	log, err := os.OpenFile(h.home+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(h.bin, "serve", "--name", "soak", "--listen", "127.0.0.1:0")
	cmd.Env, cmd.Stderr = h.env, log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, exited := make(chan string, 1), make(chan struct{})
	h.cmd, h.exited = cmd, exited
	h.mu.Lock()
	h.pid = cmd.Process.Pid
	h.mu.Unlock()
	go func() { // ends with the process
		defer close(exited)
		h.ending = follow(cmd, out, line)
	}()
	return line, nil
}

// follow reads the ready line, then waits for the process to end.
func follow(cmd *exec.Cmd, out io.Reader, ready chan<- string) error {
	lines := bufio.NewReader(out)
	line, _ := lines.ReadString('\n') // an end before the line is no line
	ready <- line
	_, _ = lines.WriteTo(io.Discard) // a hub prints nothing more
	return cmd.Wait()
}

// kill ends the hub as a crash would.
func (h *hub) kill() error {
	h.weigh()
	if err := h.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("killing the hub: %w", err)
	}
	<-h.exited
	return nil
}

const stopLimit = 30 * time.Second

// stop ends the hub politely, by force if that takes too long.
func (h *hub) stop() error {
	if h.cmd == nil {
		return nil
	}
	h.weigh()
	if err := h.cmd.Process.Signal(syscall.SIGTERM); errors.Is(err, os.ErrProcessDone) {
		return nil
	} else if err != nil {
		return err
	}
	select {
	case <-h.exited:
	case <-time.After(stopLimit):
		return errors.Join(fmt.Errorf("the hub did not stop in %s", stopLimit), h.kill())
	}
	if h.ending != nil {
		return fmt.Errorf("the hub was stopped: %w: see %s.log", h.ending, h.home)
	}
	return nil
}

// operator is what the operator's clients, with the consumer's token or "", need
// to know; it is read anew, for a restarted hub may have another address.
func (h *hub) operator(consumer client.Secret) (client.Config, error) {
	at, err := config.ReadEndpoint(h.data())
	if err != nil {
		return client.Config{}, err
	}
	token, err := os.ReadFile(h.data("token"))
	if err != nil {
		return client.Config{}, err
	}
	return client.Config{
		URL: at.URL, Fingerprint: at.Fingerprint, Token: client.Secret(strings.TrimSpace(string(token))), Consumer: consumer,
	}, nil
}
