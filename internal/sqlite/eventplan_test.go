package sqlite

import (
	"context"
	"strings"
	"testing"
)

// Invariant 16, of the log of events: each commit of one has every follower read.
func TestPlansOfEvents(t *testing.T) {
	s := openTest(t, Config{}, builtin)
	c, err := s.readers.take(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { s.readers.free <- c }()
	behind := `seq > ? ORDER BY seq LIMIT ?`
	for query, index := range map[string]string{
		eventsQuery + behind:                "PRIMARY KEY",
		eventsQuery + eventsOfWave + behind: "events_wave",
		eventsQuery + eventsOfRun + behind:  "events_run",
		eventPlace:                          "wave_tasks",
		oldEvents:                           "events_at",
	} {
		plan := explain(t, c.sc, query)
		if strings.Contains(plan, "SCAN") || strings.Contains(plan, "TEMP B-TREE") || !strings.Contains(plan, index) {
			t.Errorf("%s, want a search by %s:\n%s", query, index, plan)
		}
	}
}
