//go:build unix

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/proc"
)

// spawned is what a terminal's spawn.json says.
type spawned struct {
	Incarnation hub.Incarnation `json:"incarnation"`
	Supervisor  proc.Identity   `json:"supervisor"`
}

// spawns reads the start records of all terminals of the hub.
func (h *Hub) spawns() []spawned {
	paths, err := filepath.Glob(h.Data("terminals", "*", "spawn.json"))
	if err != nil {
		return nil
	}
	var out []spawned
	for _, path := range paths {
		var s spawned
		raw, err := os.ReadFile(path)
		if err == nil && json.Unmarshal(raw, &s) == nil {
			out = append(out, s)
		}
	}
	return out
}

// cleanUp ends the hub, then whatever supervisors and workers are left: those
// processes only whose start times are the recorded ones.
func (h *Hub) cleanUp() {
	h.Stop()
	for _, s := range h.spawns() {
		h.endProcess(s.Supervisor)
		h.endProcess(proc.Identity{PID: s.Incarnation.PID, StartedAt: s.Incarnation.StartedAt, BootID: s.Incarnation.BootID})
	}
	if h.t.Failed() {
		h.t.Logf("hub %s printed:\n%s", h.Name, h.log)
	}
}

// running says whether exactly that process runs. One that has ended does not, though
// whoever has to collect it takes their time.
func running(want proc.Identity) bool {
	found, err := proc.Lookup(want.PID)
	return err == nil && found == want && alive(want.PID)
}

func (h *Hub) endProcess(p proc.Identity) {
	if p.PID <= 1 || !running(p) {
		return
	}
	_ = syscall.Kill(p.PID, syscall.SIGKILL) // it may have ended meanwhile
	deadline := time.After(10 * time.Second)
	for running(p) {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-deadline:
			h.t.Errorf("process %d of hub %s does not end", p.PID, h.Name)
			return
		}
	}
}
