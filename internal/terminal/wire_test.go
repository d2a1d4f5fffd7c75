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
	defer listener.Close()
	served := make(chan error, 1)
	go func() { served <- serveFirstVersion(listener, inc, 4) }()
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

// serveFirstVersion is a supervisor of version 1 for a number of connections.
func serveFirstVersion(l net.Listener, inc hub.Incarnation, connections int) error {
	for range connections {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		hello := Hello{Version: 1, PID: inc.PID, Nonce: inc.Nonce, BootID: inc.BootID, StartedAt: inc.StartedAt}
		if err := writeControl(conn, hello); err != nil {
			return err
		}
		var cmd Command
		if readControl(conn, &cmd) == nil && cmd.Op == opState {
			if err := writeControl(conn, Event{Op: opState, Total: 12, LastOutputAt: 34}); err != nil {
				return err
			}
		}
		if err := conn.Close(); err != nil {
			return err
		}
	}
	return nil
}
