//go:build unix

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/capfile"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/id"
	"github.com/wavehub/wavehub/openapi/api"
)

// attachedWorker is a registered identity.
type attachedWorker struct {
	hub             *Hub
	ID, Name, Token string
	file            string
}

// registered registers an identity, under a name of its own if none is given.
func registered(t testing.TB, h *Hub, name string) attachedWorker {
	t.Helper()
	if name == "" {
		name = "w-" + strings.TrimPrefix(id.New("req_"), "req_")
	}
	w := attachedWorker{hub: h, Name: name, file: filepath.Join(t.TempDir(), "token")}
	out := get[api.WorkerRegistered](t, h.Caller(), "worker-identity", "register", name, "--token-file", w.file)
	w.ID, w.Token = out.Worker.WorkerId, *out.Worker.Token
	return w
}

func (w attachedWorker) box() string { return "worker:" + w.ID }

// client calls as the worker.
func (w attachedWorker) client() *client.Client {
	e := w.hub.Endpoint()
	return w.hub.newClient(client.Config{URL: e.URL, Fingerprint: e.Fingerprint, Token: client.Secret(w.Token)})
}

// turn is a caller inside a turn of the worker, with a file as attach makes it.
func (w attachedWorker) turn(t testing.TB, s hub.SessionStart) Caller {
	t.Helper()
	e := w.hub.Endpoint()
	raw, err := capfile.Encode(capfile.File{
		URL: e.URL, Fingerprint: e.Fingerprint, Token: w.Token, RunID: string(s.Run), TaskID: string(s.Task), DispatchID: string(s.Dispatch),
	})
	must(t, err)
	file := filepath.Join(t.TempDir(), "dispatch.json")
	must(t, os.WriteFile(file, raw, 0o600))
	return w.hub.Caller("WAVEHUB_DISPATCH_FILE=" + file)
}

// startOf takes the worker's next batch, which has the Dispatch's session_start,
// and acknowledges it.
func (w attachedWorker) startOf(t testing.TB, dispatch string) hub.SessionStart {
	t.Helper()
	for _, m := range w.mail(t) {
		if s := decode[hub.SessionStart](t, string(m.Payload)); m.Type == "session_start" && string(s.Dispatch) == dispatch {
			return s
		}
	}
	t.Fatalf("there is no session_start of %s", dispatch)
	return hub.SessionStart{}
}

// mail takes the worker's next batch, waiting for it, and acknowledges it.
func (w attachedWorker) mail(t testing.TB) []api.Message {
	t.Helper()
	c := w.client()
	b, err := c.Check(t.Context(), w.box(), client.CheckOptions{Wait: 30 * time.Second})
	must(t, err)
	if b.DeliveryId == nil {
		t.Fatal("no mail came")
	}
	_, err = c.Check(t.Context(), w.box(), client.CheckOptions{Ack: *b.DeliveryId})
	must(t, err)
	return b.Messages
}

// give gives a new Task to the worker without waiting for it.
func (c Coordinator) give(t testing.TB, spec string, w attachedWorker, more ...string) api.StartReceipt {
	t.Helper()
	return get[api.StartReceipt](t, c.Caller, append([]string{"dispatch", "--task", c.Task(spec), "--to", "worker:" + w.Name, "--no-wait"}, more...)...)
}

// loop is a running wavehub attach.
type loop struct {
	t    testing.TB
	w    attachedWorker
	args []string
	log  *journal
	cmd  *exec.Cmd
	done chan error
}

// attach starts the loop of the worker and waits until it listens.
func (w attachedWorker) attach(t testing.TB, command string, more ...string) *loop {
	t.Helper()
	l := &loop{t: t, w: w, log: &journal{}}
	l.args = append([]string{"attach", "--name", w.Name, "--token-file", w.file, "--dir", t.TempDir(), "--exec", command}, more...)
	l.start()
	t.Cleanup(func() {
		l.end(syscall.SIGKILL)
		if t.Failed() {
			t.Logf("attach printed:\n%s", l.log)
		}
	})
	return l
}

func (l *loop) start() {
	l.t.Helper()
	l.cmd, l.done = l.w.hub.Caller().command(context.Background(), l.args...), make(chan error, 1)
	l.cmd.Stderr = l.log
	must(l.t, l.cmd.Start())
	cmd, done := l.cmd, l.done
	go func() { done <- cmd.Wait() }()
	eventually(l.t, "the loop listens", 30*time.Second, func() bool { return l.w.presence(l.t) == "online" })
}

// end signals the loop and waits for its end; it returns the exit code.
func (l *loop) end(sig syscall.Signal) int {
	l.t.Helper()
	_ = l.cmd.Process.Signal(sig) // one that has ended needs none
	select {
	case <-l.done:
		l.done <- nil
	case <-time.After(30 * time.Second):
		l.t.Fatalf("attach did not end within 30s of %v\n%s", sig, l.log)
	}
	return l.cmd.ProcessState.ExitCode()
}

func (w attachedWorker) presence(t testing.TB) string {
	t.Helper()
	for _, x := range get[api.WorkerPage](t, w.hub.Caller(), "worker-identity", "list").Workers {
		if x.WorkerId == w.ID {
			return string(x.Presence.State)
		}
	}
	t.Fatalf("%s is not listed", w.Name)
	return ""
}
