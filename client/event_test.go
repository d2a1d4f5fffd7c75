package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// eventHub serves a log of n events, and cuts each stream as cut says: behind so
// many events (below 0: never), in the middle of the next one if half.
type eventHub struct {
	n    int
	cut  func(stream int) (behind int, half bool)
	head func(stream int, w http.ResponseWriter) bool // answers instead, true

	mu      sync.Mutex
	queries []string // guarded by mu
}

func (h *eventHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.queries = append(h.queries, r.URL.RawQuery)
	stream := len(h.queries)
	h.mu.Unlock()
	if r.Header.Values(lastEventID) != nil {
		panic("an empty header is sent")
	}
	if h.head != nil && h.head(stream, w) {
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	behind, half := h.cut(stream)
	at, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
	for seq := at + 1; seq <= h.n; seq++ {
		text := eventText(seq)
		if behind == 0 && half {
			text = text[:len(text)-5]
		}
		if behind == 0 && !half {
			break
		}
		_, _ = io.WriteString(w, text)
		if behind == 0 {
			break
		}
		behind--
	}
	_ = http.NewResponseController(w).Flush()
	switch {
	case behind == 0:
		panic(http.ErrAbortHandler)
	case r.URL.Query().Get("follow") == "false":
		_, _ = io.WriteString(w, beatText(h.n))
	default:
		_, _ = io.WriteString(w, beatText(h.n))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

func (h *eventHub) asked() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.queries)
}

func eventText(seq int) string {
	return fmt.Sprintf("id: %d\nevent: warning\ndata: {\"seq\":%d,\"at\":\"t\",\"type\":\"warning\",\"run_id\":\"r\",\"wave_id\":\"w1\",\"data\":{}}\n\n", seq, seq)
}

func beatText(seq int) string {
	return fmt.Sprintf("id: %d\nevent: heartbeat\ndata: {\"seq\":%d,\"at\":\"t\"}\n\n", seq, seq)
}

func never(int) (int, bool) { return -1, false }

// collect follows and returns the sequences that were handed over.
func collect(ctx context.Context, c *Client, f EventFilter, o EventOptions) (seqs []int64, err error) {
	err = c.Events(ctx, f, o, func(e Event) error {
		if want := strings.TrimSuffix(strings.SplitN(eventText(int(e.Seq)), "data: ", 2)[1], "\n\n"); string(e.Raw) != want || *e.WaveId != "w1" {
			return fmt.Errorf("event %s is not %s", e.Raw, want)
		}
		seqs = append(seqs, e.Seq)
		return nil
	})
	return seqs, err
}

func upTo(n int64) (seqs []int64) {
	for i := int64(1); i <= n; i++ {
		seqs = append(seqs, i)
	}
	return seqs
}

// Every event comes once, wherever the connection is cut, and each one goes on from
// what has come.
func TestEventsSurviveCuts(t *testing.T) {
	h := &eventHub{n: 23, cut: func(stream int) (int, bool) { return stream % 4, stream%2 == 0 }}
	c, _ := fake(t, h.ServeHTTP)
	cuts := 0
	got, err := collect(t.Context(), c, EventFilter{Wave: "w1"}, EventOptions{Once: true, Cut: func(cause error) {
		if cuts++; cause == nil {
			t.Error("a cut without its cause")
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.n == 23 && cuts == 5 {
			h.cut = never
		}
	}})
	if err != nil || !slices.Equal(got, upTo(23)) || cuts != 5 {
		t.Errorf("after %d cuts: %v, %v", cuts, got, err)
	}
	qs := h.asked()
	if qs[0] != "wave=w1&follow=false" || qs[1] != "wave=w1&cursor=1&follow=false" {
		t.Errorf("asked were %q", qs)
	}
}

func TestEventsBeginBehindTheCursor(t *testing.T) {
	h := &eventHub{n: 5, cut: never}
	c, _ := fake(t, h.ServeHTTP)
	zero, three := int64(0), int64(3)
	for _, x := range []struct {
		f     EventFilter
		after *int64
		want  int
		query string
	}{
		{EventFilter{All: true}, nil, 5, "all=true&follow=false"},
		{EventFilter{Run: "r"}, &zero, 5, "run=r&cursor=0&follow=false"},
		{EventFilter{All: true}, &three, 2, "all=true&cursor=3&follow=false"},
	} {
		got, err := collect(t.Context(), c, x.f, EventOptions{After: x.after, Once: true})
		if qs := h.asked(); err != nil || len(got) != x.want || qs[len(qs)-1] != x.query {
			t.Errorf("%+v: %v, %v, asked %q", x, got, err, qs)
		}
	}
}

// A heartbeat moves the cursor on, and its error, as that of take, is returned.
func TestEventsEndWithTheCaller(t *testing.T) {
	h := &eventHub{n: 3, cut: never}
	c, _ := fake(t, h.ServeHTTP)
	enough := errors.New("enough")
	var beat int64
	got, err := collect(t.Context(), c, EventFilter{All: true}, EventOptions{Beat: func(seq int64) error { beat = seq; return enough }})
	if err != enough || beat != 3 || len(got) != 3 {
		t.Errorf("at %d: %v, %v", beat, got, err)
	}
	if err := c.Events(t.Context(), EventFilter{All: true}, EventOptions{}, func(Event) error { return enough }); err != enough {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = collect(ctx, c, EventFilter{All: true}, EventOptions{Beat: func(int64) error { cancel(); return nil }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// A hub that repeats what it sent already hands nothing over twice.
func TestEventsAreNeverHandedOverTwice(t *testing.T) {
	c, _ := fake(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, eventText(1)+eventText(2)+eventText(1)+eventText(2)+eventText(3)+beatText(3))
	})
	if got, err := collect(t.Context(), c, EventFilter{All: true}, EventOptions{Once: true}); err != nil || !slices.Equal(got, upTo(3)) {
		t.Errorf("%v, %v", got, err)
	}
}

// What cannot get better ends the following; what can, does not, once it has begun.
func TestEventsTellRefusalsFromCuts(t *testing.T) {
	for _, x := range []struct {
		status int
		code   string
		first  bool // the hub refuses the first stream
		ends   bool
	}{
		{404, "wave_not_found", true, true}, {410, "cursor_expired", false, true}, {401, "invalid_token", false, true},
		{503, "hub_draining", true, true}, {503, "hub_draining", false, false}, {429, "rate_limited", false, false}, {500, "internal", false, false},
	} {
		h := &eventHub{n: 4, cut: func(stream int) (int, bool) {
			if stream == 1 {
				return 2, false
			}
			return -1, false
		}}
		h.head = func(stream int, w http.ResponseWriter) bool {
			refuses := stream == 2 || stream == 1 && x.first
			if refuses {
				answer(w, x.status, `{"code":"`+x.code+`","title":"t","status":`+strconv.Itoa(x.status)+`,"retry":"never"}`)
			}
			return refuses
		}
		c, _ := fake(t, h.ServeHTTP)
		got, err := collect(t.Context(), c, EventFilter{All: true}, EventOptions{Once: true})
		if !x.ends {
			if err != nil || !slices.Equal(got, upTo(4)) {
				t.Errorf("%+v: %v, %v", x, got, err)
			}
			continue
		}
		asError(t, err, Code(x.code), Errorf(Code(x.code), "").ExitCode())
		if want := 2; x.first != (len(got) == 0) || !x.first && len(got) != want {
			t.Errorf("%+v: %v", x, got)
		}
	}
}

func TestEventsNeedAHub(t *testing.T) {
	c, srv := fake(t, func(http.ResponseWriter, *http.Request) {})
	srv.Close()
	_, err := collect(t.Context(), c, EventFilter{All: true}, EventOptions{})
	asError(t, err, CodeHubUnreachable, 6)
}

// A stream without a sign of life is given up and made again.
func TestEventsGiveUpSilence(t *testing.T) {
	h := &eventHub{n: 2, cut: never}
	c, _ := fake(t, func(w http.ResponseWriter, r *http.Request) {
		if len(h.asked()) == 0 {
			h.mu.Lock()
			h.queries = append(h.queries, "silent")
			h.mu.Unlock()
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, eventText(1))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		h.ServeHTTP(w, r)
	})
	c.eventSilence = 50 * time.Millisecond
	var cause error
	got, err := collect(t.Context(), c, EventFilter{All: true}, EventOptions{Once: true, Cut: func(e error) { cause = e }})
	if err != nil || !slices.Equal(got, upTo(2)) || cause == nil || !strings.Contains(cause.Error(), "said nothing") {
		t.Errorf("%v, %v; cut by %v", got, err, cause)
	}
}

// An end without a last heartbeat is no end of the log: the hub was stopping.
func TestEventsOnceNeedTheLastHeartbeat(t *testing.T) {
	h := &eventHub{n: 3, cut: never}
	h.head = func(stream int, w http.ResponseWriter) bool {
		if stream == 1 {
			w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
			_, _ = io.WriteString(w, eventText(1))
		}
		return stream == 1
	}
	c, _ := fake(t, h.ServeHTTP)
	if got, err := collect(t.Context(), c, EventFilter{All: true}, EventOptions{Once: true}); err != nil || !slices.Equal(got, upTo(3)) {
		t.Errorf("%v, %v", got, err)
	}
}

// What the hub would send again the same way is an error, not a cut.
func TestEventsRefuseWhatIsNone(t *testing.T) {
	for _, text := range []string{"data: {\n\n", "event: heartbeat\ndata: x\n\n", "data: " + strings.Repeat("x", maxEvent) + "\n\n"} {
		c, _ := fake(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, text)
		})
		if _, err := collect(t.Context(), c, EventFilter{All: true}, EventOptions{Cut: func(err error) { t.Errorf("cut by %v", err) }}); err == nil {
			t.Errorf("%.40q is taken", text)
		}
	}
	c, _ := fake(t, func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, `{}`) })
	_, err := collect(t.Context(), c, EventFilter{All: true}, EventOptions{})
	asError(t, err, CodeInternal, 1)
}
