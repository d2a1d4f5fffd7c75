package cli

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/hub"
)

// liveModel is the live view of one wave. Update and View are pure: what is read
// comes in messages, and the time of day with them.
type liveModel struct {
	wave   string
	colour bool
	width  int // cells, 0 until it is known
	height int
	now    time.Time

	shown   *client.WaveSnapshot // nil before the first
	shownAt time.Time
	tasks   []liveTask // by level, sub-wave and declared position
	lines   []liveLine // of tasks, as many as fit

	said map[string]string // the last milestone of a task, by its token
	warn string            // the last warning of the wave
	cut  string            // why nothing comes, "" if something may

	left leaving
	over bool // nothing comes any more
}

// leaving is how a person left the view.
type leaving int

const (
	stayed leaving = iota
	quit
	interrupted
)

// Messages of the live view.
type (
	liveShown struct {
		snap *client.WaveSnapshot
		at   time.Time
	}
	liveSaid struct {
		said map[string]string
		warn string
	}
	liveCut  struct{ cause string } // "" when the connection is back
	liveTick time.Time
	liveOver struct{}
	liveLeft struct{ how leaving }
)

// liveTask is a task as it is shown.
type liveTask struct {
	level      int
	sub, token string
	status     hub.WaveStatus
	hub        string
	attempts   int
	began, end time.Time // zero for none
	note       string    // what it waits for, or how it ended
}

const tickEvery = time.Second

func tick() tea.Cmd { return tea.Tick(tickEvery, func(t time.Time) tea.Msg { return liveTick(t) }) }

// Init starts the clock.
func (m liveModel) Init() tea.Cmd { return tick() }

// Update takes one message in.
func (m liveModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		return m.arranged(), nil
	case tea.KeyPressMsg:
		return m.key(msg.String())
	case liveTick:
		m.now = time.Time(msg)
		return m, tick()
	case liveShown:
		m.shown, m.shownAt, m.now, m.tasks = msg.snap, msg.at, msg.at, liveTasks(msg.snap.Tasks)
		return m.arranged(), nil
	case liveSaid:
		m.said = maps.Clone(m.said)
		if m.said == nil {
			m.said = map[string]string{}
		}
		maps.Copy(m.said, msg.said)
		m.warn = cmp.Or(msg.warn, m.warn)
	case liveCut:
		m.cut = msg.cause
	case liveOver:
		m.over = true
		return m, tea.Quit
	case liveLeft:
		m.left = msg.how
		return m, tea.Quit
	}
	return m, nil
}

func (m liveModel) key(key string) (tea.Model, tea.Cmd) {
	switch key {
	case "q", "Q", "esc":
		m.left = quit
		return m, tea.Quit
	case "ctrl+c":
		m.left = interrupted
		return m, tea.Quit
	}
	return m, nil
}

// arranged chooses the tasks that the window has room for.
func (m liveModel) arranged() liveModel {
	m.lines = chooseLines(m.tasks, m.bodyHeight())
	return m
}

// liveTasks are tasks in the order in which they are shown.
func liveTasks(tasks []client.WaveTask) []liveTask {
	out := make([]liveTask, len(tasks))
	for i, t := range tasks {
		out[i] = liveTaskOf(t)
	}
	slices.SortStableFunc(out, func(a, b liveTask) int {
		return cmp.Or(cmp.Compare(a.level, b.level), cmp.Compare(len(a.sub), len(b.sub)), cmp.Compare(a.sub, b.sub))
	})
	return out
}

func liveTaskOf(t client.WaveTask) liveTask {
	out := liveTask{
		level: t.Level, sub: t.Sub, token: t.TaskId, status: hub.WaveStatus(t.Status), hub: "here",
		attempts: t.Attempts, began: instant(t.StartedAt), end: instant(t.CompletedAt),
	}
	if _, on, ok := strings.Cut(t.Worker, "@"); ok {
		out.hub = on
	}
	if t.Start != nil && t.Start.On != "" {
		out.hub = t.Start.On
	}
	switch {
	case t.WaitingFor != nil:
		out.note = "waits for " + *t.WaitingFor
	case out.status == hub.WaveCompleted:
		out.note, _, _ = strings.Cut(strings.TrimSpace(or(t.Result, "")), "\n")
	case out.status.Final():
		out.note = or(t.Reason, "")
	}
	return out
}

// instant is a time that the hub said, zero for none.
func instant(at *string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, or(at, ""))
	if err != nil {
		return time.Time{}
	}
	return t
}

// elapsed is how long a task has run, or ran; false before it was started.
func (t liveTask) elapsed(now time.Time) (time.Duration, bool) {
	switch {
	case t.began.IsZero():
		return 0, false
	case !t.end.IsZero():
		now = t.end
	}
	return max(now.Sub(t.began), 0), true
}

// elapsed is how long this iteration of the wave has taken.
func (m liveModel) elapsed() time.Duration {
	took := time.Duration(m.shown.Wave.ElapsedMs) * time.Millisecond
	if hub.WaveStatus(m.shown.Wave.Status) == hub.WaveRunning {
		took += max(m.now.Sub(m.shownAt), 0)
	}
	return took
}
