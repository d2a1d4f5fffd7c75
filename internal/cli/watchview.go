package cli

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/safetext"
)

// The size of a window that does not say it.
const (
	usualWidth  = 80
	usualHeight = 24
)

const (
	headHeight = 2  // the wave and its progress
	footFrom   = 5  // from which height on there is a line at the foot
	spacedFrom = 10 // and an empty line above and below the tasks
	textLimit  = 400
)

// liveStatuses are the statuses in the order in which they are counted.
var liveStatuses = []hub.WaveStatus{hub.WaveCompleted, hub.WaveRunning, hub.WaveFailed, hub.WavePending, hub.WaveCancelled}

var liveMarks = map[hub.WaveStatus]string{
	hub.WavePending: "·", hub.WaveRunning: "▶", hub.WaveCompleted: "✓", hub.WaveFailed: "✗", hub.WaveCancelled: "–",
}

var liveColours = map[hub.WaveStatus]lipgloss.Style{
	hub.WavePending: lipgloss.NewStyle().Faint(true), hub.WaveRunning: lipgloss.NewStyle().Foreground(lipgloss.Cyan),
	hub.WaveCompleted: lipgloss.NewStyle().Foreground(lipgloss.Green), hub.WaveFailed: lipgloss.NewStyle().Foreground(lipgloss.Red).Bold(true),
	hub.WaveCancelled: lipgloss.NewStyle().Foreground(lipgloss.Yellow),
}

// View is the whole window.
func (m liveModel) View() tea.View {
	v := tea.NewView(strings.Join(m.window(), "\n"))
	v.AltScreen = true
	return v
}

func (m liveModel) size() (width, height int) {
	width, height = m.width, m.height
	if width <= 0 {
		width = usualWidth
	}
	if height <= 0 {
		height = usualHeight
	}
	return width, height
}

// bodyHeight is how many lines the tasks have.
func (m liveModel) bodyHeight() int {
	_, height := m.size()
	body := height - headHeight
	if height >= footFrom {
		body--
	}
	if height >= spacedFrom {
		body -= 2
	}
	return max(body, 0)
}

// window is the lines of the window: never more than it has, none wider.
func (m liveModel) window() []string {
	width, height := m.size()
	if m.shown == nil {
		return []string{fit("reading "+safetext.Line(m.wave, textLimit)+" …", width)}
	}
	lines := m.summary(width)
	if height >= spacedFrom {
		lines = append(lines, "")
	}
	cols := columnsFor(width, m.lines)
	for _, line := range m.lines {
		lines = append(lines, m.line(line, cols, width))
	}
	if height >= spacedFrom {
		lines = append(lines, "")
	}
	if height >= footFrom {
		lines = append(lines, m.foot(width))
	}
	return lines[:min(len(lines), height)]
}

// summary is what is known of the wave in two lines.
func (m liveModel) summary(width int) []string {
	w := m.shown.Wave
	status := hub.WaveStatus(w.Status)
	head := fmt.Sprintf("%s  %s", safetext.Line(w.WaveId, textLimit), status)
	if w.Iteration > 1 {
		head += fmt.Sprintf("  iteration %d", w.Iteration)
	}
	head += "  " + brief(m.elapsed())
	if w.Ending != nil {
		head += "  (" + safetext.Line(w.Ending.Reason, textLimit) + ")"
	}
	if w.Goal != "" {
		head += "  " + safetext.Line(w.Goal, textLimit)
	}
	return []string{m.paint(status, fit(head, width)), m.progress(width)}
}

// progress is a bar, if there is room for one, and the count of each status.
func (m liveModel) progress(width int) string {
	sum := m.shown.Summary
	var parts []string
	for _, status := range liveStatuses {
		parts = append(parts, fmt.Sprintf("%d %s", sum.ByStatus[string(status)], status))
	}
	counts := strings.Join(parts, "  ")
	if width < lipgloss.Width(counts) {
		counts = fmt.Sprintf("%d/%d done  %d failed", sum.Done, sum.Total, sum.ByStatus[string(hub.WaveFailed)])
	}
	room := min(width-lipgloss.Width(counts)-len("[] 100%  "), 30)
	if room < 5 {
		return fit(counts, width)
	}
	part := 1.0
	if sum.Total > 0 {
		part = float64(sum.Done) / float64(sum.Total)
	}
	full := int(part * float64(room))
	bar := m.paint(hub.WaveCompleted, strings.Repeat("█", full)) + m.paint(hub.WavePending, strings.Repeat("░", room-full))
	return fmt.Sprintf("[%s] %3d%%  %s", bar, int(part*100), counts)
}

