package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/keystore"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/openapi/api"
)

// wave stores an empty wave of the Run.
func (w *world) wave(run, id string, status hub.WaveStatus) {
	w.t.Helper()
	w.update(func(tx store.Tx) error {
		return tx.PutWave(hub.Wave{ID: hub.WaveID(id), UID: hub.WaveUID("wave_u" + id), Run: hub.RunID(run), Status: status})
	})
}

// events appends n events of the wave, whose data counts them, one transaction
// each, and returns the last sequence.
func (w *world) events(run, id string, n int) (last int64) {
	w.t.Helper()
	for i := range n {
		w.update(func(tx store.Tx) (err error) {
			data := fmt.Appendf(nil, `{"n":%d,"text":"a\nb"}`, i)
			last, err = tx.AppendEvent(hub.WaveEvent{Run: hub.RunID(run), Wave: hub.WaveID(id), Type: hub.EventWarning, Total: 7, Data: data})
			return err
		})
	}
	return last
}

// sse is one event as it was sent.
type sse struct{ id, kind, data string }

// tail is an open stream of events.
type tail struct {
	t      *testing.T
	cancel context.CancelFunc
	resp   *http.Response
	lines  *bufio.Reader
}

// tail opens the stream. head may be nil.
func (w *world) tail(base, query string, head map[string]string) *tail {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	resp, err := w.call(ctx, base, request{method: "GET", path: "/v1/events?" + query, token: w.reader, header: head})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { cancel(); _ = resp.Body.Close() })
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		w.t.Fatalf("%s: %d %s", query, resp.StatusCode, resp.Header)
	}
	return &tail{w.t, cancel, resp, bufio.NewReader(resp.Body)}
}

// next reads one event; false at the end.
func (s *tail) next() (e sse, ok bool) {
	s.t.Helper()
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			return e, false
		}
		switch name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); name {
		case "id":
			e.id = value
		case "event":
			e.kind = value
		case "data":
			e.data = value
		case "":
			return e, true
		default:
			s.t.Fatalf("the stream says %q", line)
		}
	}
}

// until reads the events of the log up to a heartbeat of the sequence, or a later one.
func (s *tail) until(seq int64) (seqs []int64) {
	s.t.Helper()
	for {
		e, ok := s.next()
		if !ok {
			s.t.Fatalf("the stream ended behind %v", seqs)
		}
		id, err := strconv.ParseInt(e.id, 10, 64)
		if err != nil {
			s.t.Fatalf("%+v: %v", e, err)
		}
		if e.kind != "heartbeat" {
			seqs = append(seqs, id)
			continue
		}
		var beat heartbeat
		if err := json.Unmarshal([]byte(e.data), &beat); err != nil || beat.Seq != id || beat.At == "" {
			s.t.Fatalf("a heartbeat is %+v, %v", e, err)
		}
		if id >= seq {
			return seqs
		}
	}
}

func TestEventsAreTyped(t *testing.T) {
	w := newWorld(t)
	run, _ := w.bound()
	w.wave(run, "w1", hub.WaveRunning)
	w.events(run, "w1", 1)
	task := hub.NewTaskID()
	w.update(func(tx store.Tx) error {
		_, err := tx.AppendEvent(hub.WaveEvent{Run: hub.RunID(run), Wave: "w1", Token: "t1", Task: task, Index: 0, Total: 7, Type: hub.EventTaskFailed})
		return err
	})
	w.update(func(tx store.Tx) error {
		_, err := tx.AppendEvent(hub.WaveEvent{Run: hub.RunID(run), Task: task, Type: hub.EventMilestone})
		return err
	})
	got := w.must(200, request{method: "GET", path: "/v1/events?all=true&follow=false", token: w.operator})
	parts := strings.Split(strings.TrimSuffix(got.raw, "\n\n"), "\n\n")
	if len(parts) != 4 {
		t.Fatalf("%q", got.raw)
	}
	var es [3]api.WaveEvent
	for i, kind := range []string{hub.EventWarning, hub.EventTaskFailed, hub.EventMilestone} {
		data, ok := strings.CutPrefix(parts[i], fmt.Sprintf("id: %d\nevent: %s\ndata: ", i+1, kind))
		if err := json.Unmarshal([]byte(data), &es[i]); !ok || err != nil || es[i].Type != kind || es[i].Seq != int64(i+1) || es[i].RunId != run {
			t.Errorf("event %d is %q: %v", i, parts[i], err)
		}
	}
	if e := es[0]; *e.WaveId != "w1" || e.TaskId != nil || e.WaveIndex != nil || *e.WaveTotal != 7 || string(e.Data) != `{"n":0,"text":"a\nb"}` {
		t.Errorf("a wave's own is %+v", e)
	}
	if e := es[1]; *e.TaskId != "t1" || *e.HubTaskId != string(task) || *e.WaveIndex != 0 || *e.WaveTotal != 7 || string(e.Data) != `{}` {
		t.Errorf("a task's is %+v", e)
	}
	if e := es[2]; e.WaveId != nil || e.TaskId != nil || e.WaveIndex != nil || e.WaveTotal != nil || *e.HubTaskId != string(task) {
		t.Errorf("one of no wave is %+v", e)
	}
	if !strings.HasPrefix(parts[3], "id: 3\nevent: heartbeat\ndata: {\"seq\":3,\"at\":\"") {
		t.Errorf("it ends with %q", parts[3])
	}
}

