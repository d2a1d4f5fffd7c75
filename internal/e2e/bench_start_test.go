//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/terminal"
	"github.com/wavehub/wavehub/openapi/api"
)

// BenchmarkStart compares a start of sh in a folder that is there, from the call
// to the receipt that says ready, with the launch of the same supervisor and the
// same script by hand.
func BenchmarkStart(b *testing.B) {
	const script = "exit 0"
	h := StartHub(b, "mac")
	run, c, dir := h.NewRun("starts"), h.Client(""), b.TempDir()
	root := filepath.Join(b.TempDir(), "terminals")
	must(b, os.Mkdir(root, 0o700))
	m, err := terminal.New(terminal.Config{Root: root, Exe: []string{wavehubBin, "supervise"}})
	must(b, err)
	byHub := func(int) error {
		r, err := c.StartTask(b.Context(), run.Run, api.TaskStart{Task: api.TaskCreate{Spec: script}, Start: api.WorkerStart{Worktree: "path:" + dir, Agent: "sh"}})
		if err == nil && r.State != "ready" {
			b.Errorf("the start is %s", r.State)
		}
		return err
	}
	byHand := func(int) error {
		file := filepath.Join(b.TempDir(), "script")
		must(b, os.WriteFile(file, []byte(script), 0o600))
		_, err := m.Launch(b.Context(), hub.LaunchSpec{Terminal: hub.NewTerminalID(), Argv: []string{"/bin/sh", file}, Dir: dir, Env: os.Environ()})
		return err
	}
	for b.Loop() {
		hub, hand := measure(b, 1, 20, byHub), measure(b, 1, 20, byHand)
		b.ReportMetric(float64(hub.percentile(50).Microseconds()), "start-p50-us")
		b.ReportMetric(float64(hand.percentile(50).Microseconds()), "by-hand-p50-us")
		b.ReportMetric(float64(hub.percentile(50))/float64(hand.percentile(50)), "ratio")
	}
}

// BenchmarkFlood measures what other calls wait while a worker writes 1 GiB.
func BenchmarkFlood(b *testing.B) {
	h := StartHub(b, "mac")
	run, c := h.NewRun("flood"), h.Client("")
	call := func(int) error {
		_, err := c.Run(b.Context(), run.Run)
		return err
	}
	for b.Loop() {
		idle := measure(b, 1, 500, call)
		task := run.Task(`head -c 1073741824 /dev/zero | tr '\0' x`)
		id := run.Begin(task, "--worktree", "path:"+b.TempDir(), "--agent", "sh").DispatchId
		busy := during(b, c, id, call)
		b.ReportMetric(float64(idle.percentile(99).Microseconds()), "idle-p99-us")
		b.ReportMetric(float64(busy.percentile(99).Microseconds()), "flooded-p99-us")
		b.ReportMetric(float64(busy.percentile(99))/float64(idle.percentile(99)), "ratio")
	}
}

// during measures op for as long as the Dispatch lives.
func during(b *testing.B, c *client.Client, dispatch string, op func(int) error) (s sample) {
	b.Helper()
	var ended atomic.Bool
	go func() {
		defer ended.Store(true)
		for ended := false; !ended && b.Context().Err() == nil; {
			shown, err := c.Dispatch(b.Context(), dispatch)
			ended = err != nil || slices.Contains([]string{"succeeded", "failed"}, string(shown.Dispatch.State))
			<-time.After(50 * time.Millisecond)
		}
	}()
	for !ended.Load() {
		one := measure(b, 1, 1, op)
		s.each, s.all = append(s.each, one.each...), s.all+one.all
	}
	return s
}
