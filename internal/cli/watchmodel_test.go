package cli

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/hub"
)

var updateGolden = flag.Bool("update-golden", false, "write the golden windows anew")

var liveStart = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// madeTask is a task of a snapshot; age is how many seconds ago it was started.
func madeTask(level int, sub, token string, status hub.WaveStatus, age int) client.WaveTask {
	t := client.WaveTask{Level: level, Sub: sub, TaskId: token, Attempts: 1, Worker: "w-1"}
	*(*string)(&t.Status) = string(status)
	at := func(ago int) *string {
		text := liveStart.Add(-time.Duration(ago) * time.Second).Format(time.RFC3339Nano)
		return &text
	}
	word := func(s string) *string { return &s }
	switch status {
	case hub.WavePending:
		t.Attempts, t.WaitingFor = 0, word("dependency")
	case hub.WaveRunning:
		t.StartedAt = at(age)
	case hub.WaveCompleted:
		t.StartedAt, t.CompletedAt, t.Result = at(age), at(age/2), word("all of it is done\nand more")
	case hub.WaveFailed:
		t.StartedAt, t.CompletedAt, t.Reason, t.Attempts = at(age), at(0), word("verification_failed"), 2
	case hub.WaveCancelled:
		t.Attempts, t.Reason = 0, word("blocked")
	}
	return t
}

// snapshotOf is a wave of these tasks.
func snapshotOf(goal string, tasks ...client.WaveTask) *client.WaveSnapshot {
	s := &client.WaveSnapshot{Tasks: tasks}
	s.Wave.WaveId, s.Wave.Goal, s.Wave.Iteration, s.Wave.ElapsedMs, s.Wave.Total = "w1", goal, 2, 125_000, len(tasks)
	*(*string)(&s.Wave.Status) = string(hub.WaveRunning)
	s.Summary.Total, s.Summary.ByStatus = len(tasks), map[string]int{}
	for _, t := range tasks {
		s.Summary.ByStatus[string(t.Status)]++
		if n := len(s.Summary.Levels); n == 0 || s.Summary.Levels[n-1].Wave != t.Level || s.Summary.Levels[n-1].Sub != t.Sub {
			s.Summary.Levels = append(s.Summary.Levels, client.WaveLevel{Wave: t.Level, Sub: t.Sub, Status: t.Status})
		}
		l := &s.Summary.Levels[len(s.Summary.Levels)-1]
		l.Total++
		if hub.WaveStatus(t.Status) == hub.WaveCompleted {
			l.Completed++
			s.Summary.Done++
		}
	}
	return s
}

func sampleWave() *client.WaveSnapshot {
	on := madeTask(2, "a", "build-windows", hub.WaveRunning, 3725)
	on.Start = &client.WaveStart{On: "windows"}
	asks := madeTask(2, "b", "docs", hub.WaveRunning, 9)
	asks.Worker, asks.WaitingFor = "w-2@mac", new("answer")
	return snapshotOf("Audit both platforms",
		madeTask(1, "", "vet", hub.WaveCompleted, 60), madeTask(1, "", "lint", hub.WaveFailed, 90),
		on, asks, madeTask(3, "", "release", hub.WavePending, 0), madeTask(3, "", "announce", hub.WaveCancelled, 0))
}

func largeWave(n int) *client.WaveSnapshot {
	tasks := make([]client.WaveTask, n)
	for i := range tasks {
		status := hub.WavePending
		switch {
		case i < n/2:
			status = hub.WaveCompleted
		case i%1000 == 7:
			status = hub.WaveFailed
		case i < n/2+40:
			status = hub.WaveRunning
		}
		tasks[i] = madeTask(1+i*10/n, "", fmt.Sprintf("task-%05d", i), status, i%100)
	}
	return snapshotOf("Ten thousand", tasks...)
}

// shownIn is the model after the messages.
func shownIn(width, height int, msgs ...tea.Msg) liveModel {
	var m tea.Model = liveModel{wave: "w1"}
	for _, msg := range append([]tea.Msg{tea.WindowSizeMsg{Width: width, Height: height}}, msgs...) {
		m, _ = m.Update(msg)
	}
	return m.(liveModel)
}

