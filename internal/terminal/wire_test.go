package terminal

import (
	"bytes"
	"encoding/json"
	"net"
	"path/filepath"
	"testing"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/proc"
)

// Invariant 10: whatever a client sends, reading it ends, takes no more than a
// frame, and gives a command or an error.
func FuzzCommands(f *testing.F) {
	for _, cmd := range []Command{
		{Op: opInput, Data: []byte("x"), LimitMS: 5}, {Op: opResize, Size: &hub.TerminalSize{Rows: 2, Cols: 3}},
		{Op: opWatch, After: 7}, {Op: opKill, GraceMS: -1},
	} {
		var b bytes.Buffer
		if err := writeControl(&b, cmd); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Add([]byte{0, 0, 0, 0, 1})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1})
	f.Add([]byte{0, 0, 0, 3, 1, '{', '}'})
	f.Fuzz(func(t *testing.T, raw []byte) {
		r := bytes.NewReader(raw)
		for {
			before := r.Len()
			kind, payload, err := readFrame(r)
			if err != nil {
				return
			}
			if used := before - r.Len(); used != len(payload)+5 || used > maxFrame+4 {
				t.Fatalf("a frame of %d bytes for a payload of %d", used, len(payload))
			}
			var cmd Command
			if kind != kindControl || json.Unmarshal(payload, &cmd) != nil {
				continue
			}
			var b bytes.Buffer
			if err := writeControl(&b, cmd); err != nil {
				continue // larger in this encoding than a frame
			}
			var again Command
			if err := readControl(&b, &again); err != nil || again.Op != cmd.Op && json.Valid([]byte(cmd.Op)) || !bytes.Equal(again.Data, cmd.Data) {
				t.Fatalf("%+v became %+v, %v", cmd, again, err)
			}
		}
	})
}

// Invariant 19.
func TestSupervisorOfTheFirstVersion(t *testing.T) {
	m := newManager(t)
	inc, served := fake(t, m, 1, 4)
	if err := m.Input(within(t), inc, []byte("x")); !hub.IsCode(err, hub.CodeCapabilityUnsupported) {
		t.Errorf("Input = %v", err)
	}
	if err := m.Resize(within(t), inc, hub.TerminalSize{Rows: 9, Cols: 9}); !hub.IsCode(err, hub.CodeCapabilityUnsupported) {
		t.Errorf("Resize = %v", err)
	}
	if _, err := m.AwaitOutput(within(t), inc, 0); !hub.IsCode(err, hub.CodeCapabilityUnsupported) {
		t.Errorf("AwaitOutput = %v", err)
	}
	if state, err := m.State(within(t), inc); err != nil || state.Total != 12 || state.LastOutputAt != 34 || state.Size != (hub.TerminalSize{}) {
		t.Errorf("State = %+v, %v", state, err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// Invariant 14: an answer that is lost is not taken for a failure, nor for a
// success.
func TestLostAnswerToInput(t *testing.T) {
	m := newManager(t)
	inc, served := fake(t, m, ProtocolVersion, 3)
	if err := m.Input(within(t), inc, []byte("x")); !hub.IsCode(err, hub.CodeOutcomeUnknown) {
		t.Errorf("Input = %v", err)
	}
	if err := m.Resize(within(t), inc, hub.TerminalSize{Rows: 9, Cols: 9}); !hub.IsCode(err, hub.CodePreconditionFailed) {
		t.Errorf("Resize = %v", err)
	}
	if _, err := m.AwaitOutput(within(t), inc, 0); !hub.IsCode(err, hub.CodePreconditionFailed) {
		t.Errorf("AwaitOutput = %v", err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// fake serves a number of connections as a supervisor of the version, which
// answers to state alone. Its process is this one.
func fake(t *testing.T, m *Manager, version, connections int) (hub.Incarnation, <-chan error) {
	t.Helper()
	spec := specOf(t, "block", "")
	dir := filepath.Join(m.cfg.Root, string(spec.Terminal))
	if err := m.prepare(dir, spec); err != nil {
		t.Fatal(err)
	}
	var l launch
	if _, err := load(dir, specFile, &l); err != nil {
		t.Fatal(err)
	}
	self, err := proc.Self()
	if err != nil {
		t.Fatal(err)
	}
	inc := hub.Incarnation{Terminal: spec.Terminal, Nonce: l.Nonce, PID: self.PID, StartedAt: self.StartedAt, BootID: self.BootID}
	listener, err := listen(l.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	served := make(chan error, 1)
	go func() {
		for range connections {
			if err := serveFake(listener, inc, version); err != nil {
				served <- err
				return
			}
		}
		served <- nil
	}()
	return inc, served
}

func serveFake(l net.Listener, inc hub.Incarnation, version int) error {
	conn, err := l.Accept()
	if err != nil {
		return err
	}
	defer conn.Close()
	hello := Hello{Version: version, PID: inc.PID, Nonce: inc.Nonce, BootID: inc.BootID, StartedAt: inc.StartedAt}
	if err := writeControl(conn, hello); err != nil {
		return err
	}
	var cmd Command
	if readControl(conn, &cmd) == nil && cmd.Op == opState {
		return writeControl(conn, Event{Op: opState, Total: 12, LastOutputAt: 34})
	}
	return nil // a client that was not served leaves
}
