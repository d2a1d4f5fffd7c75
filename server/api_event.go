package server

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
	"github.com/wavehub/wavehub/internal/wave"
	"github.com/wavehub/wavehub/openapi/api"
)

// heartbeatInterval is how often a stream of events says that it lives.
const heartbeatInterval = 15 * time.Second

const lastEventID = "Last-Event-ID"

// StreamEvents sends the log of events as server-sent events. A stream counts as a
// wait. One that cannot begin is refused with its status; later the stream just
// ends, and whoever follows goes on from the last id.
func (s apiHandlers) StreamEvents(w http.ResponseWriter, r *http.Request, params api.StreamEventsParams) {
	t, err := tailOf(r, params)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	t.Beat = s.heartbeat
	leave, ok := s.mayWait(w, r)
	if !ok {
		return
	}
	defer leave()
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer s.ending.whenOver(func() { cancel(errDraining) })()
	out := &eventStream{stream{w: w}}
	err = s.cfg.Waves.Follow(ctx, callOf(r).principal, t, out.take)
	if context.Cause(ctx) == errDraining && errors.Is(err, context.Canceled) {
		err = errDraining
	}
	if err != nil && !out.begun && !errors.Is(err, errLeft) {
		s.fail(w, r, err)
	}
}

// tailOf is what a request asks to follow: exactly one of wave, run and all.
func tailOf(r *http.Request, params api.StreamEventsParams) (wave.Tail, error) {
	given := r.URL.Query()
	filters := 0
	for _, name := range []string{"wave", "run"} {
		if !given.Has(name) {
			continue
		}
		if given.Get(name) == "" {
			return wave.Tail{}, hub.Invalid(name, "is empty: give it a value, or leave it out")
		}
		filters++
	}
	if params.All {
		filters++
	}
	if filters != 1 {
		return wave.Tail{}, hub.Invalid(oddFilter(given), "exactly one of wave, run and all=true is given")
	}
	after, err := tailCursor(r, params)
	return wave.Tail{
		Filter: store.EventFilter{Wave: hub.WaveID(params.Wave), Run: hub.RunID(params.Run)},
		After:  after, Once: params.Follow != nil && !*params.Follow,
	}, err
}

// oddFilter names the parameter that one too many, or none, is about.
func oddFilter(given url.Values) string {
	for _, name := range []string{"all", "run"} {
		if given.Has(name) {
			return name
		}
	}
	return "wave"
}

// tailCursor is the sequence to begin behind, nil for none. Last-Event-ID is what a
// stream that was cut had come to; it goes before the cursor that it began with.
func tailCursor(r *http.Request, params api.StreamEventsParams) (*int64, error) {
	if !slices.ContainsFunc(r.Header.Values(lastEventID), func(v string) bool { return v != "" }) {
		return params.Cursor, nil
	}
	seq, err := strconv.ParseUint(params.LastEventID, 10, 63)
	if err != nil {
		e := hub.Errorf(hub.CodeCursorInvalid, "%s: %q is no seq of an event", lastEventID, params.LastEventID)
		e.Field = lastEventID
		return nil, e
	}
	return new(int64(seq)), nil
}

// eventStream is the answer to one follower.
type eventStream struct{ stream }

type heartbeat struct {
	Seq int64  `json:"seq"`
	At  string `json:"at"`
}

func (t *eventStream) take(es wave.Events) error {
	t.begin()
	if len(es.List) == 0 {
		return t.flush(t.event(es.Seq, "heartbeat", heartbeat{es.Seq, at(es.At)}))
	}
	for _, e := range es.List {
		if err := t.event(e.Seq, e.Type, waveEvent(e)); err != nil {
			return err
		}
	}
	return t.flush(nil)
}

// event writes one event, within a time of its own. Its data has one line.
func (t *eventStream) event(seq int64, kind string, data any) error {
	raw, err := encode(data)
	if err != nil {
		return err
	}
	head := "id: " + strconv.FormatInt(seq, 10) + "\nevent: " + kind + "\ndata: "
	return t.write(append(append([]byte(head), raw...), '\n')) // raw ends its line
}

func waveEvent(e hub.WaveEvent) api.WaveEvent {
	out := api.WaveEvent{
		Seq: e.Seq, At: at(e.At), Type: e.Type, RunId: string(e.Run),
		WaveId: null(e.Wave), TaskId: null(e.Token), HubTaskId: null(e.Task), Data: e.Data,
	}
	if e.Wave != "" {
		out.WaveTotal = new(e.Total)
	}
	if e.Index >= 0 {
		out.WaveIndex = new(e.Index)
	}
	return out
}
