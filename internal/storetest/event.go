package storetest

import (
	"encoding/json"
	"strings"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// logged appends events and returns them as they are kept.
func logged(f *fixture, es ...hub.WaveEvent) []hub.WaveEvent {
	f.Helper()
	var out []hub.WaveEvent
	f.update(func(tx store.Tx) error {
		out = nil
		for _, e := range es {
			seq, err := tx.AppendEvent(e)
			if err != nil {
				return err
			}
			e.Seq, e.At = seq, tx.Now()
			out = append(out, e)
		}
		return nil
	})
	return out
}

func read(f *fixture, filter store.EventFilter, after int64, limit int) []hub.WaveEvent {
	f.Helper()
	var out []hub.WaveEvent
	f.view(func(rx store.Rx) (err error) {
		out, err = rx.Events(filter, after, limit)
		return err
	})
	return out
}

// eventPlaces: an event of a Task gets the place that its wave gives it; one of a
// wave itself, or of a Task without one, has none.
func eventPlaces(f *fixture) {
	n := 0
	w := newWave(&n, 3)
	f.update(w.put)
	f.published()
	got := logged(f, hub.WaveEvent{Run: "r", Task: w.tasks[2].Task, Type: hub.EventMilestone, Data: json.RawMessage(`{"name":"x"}`)},
		hub.WaveEvent{Run: "r", Task: "of none", Type: hub.EventMilestone, Data: json.RawMessage(`{}`)},
		hub.WaveEvent{Run: "r", Wave: w.ID, Total: w.Total, Type: hub.EventWaveStarted})
	equal(f, []hub.Signal{{Topic: hub.TopicEvent, Key: string(w.ID)}, {Topic: hub.TopicEvent}}, f.published())
	got[0].Wave, got[0].Token, got[0].Index, got[0].Total = w.ID, w.tasks[2].Entry.Token, 2, w.Total
	got[1].Index, got[2].Index = -1, -1
	got[2].Data = json.RawMessage("{}")
	equal(f, got, read(f, store.EventFilter{}, 0, 10))
	equal(f, []hub.WaveEvent{got[0], got[2]}, read(f, store.EventFilter{Wave: w.ID}, 0, 10))
}

// eventBytes: a page ends at 8 MiB, and the rest follows.
func eventBytes(f *fixture) {
	data, err := json.Marshal(map[string]string{"text": strings.Repeat("x", 3<<20)})
	if err != nil {
		f.Fatal(err)
	}
	var all []hub.WaveEvent
	for range 3 {
		all = append(all, logged(f, hub.WaveEvent{Run: "r", Wave: "w", Index: -1, Type: hub.EventWarning, Data: data})...)
	}
	got := read(f, store.EventFilter{}, 0, 10)
	if len(got) != 2 {
		f.Fatalf("a page of %d events", len(got))
	}
	equal(f, all, append(got, read(f, store.EventFilter{}, got[1].Seq, 10)...))
}