// Filters are exact, and what is appended while a stream is open comes once, in
// order, without a gap.
func TestEventsAreFollowed(t *testing.T) {
	w := newWorld(t)
	run, _ := w.bound()
	for _, id := range []string{"w1", "w10", "w"} {
		w.wave(run, id, hub.WaveRunning)
	}
	other := w.post(201, "/v1/runs", `{"objective":"o","bind":"none"}`).text("run", "run_id")
	w.server.heartbeat = time.Millisecond
	srv := w.live(time.Hour)
	w.events(run, "w10", 2)
	w.events(run, "w1", 2)
	wave, all, ofRun := w.tail(srv.URL, "wave=w1", nil), w.tail(srv.URL, "all=true", nil), w.tail(srv.URL, "run="+run, nil)
	first := wave.until(4)
	if !slices.Equal(first, []int64{3, 4}) {
		t.Errorf("before it was opened: %v", first)
	}
	w.events(run, "w10", 3)
	w.events(run, "w1", 1)
	w.events(other, "", 1)
	last := w.events(run, "w1", 300)
	if got := wave.until(last); len(got) != 301 || got[0] != 8 || got[1] != 10 || got[300] != last {
		t.Errorf("of w1: %v", got)
	}
	if got := all.until(last); len(got) != int(last) || !slices.IsSorted(got) || got[0] != 1 {
		t.Errorf("of all: %v", got)
	}
	if got := ofRun.until(last); len(got) != int(last)-1 || slices.Contains(got, 9) {
		t.Errorf("of the Run: %v", got)
	}
}

// A heartbeat tells how far the log was read, though nothing of it was selected.
func TestEventsHeartbeatMovesOn(t *testing.T) {
	w := newWorld(t)
	run, _ := w.bound()
	w.wave(run, "w1", hub.WaveRunning)
	w.server.heartbeat = time.Millisecond
	s := w.tail(w.live(time.Hour).URL, "wave=w1", nil)
	last := w.events(run, "w2", 3)
	if got := s.until(last); len(got) != 0 {
		t.Errorf("w1 gets %v", got)
	}
}

// A reader that is cut goes on from its last id: every event comes once.
func TestEventsResume(t *testing.T) {
	w := newWorld(t)
	run, _ := w.bound()
	w.wave(run, "w1", hub.WaveRunning)
	last := w.events(run, "w1", 40)
	w.server.heartbeat = time.Millisecond
	srv := w.live(time.Hour)
	var seen []int64
	for at := int64(0); at < last; {
		s := w.tail(srv.URL, "wave=w1&cursor=39", map[string]string{lastEventID: strconv.FormatInt(at, 10)})
		for range 7 {
			e, ok := s.next()
			if !ok || e.kind == "heartbeat" {
				break
			}
			at++
			seen = append(seen, at)
			if e.id != strconv.FormatInt(at, 10) {
				t.Fatalf("behind %d came %+v", at-1, e)
			}
		}
		s.cancel()
	}
	if len(seen) != 40 {
		t.Errorf("seen are %v", seen)
	}
	if got := w.tail(srv.URL, "wave=w1&cursor=39", nil).until(last); !slices.Equal(got, []int64{40}) {
		t.Errorf("behind a cursor: %v", got)
	}
	eventually(t, func() bool { return w.server.meter.waits.Load() == 1 })
}

func TestEventsRefuse(t *testing.T) {
	w := newWorld(t)
	run, _ := w.bound()
	w.wave(run, "w1", hub.WaveRunning)
	w.wave(run, "w2", hub.WaveCompleted)
	last := w.events(run, "w1", 3)
	for query, want := range map[string]string{
		"":                                "invalid_argument wave",
		"follow=false":                    "invalid_argument wave",
		"all=false":                       "invalid_argument all",
		"wave=w1&all=true":                "invalid_argument all",
		"wave=w1&run=" + run:              "invalid_argument run",
		"wave=&all=true":                  "invalid_argument wave",
		"run=":                            "invalid_argument run",
		"wave=w":                          "wave_not_found ",
		"wave=w1%25":                      "wave_not_found ",
		"run=" + string(hub.NewRunID()):   "run_not_found ",
		"all=true&cursor=4":               "cursor_invalid cursor",
		"wave=w1&cursor=-1":               "invalid_argument cursor",
		"wave=w1&cursor=9999999999999999": "cursor_invalid cursor",
	} {
		got := w.do(request{method: "GET", path: "/v1/events?" + query, token: w.operator})
		if got.code()+" "+got.text("field") != want {
			t.Errorf("%s: %d %s, want %s", query, got.status, got.raw, want)
		}
	}
	for _, id := range []string{"x", "-1", "1.5", "99999999999999999999", "0x1", "+1"} {
		got := w.do(request{method: "GET", path: "/v1/events?all=true", token: w.operator, header: map[string]string{lastEventID: id}})
		if got.code() != string(hub.CodeCursorInvalid) {
			t.Errorf("%s %q: %d %s", lastEventID, id, got.status, got.raw)
		}
	}
	if got := w.do(request{method: "GET", path: "/v1/events?all=true", token: w.attached}); got.code() != string(hub.CodeOutOfScope) {
		t.Errorf("an attached worker: %s", got.raw)
	}
	if got := w.get(200, fmt.Sprintf("/v1/events?all=true&follow=false&cursor=%d", last)); strings.Count(got.raw, "data: ") != 1 {
		t.Errorf("behind the end: %q", got.raw)
	}
}

