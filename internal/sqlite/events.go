package sqlite

import (
	"cmp"
	"encoding/json"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

const (
	eventCols = "at, run, wave, token, task, pos, total, type, data"

	eventsOfWave = "wave = ? AND wave <> '' AND "
	eventsOfRun  = "run = ? AND "

	eventsQuery = `SELECT seq, ` + eventCols + ` FROM events WHERE `
	eventRange  = `SELECT events_swept, COALESCE((SELECT max(seq) FROM events), 0) FROM meta WHERE id = 1`
	eventPlace  = `SELECT w.id, x.token, x.pos, w.total FROM wave_tasks x JOIN waves w ON w.uid = x.uid WHERE x.task = ?`
	oldEvents   = `SELECT e.seq FROM events e LEFT JOIN waves w ON w.id = e.wave
		WHERE e.at < ? AND e.seq < (SELECT max(seq) FROM events) AND (w.id IS NULL OR w.status NOT IN ('pending', 'running')) ORDER BY e.at LIMIT ?`
	sweptUpTo   = `SELECT COALESCE(max(seq), 0) FROM (` + oldEvents + `)`
	noteSwept   = `UPDATE meta SET events_swept = ? WHERE id = 1 AND events_swept < ?`
	sweepEvents = `DELETE FROM events WHERE seq IN (` + oldEvents + `)`
)

var insertEvent = insertInto("events", eventCols) + ` RETURNING seq`

func scanEvent(s scanner, e *hub.WaveEvent) error {
	return s.Scan(&e.Seq, &e.At, &e.Run, &e.Wave, &e.Token, &e.Task, &e.Index, &e.Total, &e.Type, (*[]byte)(&e.Data))
}

// Events implements store.EventReader.
func (q querier) Events(f store.EventFilter, after int64, limit int) ([]hub.WaveEvent, error) {
	query, args := eventsPage(f)
	es, err := fitting(q, scanEvent, func(e hub.WaveEvent) int { return len(e.Data) }, pageBytes, query, append(args, after, limit)...)
	return es, wrap(err, "reading events")
}

// eventsPage is the query of events, with its arguments up to the page's.
func eventsPage(f store.EventFilter) (query string, args []any) {
	where := ""
	if f.Wave != "" {
		where, args = where+eventsOfWave, append(args, f.Wave)
	}
	if f.Run != "" {
		where, args = where+eventsOfRun, append(args, f.Run)
	}
	return eventsQuery + where + `seq > ? ORDER BY seq LIMIT ?`, args
}

// EventRange implements store.EventReader.
func (q querier) EventRange() (gone, last int64, err error) {
	_, err = must(q, func(s scanner, _ *struct{}) error { return s.Scan(&gone, &last) }, nil, eventRange)
	return gone, last, wrap(err, "reading the range of events")
}

// AppendEvent implements store.Events.
func (tx *Tx) AppendEvent(e hub.WaveEvent) (seq int64, err error) {
	if e.Wave == "" && e.Task != "" {
		if e, err = tx.placed(e); err != nil {
			return 0, err
		}
	}
	if e.Wave == "" || e.Token == "" {
		e.Index = -1
	}
	data := cmp.Or(string(e.Data), "{}")
	if !json.Valid([]byte(data)) {
		return 0, hub.Errorf(hub.CodeInternal, "the data of an event %s is no JSON", e.Type)
	}
	_, err = tx.returning([]any{&seq}, insertEvent, tx.now, e.Run, e.Wave, e.Token, e.Task, e.Index, e.Total, e.Type, data)
	tx.Signal(hub.Signal{Topic: hub.TopicEvent, Key: string(e.Wave)})
	return seq, wrap(err, "appending an event %s", e.Type)
}

// placed is an event of a Task with the place that the Task has in a wave.
func (tx *Tx) placed(e hub.WaveEvent) (hub.WaveEvent, error) {
	_, _, err := one(tx.querier, func(s scanner, _ *struct{}) error { return s.Scan(&e.Wave, &e.Token, &e.Index, &e.Total) }, eventPlace, e.Task)
	return e, wrap(err, "finding the wave of %s", e.Task)
}

// SweepEvents implements store.Events.
func (tx *Tx) SweepEvents(before hub.Micros, limit int) (int, error) {
	gone, _, err := one(tx.querier, func(s scanner, seq *int64) error { return s.Scan(seq) }, sweptUpTo, before, limit)
	if err != nil || gone == 0 {
		return 0, wrap(err, "finding old events")
	}
	n, err := tx.exec(sweepEvents, before, limit)
	if err == nil {
		_, err = tx.exec(noteSwept, gone, gone)
	}
	return int(n), wrap(err, "dropping events")
}