func TestLiveWindows(t *testing.T) {
	sample, large := liveShown{sampleWave(), liveStart}, liveShown{largeWave(10_000), liveStart}
	said := liveSaid{said: map[string]string{"build-windows": "half way", "docs": "read", "vet": "not shown"}}
	for name, m := range map[string]liveModel{
		"before":       shownIn(60, 10),
		"wide":         shownIn(110, 30, sample, said),
		"usual":        shownIn(80, 24, sample, said, liveTick(liveStart.Add(61*time.Second))),
		"narrow":       shownIn(50, 16, sample, said),
		"thin":         shownIn(24, 12, sample),
		"short":        shownIn(80, 7, sample, said),
		"one-line":     shownIn(80, 1, sample),
		"two-lines":    shownIn(30, 2, sample),
		"cut":          shownIn(80, 12, sample, liveCut{"connection refused"}),
		"warning":      shownIn(80, 12, sample, liveCut{"x"}, liveCut{}, liveSaid{warn: "checkpoint_failed no space"}),
		"ten-thousand": shownIn(80, 24, large),
		"large-short":  shownIn(60, 6, large),
		"hostile":      shownIn(80, 12, liveShown{hostileWave(), liveStart}, liveSaid{said: map[string]string{"t\x1b[2J": "\x1b]52;c;eA==\a"}, warn: "\u202ex"}),
		"empty":        shownIn(80, 12, liveShown{snapshotOf(""), liveStart}),
		"resized":      shownIn(200, 60, large, tea.WindowSizeMsg{Width: 64, Height: 14}),
		"wide-letters": shownIn(40, 12, liveShown{snapshotOf("日本語の目標 👩‍💻", madeTask(1, "", "作業-一二三四五六七八九十", hub.WaveRunning, 5)), liveStart}),
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(m.window(), "\n") + "\n"
			path := filepath.Join("testdata", "watch", name+".txt")
			if *updateGolden {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil || got != string(want) {
				t.Errorf("%v; the window is\n%s\nwant\n%s", err, got, want)
			}
		})
	}
}

func hostileWave() *client.WaveSnapshot {
	s := snapshotOf("\x1b]0;title\a\u202egoal\nsecond\r", madeTask(1, "", "t\x1b[2J", hub.WaveRunning, 1), madeTask(1, "", "u", hub.WaveFailed, 1), madeTask(1, "", "v", hub.WaveCompleted, 1))
	s.Wave.WaveId, s.Wave.Ending = "w\x9b1", &client.WaveEnding{As: "failed", Reason: "\x00"}
	s.Tasks[0].Start, s.Tasks[1].Reason, s.Tasks[2].Result = &client.WaveStart{On: "\x07hub"}, new("\x1b[31m"), new("\u2066x\x7f")
	return s
}

// Whatever the size, the window is never overrun, and nothing in it moves a cursor.
func TestLiveWindowsFit(t *testing.T) {
	for name, snap := range map[string]*client.WaveSnapshot{"sample": sampleWave(), "hostile": hostileWave(), "large": largeWave(500), "empty": snapshotOf("")} {
		for width := 1; width <= 130; width += 3 {
			for height := 1; height <= 40; height++ {
				lines := shownIn(width, height, liveShown{snap, liveStart}).window()
				if len(lines) > height {
					t.Fatalf("%s: %d lines in %dx%d", name, len(lines), width, height)
				}
				for _, line := range lines {
					if w := lipgloss.Width(line); w > width || strings.ContainsFunc(line, unicode.IsControl) || strings.ContainsRune(line, '\u202e') {
						t.Fatalf("%s: %d cells in %dx%d: %q", name, w, width, height, line)
					}
				}
			}
		}
	}
}

// Where not all tasks have room, neither the running nor the failed ones hide the
// others, and what is left out is counted.
func TestLiveLinesChoose(t *testing.T) {
	count := func(lines []liveLine, status hub.WaveStatus) (n int) {
		for _, l := range lines {
			if l.task != nil && l.task.status == status {
				n++
			}
		}
		return n
	}
	some := func(running, failed, pending, completed int) (tasks []client.WaveTask) {
		for status, n := range map[hub.WaveStatus]int{hub.WaveRunning: running, hub.WaveFailed: failed, hub.WavePending: pending, hub.WaveCompleted: completed} {
			for i := range n {
				tasks = append(tasks, madeTask(1, "", fmt.Sprint(status, i), status, 1))
			}
		}
		return tasks
	}
	for _, x := range []struct {
		tasks                               []client.WaveTask
		room                                int
		running, failed, pending, completed int
	}{
		{some(100, 100, 100, 100), 22, 9, 11, 0, 0}, // a head and the last line
		{some(100, 1, 100, 100), 22, 19, 1, 0, 0},
		{some(1, 100, 100, 100), 22, 1, 19, 0, 0},
		{some(2, 2, 100, 100), 22, 2, 2, 16, 0},
		{some(2, 2, 2, 100), 22, 2, 2, 2, 14},
		{some(2, 2, 2, 2), 9, 2, 2, 2, 2},
		{some(9, 9, 0, 0), 3, 1, 1, 0, 0},
		{some(9, 9, 0, 0), 1, 0, 0, 0, 0},
	} {
		lines := chooseLines(liveTasks(x.tasks), x.room)
		got := []int{count(lines, hub.WaveRunning), count(lines, hub.WaveFailed), count(lines, hub.WavePending), count(lines, hub.WaveCompleted)}
		if fmt.Sprint(got) != fmt.Sprint([]int{x.running, x.failed, x.pending, x.completed}) || len(lines) > x.room {
			t.Errorf("%d tasks in %d lines: %v of %d lines", len(x.tasks), x.room, got, len(lines))
		}
	}
	if lines := chooseLines(liveTasks(sampleWave().Tasks), 0); lines != nil {
		t.Errorf("without room: %v", lines)
	}
}