// A cursor from before what was dropped is refused, with the one to go on from; a
// wave that has not ended has lost nothing.
func TestEventsExpire(t *testing.T) {
	w := newWorld(t)
	run, _ := w.bound()
	w.wave(run, "on", hub.WaveRunning)
	w.wave(run, "over", hub.WaveFailed)
	w.events(run, "on", 1)
	w.events(run, "over", 3)
	last := w.events(run, "on", 1)
	w.update(func(tx store.Tx) error { _, err := tx.SweepEvents(tx.Now()+1, 2); return err })
	for query, want := range map[string]string{
		"all=true&cursor=0": "expired", "all=true&cursor=2": "expired", "wave=over&cursor=0": "expired", "run=" + run + "&cursor=1": "expired",
		"all=true&cursor=3": "4 5", "wave=over&cursor=3": "4", "wave=over": "4", "all=true": "1 4 5", "wave=on&cursor=0": "1 5", "wave=on&cursor=1": "5",
	} {
		got := w.do(request{method: "GET", path: "/v1/events?follow=false&" + query, token: w.operator})
		if want == "expired" {
			if got.status != 410 || got.code() != string(hub.CodeCursorExpired) || !strings.Contains(got.text("hint"), fmt.Sprintf("from the cursor %d:", last)) {
				t.Errorf("%s: %d %s", query, got.status, got.raw)
			}
			continue
		}
		var ids []string
		for part := range strings.SplitSeq(got.raw, "\n\n") {
			if id, rest, _ := strings.Cut(strings.TrimPrefix(part, "id: "), "\n"); rest != "" && !strings.Contains(rest, "heartbeat") {
				ids = append(ids, id)
			}
		}
		if got.status != 200 || strings.Join(ids, " ") != want {
			t.Errorf("%s: %v, want %s: %s", query, ids, want, got.raw)
		}
	}
}

// A stream ends with its credential, with the hub and with its reader, and is a wait
// until then.
func TestEventsEnd(t *testing.T) {
	w := newWorld(t)
	run, _ := w.bound()
	w.wave(run, "w1", hub.WaveRunning)
	srv := w.live(time.Hour)
	s := w.tail(srv.URL, "wave=w1", nil)
	s.until(0)
	w.update(func(tx store.Tx) error { return tx.DropCredential(keystore.TokenSum(w.reader)) })
	w.events(run, "w1", 1)
	if e, ok := s.next(); ok {
		t.Errorf("without its credential it says %+v", e)
	}
	w.credential(store.Credential{Sum: keystore.TokenSum(w.reader), Kind: store.CredReader})
	s = w.tail(srv.URL, "wave=w1", nil)
	s.until(1)
	eventually(t, func() bool { return w.server.meter.waits.Load() == 1 })
	s.cancel()
	eventually(t, func() bool { return w.server.meter.waits.Load() == 0 })
	s = w.tail(srv.URL, "wave=w1", nil)
	s.until(1)
	w.server.Drain()
	if e, ok := s.next(); ok {
		t.Errorf("of a hub that stops it says %+v", e)
	}
	if got := w.do(request{method: "GET", path: "/v1/events?all=true", token: w.operator}); got.code() != string(hub.CodeHubDraining) {
		t.Errorf("a hub that stops: %s", got.raw)
	}
}

func TestEventsCountAsWaits(t *testing.T) {
	w := newWorld(t)
	w.server.meter.waits.Store(maxWaits)
	if got := w.do(request{method: "GET", path: "/v1/events?all=true", token: w.operator}); got.code() != string(hub.CodeRateLimited) || got.header.Get("Retry-After") == "" {
		t.Errorf("one wait too many: %d %s", got.status, got.raw)
	}
}

// stuck is a reader that has left.
type stuck struct{ http.ResponseWriter }

func (stuck) Header() http.Header       { return http.Header{} }
func (stuck) WriteHeader(int)           {}
func (stuck) Write([]byte) (int, error) { return 0, errors.New("deadline") }

func TestEventsEndWithASlowReader(t *testing.T) {
	w := newWorld(t)
	run, _ := w.bound()
	w.wave(run, "w1", hub.WaveRunning)
	w.events(run, "w1", 3)
	w.server.API().ServeHTTP(stuck{}, request{method: "GET", path: "/v1/events?all=true", token: w.operator}.http())
	if n := w.server.meter.waits.Load(); n != 0 {
		t.Errorf("%d wait", n)
	}
}
