package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/openapi/api"
)

// What much output may cost: the most that a terminal keeps, with what describes it,
// and growth of the memory of the hub and of the supervisor.
const (
	maxKept   = 64<<20 + 1<<20
	maxGrowth = 64 << 20
	// answerLimit is far more than an answer takes; a hub that waits for the
	// output misses it.
	answerLimit = 10 * time.Second
)

// O6: a worker that writes without end costs bounded disk and memory and holds
// nobody up. Who reads on from before is told that something is missing.
func TestAcceptance_O06_MuchOutputIsBounded(t *testing.T) {
	t.Parallel()
	size := scaled(t, 96, 256, 1024) << 20
	h := StartHub(t, "mac")
	run, before, after := h.NewRun("much output"), newGate(t), newGate(t)
	line := strings.Repeat("0123456789abcde ", 8)
	d := run.Work(fmt.Sprintf("echo the beginning; %syes '%s' | head -c %d; echo; echo the end; %s%sok", before.wait(), line, size, after.wait(), done))
	terminal := terminalOf(d)
	var first api.OutputPage
	eventually(t, "the first line is there", 20*time.Second, func() bool {
		first = get[api.OutputPage](t, run.Caller, "worker", "read", d.DispatchId)
		return first.Terminal.Text == "the beginning\n"
	})
	hub, supervisor := residentBytes(t, h.PID()), residentBytes(t, h.spawnOf(terminal).Supervisor.PID)
	before.open(t, 1)
	slowest, most := h.watchOutput(t, run, terminal, d.DispatchId)
	t.Logf("written: %d MiB; kept on disk, at most: %d MiB; slowest answer meanwhile: %s", size>>20, most>>20, slowest)
	for name, grown := range map[string]int64{
		"hub": residentBytes(t, h.PID()) - hub, "supervisor": residentBytes(t, h.spawnOf(terminal).Supervisor.PID) - supervisor,
	} {
		t.Logf("the memory of the %s grew by %d KiB", name, grown>>10)
		if grown > maxGrowth {
			t.Errorf("the memory of the %s grew by %d bytes", name, grown)
		}
	}
	if most > maxKept || most < maxKept/4 {
		t.Errorf("%d bytes were kept on disk", most)
	}
	behind := get[api.OutputPage](t, run.Caller, "worker", "read", d.DispatchId, "--cursor", *first.Cursor)
	if !behind.Terminal.Truncated || !strings.Contains(behind.Terminal.Text, line) || len(behind.Terminal.Text) > 256<<10 {
		t.Errorf("behind the first line: truncated %v, %d bytes", behind.Terminal.Truncated, len(behind.Terminal.Text))
	}
	end := get[api.OutputPage](t, run.Caller, "worker", "read", d.DispatchId, "--limit", "3")
	if !end.Terminal.Truncated || !strings.HasSuffix(end.Terminal.Text, "\nthe end\n") {
		t.Errorf("the end: %+v", end.Terminal)
	}
	after.open(t, 1)
	if m := run.Done(d.DispatchId); m.Body != "ok" {
		t.Errorf("the report is %q", m.Body)
	}
}

// watchOutput makes Tasks and reads the worker's output until it has written its
// end. It returns the slowest answer and the most that was on disk.
func (h *Hub) watchOutput(t *testing.T, run Coordinator, terminal, dispatch string) (slowest time.Duration, most int64) {
	t.Helper()
	operator := h.Client("")
	answers := func(call func(ctx context.Context) error) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), answerLimit)
		defer cancel()
		from := time.Now()
		must(t, call(ctx))
		slowest = max(slowest, time.Since(from))
	}
	eventually(t, "all is written", 5*time.Minute, func() (over bool) {
		answers(func(ctx context.Context) error {
			_, err := operator.CreateTask(ctx, run.Run, api.TaskCreate{Spec: "meanwhile"})
			return err
		})
		answers(func(ctx context.Context) error {
			p, err := operator.Output(ctx, dispatch, client.OutputQuery{Page: client.Page{Limit: 3}})
			over = err == nil && strings.HasSuffix(p.Terminal.Text, "\nthe end\n")
			return err
		})
		most = max(most, onDisk(t, h.Data("terminals", terminal)))
		return over
	})
	return slowest, most
}

// onDisk is the size of all files below a folder, some of which may go meanwhile.
func onDisk(t testing.TB, dir string) (size int64) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return ifThere(err)
		}
		info, err := e.Info()
		if err == nil && e.Type().IsRegular() {
			size += info.Size()
		}
		return ifThere(err)
	}))
	return size
}

func ifThere(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
