//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	domain "github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/proc"
)

// crowd is how many supervisors and shells ran at once, and their memory, what
// they share counted once.
type crowd struct{ processes, kib int64 }

// memory of a process in KiB: all that is resident, which counts pages of the
// database that the system would take back, and what is the process's own.
type memory struct{ resident, own int64 }

// weigh notes the memory of the present process; systems without /proc tell
// nothing.
func (h *hub) weigh() {
	h.mu.Lock()
	defer h.mu.Unlock()
	status := fmt.Sprintf("/proc/%d/status", h.pid)
	h.most.resident = max(h.most.resident, field(status, "VmHWM:"))
	h.most.own = max(h.most.own, field(status, "RssAnon:"))
}

// weighWorkers adds up the memory of all supervisors and workers that run now.
func (h *hub) weighWorkers() {
	var c crowd
	for _, p := range h.running() {
		c.processes++
		c.kib += field(fmt.Sprintf("/proc/%d/smaps_rollup", p.PID), "Pss:")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.crowd = c
}

// field reads a number of KiB from a file of /proc; 0 if it is not there.
func field(path, name string) int64 {
	raw, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name {
			n, _ := strconv.ParseInt(f[1], 10, 64) // the kernel writes numbers
			return n
		}
	}
	return 0
}

// spawned is the record of a terminal's process and its supervisor.
type spawned struct {
	Incarnation domain.Incarnation `json:"incarnation"`
	Supervisor  proc.Identity      `json:"supervisor"`
}

func (h *hub) record(terminal string) (r spawned, err error) {
	raw, err := os.ReadFile(h.data("terminals", terminal, "spawn.json"))
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(raw, &r)
}

func (r spawned) worker() proc.Identity {
	return proc.Identity{PID: r.Incarnation.PID, StartedAt: r.Incarnation.StartedAt, BootID: r.Incarnation.BootID}
}

// running are the supervisors and workers on record that have not ended, by
// proof of their start times.
func (h *hub) running() (out []proc.Identity) {
	terminals, _ := filepath.Glob(h.data("terminals", "*")) // the pattern is well-formed
	for _, path := range terminals {
		r, err := h.record(filepath.Base(path))
		if err != nil {
			continue // nothing was started there, or it is removed
		}
		for _, p := range []proc.Identity{r.Supervisor, r.worker()} {
			if proc.Check(p) == domain.Live {
				out = append(out, p)
			}
		}
	}
	return out
}

// endLimit is how long ended workers may take to be gone.
const endLimit = 20 * time.Second

// awaitWorkers returns what still runs when all should have ended.
func (h *hub) awaitWorkers() (left []proc.Identity) {
	for deadline := time.Now().Add(endLimit); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if left = h.running(); len(left) == 0 {
			break
		}
	}
	return left
}

// endWorkers ends what is left of supervisors and workers, whatever happened.
func (h *hub) endWorkers() error {
	for _, p := range h.running() {
		if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("ending process %d: %w", p.PID, err)
		}
	}
	return nil
}