func TestLiveUpdates(t *testing.T) {
	m := shownIn(80, 24, liveShown{sampleWave(), liveStart})
	for key, how := range map[tea.KeyPressMsg]leaving{
		{Code: 'q', Text: "q"}: quit, {Code: 'c', Mod: tea.ModCtrl}: interrupted, {Code: tea.KeyEscape}: quit, {Code: 'x', Text: "x"}: stayed,
	} {
		next, cmd := m.Update(key)
		if got := next.(liveModel).left; got != how || (cmd != nil) != (how != stayed) {
			t.Errorf("%s leaves %v", key, got)
		}
	}
	next, cmd := m.Update(liveOver{})
	if _, quits := cmd().(tea.QuitMsg); !quits || !next.(liveModel).over {
		t.Error("the end does not end the view")
	}
	first := liveSaid{said: map[string]string{"docs": "one"}}
	a, _ := m.Update(first)
	b, _ := a.Update(liveSaid{said: map[string]string{"docs": "two"}})
	if m.said != nil || a.(liveModel).said["docs"] != "one" || b.(liveModel).said["docs"] != "two" {
		t.Error("an update changes the model that it began with")
	}
	if later, _ := m.Update(liveTick(liveStart.Add(time.Minute))); later.(liveModel).elapsed() != 185*time.Second {
		t.Errorf("elapsed are %s", later.(liveModel).elapsed())
	}
}

func TestBrief(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0s", 59 * time.Second: "59s", 61 * time.Second: "1m01s", 3661 * time.Second: "1h01m", 101 * time.Hour: "4d05h", 999 * time.Hour: "41d15h"} {
		if got := brief(d); got != want || len(got) > 7 {
			t.Errorf("%s is %q", d, got)
		}
	}
}

// The view runs without a terminal too: it shows what is read, ends with the wave and
// leaves its last state behind.
func TestLiveViewEndsWithTheWave(t *testing.T) {
	final := sampleWave()
	*(*string)(&final.Wave.Status) = string(hub.WaveFailed)
	final.Wave.Ending = &client.WaveEnding{As: "failed", Reason: "task_failed"}
	for name, x := range map[string]struct {
		err  error
		want string
	}{"failed": {nil, "w1  failed  iteration 2  2m05s  (task_failed)  Audit both platforms\n["}, "cut for good": {errors.New("gone"), "w1  running"}} {
		t.Run(name, func(t *testing.T) {
			var out, errout bytes.Buffer
			a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &errout, flags: globals{noColor: true}}
			var snap atomic.Pointer[client.WaveSnapshot]
			snap.Store(sampleWave())
			tail := &waveTail{wave: "w1",
				read: func(context.Context, string, ...client.Option) (*client.WaveSnapshot, error) { return snap.Load(), nil },
				events: func(_ context.Context, _ client.EventFilter, o client.EventOptions, take func(client.Event) error) error {
					if o.Once {
						return nil
					}
					if x.err != nil {
						return x.err
					}
					snap.Store(final)
					token := "docs"
					return take(client.Event{WaveEvent: waveEvent(4, hub.EventWaveFailed, new("w1"), &token, `{}`)})
				}}
			if err := a.watchLive(t.Context(), tail); !errors.Is(err, x.err) {
				t.Errorf("%v", err)
			}
			if text := out.String(); !strings.Contains(text[strings.LastIndex(text, "w1  "):], x.want[4:]) {
				t.Errorf("it leaves %q, want %q", text, x.want)
			}
		})
	}
}

// A person's interrupt, here of the context, ends the view and leaves the wave.
func TestLiveViewIsLeft(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	var out bytes.Buffer
	a := &app{stdin: strings.NewReader(""), stdout: &out, stderr: &bytes.Buffer{}, flags: globals{noColor: true}}
	tail := &waveTail{wave: "w1",
		read: func(context.Context, string, ...client.Option) (*client.WaveSnapshot, error) {
			return sampleWave(), nil
		},
		events: func(ctx context.Context, _ client.EventFilter, _ client.EventOptions, _ func(client.Event) error) error {
			interrupt()
			<-ctx.Done()
			return ctx.Err()
		}}
	if err := a.watchLive(ctx, tail); !errors.Is(err, exitCode(exitInterrupted)) || !strings.Contains(out.String(), "w1  running") {
		t.Errorf("%v, %q", err, out.String())
	}
}

func BenchmarkLiveViewOf10000(b *testing.B) {
	snap := largeWave(10_000)
	for b.Loop() {
		shownIn(120, 50, liveShown{snap, liveStart}).window()
	}
}
