//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/config"
)

const startLimit = 30 * time.Second

// Hub is one hub process at a time on its own WAVEHUB_HOME. Its methods may
// be called concurrently, but only one goroutine may kill and restart it.
type Hub struct {
	t    testing.TB
	Name string
	Home string
	args []string
	env  []string      // added to the environment of every process
	bin  string        // the program of serve
	cli  string        // the program of all other command lines
	via  []string      // what runs both: a program and its arguments, nil for none
	lag  time.Duration // after the end, for others to leave its outputs; 0: they have to
	log  *journal

	mu   sync.Mutex // guards what follows
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended and was collected
}

// Option changes a hub before its first start.
type Option func(t testing.TB, h *Hub)

// withConfig writes config.yaml.
func withConfig(text string) Option {
	return func(t testing.TB, h *Hub) {
		dir := filepath.Join(h.Home, "config")
		must(t, os.MkdirAll(dir, 0o700))
		must(t, os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(text), 0o600))
	}
}

// NewHub makes the home of a hub that is not started yet.
func NewHub(t testing.TB, name string, opts ...Option) *Hub {
	t.Helper()
	h := &Hub{t: t, Name: name, Home: t.TempDir(), bin: wavehubBin, cli: wavehubBin, log: &journal{}}
	h.args = []string{"serve", "--name", name, "--listen", "127.0.0.1:0"}
	must(t, os.Mkdir(filepath.Join(h.Home, "user"), 0o700))
	for _, opt := range opts {
		opt(t, h)
	}
	t.Cleanup(h.cleanUp)
	return h
}

// StartHub starts a hub on a home of its own and waits until it is ready.
func StartHub(t testing.TB, name string, opts ...Option) *Hub {
	t.Helper()
	h := NewHub(t, name, opts...)
	h.Start()
	return h
}

// Start starts the process and waits for its ready line.
func (h *Hub) Start() {
	h.t.Helper()
	if err := h.start(); err != nil {
		h.t.Fatalf("hub %s: %v\n%s", h.Name, err, h.log)
	}
}

func (h *Hub) start() error {
	argv := h.argv(h.bin, h.args...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = h.environ()
	out := &announcement{rest: h.log, first: make(chan string, 1)}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, h.log, h.lag
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	go func() { // ends with the process
		defer close(done)
		_ = cmd.Wait() // tests end it as they like
		out.end()
	}()
	h.mu.Lock()
	h.cmd, h.done = cmd, done
	h.mu.Unlock()
	return h.awaitReady(out.first)
}

// announcement hands on the first line that a process prints; what follows goes
// to rest. One goroutine writes, then ends it.
type announcement struct {
	rest  io.Writer
	line  []byte
	first chan string // holds one
	over  bool
}

// Write takes a part of the line, or of the rest.
func (a *announcement) Write(b []byte) (int, error) {
	if a.over {
		return a.rest.Write(b)
	}
	line, rest, found := bytes.Cut(b, []byte("\n"))
	a.line = append(a.line, line...)
	if found {
		a.end()
		if _, err := a.rest.Write(rest); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// end hands on what there is of the line.
func (a *announcement) end() {
	if !a.over {
		a.over = true
		a.first <- string(a.line)
	}
}

func (h *Hub) awaitReady(ready <-chan string) error {
	select {
	case line := <-ready:
		if !strings.HasPrefix(line, "wavehub ready https://") {
			return errors.New("the first line is " + strings.TrimSpace(line))
		}
		return nil
	case <-time.After(startLimit):
		h.Kill()
		return errors.New("not ready within " + startLimit.String())
	}
}

func (h *Hub) process() (*exec.Cmd, chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cmd, h.done
}

// PID is that of the present or last process.
func (h *Hub) PID() int {
	cmd, _ := h.process()
	return cmd.Process.Pid
}

// Kill ends the process with SIGKILL and waits for its end.
func (h *Hub) Kill() { h.end(syscall.SIGKILL) }

// Stop ends the process with SIGTERM and waits for its end.
func (h *Hub) Stop() { h.end(syscall.SIGTERM) }

// Signal sends a signal to the process.
func (h *Hub) Signal(sig syscall.Signal) {
	if cmd, _ := h.process(); cmd != nil {
		_ = cmd.Process.Signal(sig) // a process that has ended needs none
	}
}

func (h *Hub) end(sig syscall.Signal) {
	_, done := h.process()
	if done == nil {
		return
	}
	h.Signal(sig)
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		h.Signal(syscall.SIGKILL)
		<-done
		h.t.Errorf("hub %s did not end within 20s of %v\n%s", h.Name, sig, h.log)
	}
}

// Restart starts a killed or stopped hub again, or kills a running one first.
func (h *Hub) Restart() {
	h.t.Helper()
	h.Kill()
	h.Start()
}

// argv is how a program of this hub is started.
func (h *Hub) argv(program string, args ...string) []string {
	return slices.Concat(h.via, []string{program}, args)
}

// environ is all that a wavehub process of this hub gets.
func (h *Hub) environ() []string {
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(h.Home, "user"), "WAVEHUB_HOME=" + h.Home,
		"XDG_RUNTIME_DIR=" + runtimeDir, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C.UTF-8",
	}, h.env...)
}

// Data is the hub's data directory.
func (h *Hub) Data(parts ...string) string {
	return filepath.Join(append([]string{h.Home, "data"}, parts...)...)
}

// Endpoint is what the hub tells local clients.
func (h *Hub) Endpoint() config.Endpoint {
	h.t.Helper()
	raw, err := os.ReadFile(config.EndpointFile(h.Data()))
	must(h.t, err)
	var e config.Endpoint
	must(h.t, json.Unmarshal(raw, &e))
	return e
}

// Token is the operator's token.
func (h *Hub) Token() string {
	h.t.Helper()
	raw, err := os.ReadFile(h.Data("token"))
	must(h.t, err)
	return strings.TrimSpace(string(raw))
}

// Client is the operator's client; consumer is a whc_ token or "".
func (h *Hub) Client(consumer string) *client.Client {
	h.t.Helper()
	e := h.Endpoint()
	return h.newClient(client.Config{URL: e.URL, Fingerprint: e.Fingerprint, Token: client.Secret(h.Token()), Consumer: client.Secret(consumer)})
}

func (h *Hub) newClient(cfg client.Config) *client.Client {
	h.t.Helper()
	c, err := client.New(cfg)
	must(h.t, err)
	h.t.Cleanup(c.Close)
	return c
}

// journal collects what a process prints. It is safe for concurrent use.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

// Write keeps b.
func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(b)
}

// String is all that was printed so far.
func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.String()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
