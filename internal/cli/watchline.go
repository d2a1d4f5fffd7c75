package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/internal/safetext"
)

// eventWidth bounds what a line says of an event's data, in characters.
const eventWidth = 200

// plainEvent is an event in one line for people: when, where, what.
func plainEvent(e client.Event) string {
	where := or(e.TaskId, or(e.WaveId, or(e.HubTaskId, e.RunId)))
	if e.TaskId != nil && e.WaveId != nil {
		where = *e.WaveId + " " + *e.TaskId
	}
	line := fmt.Sprintf("%6d  %s  %-24s  %-16s", e.Seq, clock(e.At), safetext.Line(where, 60), safetext.Line(e.Type, 40))
	if said := dataLine(e.Data); said != "" {
		line += "  " + said
	}
	return strings.TrimRight(line, " ")
}

// clock is the local time of day of an instant, which is shown as it is if it is
// none.
func clock(at string) string {
	t, err := time.Parse(time.RFC3339Nano, at)
	if err != nil {
		return safetext.Line(at, 30)
	}
	return t.Local().Format(time.TimeOnly)
}

// dataLine is an event's data as name=value, by name.
func dataLine(raw json.RawMessage) string {
	var data map[string]json.RawMessage
	if json.Unmarshal(raw, &data) != nil {
		return safetext.Line(string(raw), eventWidth)
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(data)) {
		if said := scalar(data[name]); said != "" {
			parts = append(parts, name+"="+said)
		}
	}
	return safetext.Line(strings.Join(parts, " "), eventWidth)
}

// scalar is a JSON value for people: a string as it is, null as nothing.
func scalar(raw json.RawMessage) string {
	var text *string
	if json.Unmarshal(raw, &text) != nil {
		return string(raw)
	}
	return or(text, "")
}