// foot says why nothing comes, what went wrong, or how to leave.
func (m liveModel) foot(width int) string {
	switch {
	case m.cut != "":
		return m.paint(hub.WaveFailed, fit("the hub is away, and is tried again: "+safetext.Line(m.cut, textLimit), width))
	case m.warn != "":
		return m.paint(hub.WaveCancelled, fit("warning: "+safetext.Line(m.warn, textLimit), width))
	}
	return m.paint(hub.WavePending, fit("q leaves; the wave goes on", width))
}

func (m liveModel) line(l liveLine, cols columns, width int) string {
	switch {
	case l.rest != "":
		return m.paint(hub.WavePending, fit(l.rest, width))
	case l.task == nil:
		return m.head(l.head, width)
	}
	t := l.task
	cells := []string{liveMarks[t.status], pad(safetext.Line(t.token, textLimit), cols.token)}
	if cols.status > 0 {
		cells = append(cells, pad(string(t.status), cols.status))
	}
	if cols.hub > 0 {
		cells = append(cells, pad(safetext.Line(t.hub, textLimit), cols.hub), pad(attempt(t.attempts), 3))
	}
	if cols.time > 0 {
		took := ""
		if d, ok := t.elapsed(m.now); ok {
			took = brief(d)
		}
		cells = append(cells, pad(took, cols.time))
	}
	if cols.note > 0 {
		cells = append(cells, fit(safetext.Line(m.note(t), textLimit), cols.note))
	}
	return m.paint(t.status, fit(strings.TrimRight(strings.Join(cells, " "), " "), width))
}

// note is what a task waits for or how it ended, and the last milestone of one that
// runs.
func (m liveModel) note(t *liveTask) string {
	said := m.said[t.token]
	if t.status != hub.WaveRunning || said == "" {
		return t.note
	}
	if t.note == "" {
		return said
	}
	return t.note + "; " + said
}

// head is the head of a level, with how far it has come.
func (m liveModel) head(label string, width int) string {
	for _, l := range m.shown.Summary.Levels {
		if fmt.Sprintf("%d%s", l.Wave, l.Sub) == label {
			return fit(fmt.Sprintf("level %s  %s  %d/%d", safetext.Line(label, textLimit), l.Status, l.Completed, l.Total), width)
		}
	}
	return fit("level "+safetext.Line(label, textLimit), width)
}

func attempt(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("#%d", n)
}

// columns are the widths of a task's cells, 0 for none.
type columns struct{ token, status, hub, time, note int }

// columnsFor gives each cell what the lines need; in a narrow window the token and
// the mark stay last.
func columnsFor(width int, lines []liveLine) columns {
	var c columns
	for _, l := range lines {
		if l.task != nil {
			c.token = max(c.token, lipgloss.Width(safetext.Line(l.task.token, textLimit)))
			c.hub = max(c.hub, lipgloss.Width(safetext.Line(l.task.hub, textLimit)))
		}
	}
	c.token, c.hub = min(c.token, max(width/3, 8)), min(c.hub, 12)
	if width < 64 {
		c.hub = 0
	}
	if width >= 44 {
		c.time = 7
	}
	if width >= 28 {
		c.status = len(hub.WaveCompleted)
	}
	used := 2 + c.token
	for _, n := range []int{c.status, c.hub, c.time} {
		if n > 0 {
			used += 1 + n
		}
	}
	if c.hub > 0 {
		used += len(" #99")
	}
	if c.note = width - used - 1; c.note < 8 {
		c.note = 0
	}
	return c
}

// fit is one line of at most width cells.
func fit(text string, width int) string {
	if lipgloss.Width(text) <= width {
		return text
	}
	if width <= 1 {
		return strings.Repeat("…", max(width, 0))
	}
	return lipgloss.NewStyle().Inline(true).MaxWidth(width-1).Render(text) + "…"
}

// pad is one cell of exactly width cells.
func pad(text string, width int) string {
	text = fit(text, width)
	return text + strings.Repeat(" ", max(width-lipgloss.Width(text), 0))
}

func (m liveModel) paint(status hub.WaveStatus, text string) string {
	if !m.colour {
		return text
	}
	return liveColours[status].Render(text)
}

// brief is a duration in at most seven characters.
func brief(d time.Duration) string {
	switch s := int64(d / time.Second); {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	case s < 100*3600:
		return fmt.Sprintf("%dh%02dm", s/3600, s%3600/60)
	default:
		return fmt.Sprintf("%dd%02dh", s/86400, s%86400/3600)
	}
}
