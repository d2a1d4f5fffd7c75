package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/wavehub/wavehub/client"
)

// eventLog is a fake hub's log of events and its one wave, w1. A read of the wave
// finds it with the status of that number.
type eventLog struct {
	mu       sync.Mutex
	types    []string // guarded by mu
	statuses []string // guarded by mu; the last one stays
	reads    int      // guarded by mu
	grown    chan struct{}
}

func serveLog(h *fakeHub, types, statuses []string) *eventLog {
	l := &eventLog{types: types, statuses: statuses, grown: make(chan struct{})}
	h.handle("GET /v1/events", l.stream)
	h.handle("GET /v1/waves/w1", func(w http.ResponseWriter, _ *http.Request) {
		l.mu.Lock()
		defer l.mu.Unlock()
		status := l.statuses[min(l.reads, len(l.statuses)-1)]
		l.reads++
		if code, err := strconv.Atoi(status); err == nil {
			problem(w, code, "internal")
			return
		}
		reply(w, 200, "application/json", waveDoc(status))
	})
	return l
}

func waveDoc(status string) string {
	return `{"wave":{"wave_id":"w1","status":"` + status + `","total":1},"tasks":[{"task_id":"t1","status":"` + status + `","level":1}],` +
		`"summary":{"total":1,"by_status":{"` + status + `":1},"done":0,"levels":[]},"residuals":[]}`
}

func (l *eventLog) add(types ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.types = append(l.types, types...)
	close(l.grown)
	l.grown = make(chan struct{})
}

func (l *eventLog) behind(at int) ([]string, chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.types[min(at, len(l.types)):], l.grown
}

func (l *eventLog) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	at, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
	for {
		types, grown := l.behind(at)
		for _, kind := range types {
			at++
			_, _ = fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", at, kind, eventDoc(at, kind))
		}
		_, _ = fmt.Fprintf(w, "id: %d\nevent: heartbeat\ndata: {\"seq\":%d}\n\n", at, at)
		_ = http.NewResponseController(w).Flush()
		if r.URL.Query().Get("follow") == "false" {
			return
		}
		select {
		case <-grown:
		case <-r.Context().Done():
			return
		}
	}
}

func eventDoc(seq int, kind string) string {
	return fmt.Sprintf(`{"seq":%d,"at":"2030-01-01T00:00:00.000000Z","type":%q,"run_id":"run_1","wave_id":"w1","data":{"n":%d}}`, seq, kind, seq)
}

// printed are the lines that a watcher of the log prints.
func printed(from int, types ...string) string {
	var out strings.Builder
	for i, kind := range types {
		out.WriteString(eventDoc(from+i, kind) + "\n")
	}
	return out.String()
}

// runWaveWatch runs wave watch, whether or not the command line has its group.
func runWaveWatch(t *testing.T, ctx context.Context, stdout io.Writer, args ...string) result {
	t.Helper()
	var out, errout bytes.Buffer
	if stdout == nil {
		stdout = &out
	}
	a := &app{argv: args, stdin: strings.NewReader(""), stdout: stdout, stderr: &errout}
	cmd := group("wavehub", "s", "e", group("wave", "s", "e", a.waveWatch()))
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetFlagErrorFunc(badFlag)
	cmd.PersistentPreRunE = a.checkGlobals
	a.globalFlags(cmd.PersistentFlags())
	cmd.SetArgs(append([]string{"wave", "watch"}, args...))
	return result{a.exit(ctx, cmd.ExecuteContext(ctx)), out.String(), errout.String()}
}

func TestWaveWatchEndsWithTheWave(t *testing.T) {
	run := []string{"wave_started", "task_dispatched", "task_failed", "wave_failed"}
	again := append(append([]string{}, run...), "wave_started", "task_completed", "wave_completed")
	for name, x := range map[string]struct {
		types, statuses, args []string
		code, from            int
	}{
		"running, then failed": {run, []string{"running", "failed"}, nil, 0, 1},
		"failed before":        {run, []string{"failed"}, []string{"--exit-status"}, 1, 1},
		"cancelled":            {[]string{"wave_cancelled"}, []string{"cancelled"}, []string{"--exit-status"}, 1, 1},
		"retried, completed":   {again, []string{"completed"}, []string{"--exit-status", "--json"}, 0, 1},
		"read late":            {again, []string{"running", "running", "completed"}, nil, 0, 1},
		"from a cursor":        {again, []string{"completed"}, []string{"--cursor", "3"}, 0, 4},
		"from the end":         {run, []string{"failed"}, []string{"--cursor", "4"}, 0, 5},
		"swept":                {nil, []string{"failed"}, nil, 0, 1},
		"the read fails":       {run, []string{"500", "failed"}, nil, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			serveLog(newHub(t), x.types, x.statuses)
			r := runWaveWatch(t, t.Context(), nil, append([]string{"w1"}, x.args...)...)
			if want := printed(x.from, x.types[min(x.from-1, len(x.types)):]...); r.code != x.code || r.out != want || r.errout != "" {
				t.Errorf("exit %d\n%s%s\nwant %d\n%s", r.code, r.out, r.errout, x.code, want)
			}
		})
	}
}

func TestWaveWatchRefusals(t *testing.T) {
	h := newHub(t)
	h.fail("GET /v1/events", 404, "wave_not_found")
	runWaveWatch(t, t.Context(), nil, "w2").want(t, 3, "wave_not_found")
	runWaveWatch(t, t.Context(), nil, "w2", "--cursor", "-1").want(t, 2, "no seq of an event")
	runWaveWatch(t, t.Context(), nil).want(t, 2, "takes WAVE")
	h.handle("GET /v1/events", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, 410, "application/problem+json", `{"code":"cursor_expired","title":"T","hint":"from the cursor 9","status":410,"retry":"never"}`)
	})
	runWaveWatch(t, t.Context(), nil, "w1", "--cursor", "1").want(t, 5, "cursor_expired", "from the cursor 9")
	serveLog(h, []string{"wave_started"}, []string{"running"})
	h.fail("GET /v1/waves/w1", 401, "invalid_token")
	runWaveWatch(t, t.Context(), nil, "w1").want(t, 4, "invalid_token")
}

// reader calls seen with each line that is written.
type reader struct {
	bytes.Buffer
	seen func(line string)
}

func (r *reader) Write(b []byte) (int, error) {
	n, err := r.Buffer.Write(b)
	r.seen(string(b))
	return n, err
}

// A watcher that is interrupted says how to see the rest, and the rest is what it
// did not print.
func TestWaveWatchResumes(t *testing.T) {
	types := []string{"wave_started", "task_dispatched", "task_completed"}
	l := serveLog(newHub(t), types, []string{"running"})
	ctx, interrupt := context.WithCancel(t.Context())
	out := &reader{seen: func(line string) {
		if strings.Contains(line, "task_dispatched") {
			interrupt()
		}
	}}
	r := runWaveWatch(t, ctx, out, "w1")
	r.want(t, 130, "the wave goes on; see the rest with: wavehub wave watch w1 --cursor ")
	lines := strings.Count(out.String(), "\n")
	if !strings.Contains(r.errout, "--cursor "+strconv.Itoa(lines)+"\n") || !strings.HasPrefix(printed(1, types...), out.String()) {
		t.Errorf("printed were\n%s%s", out.String(), r.errout)
	}
	l.add("wave_completed")
	l.mu.Lock()
	l.statuses = []string{"completed"}
	l.mu.Unlock()
	rest := runWaveWatch(t, t.Context(), nil, "w1", "--cursor", strconv.Itoa(lines))
	if got := out.String() + rest.out; rest.code != 0 || got != printed(1, append(types, "wave_completed")...) {
		t.Errorf("together:\n%s%s", got, rest.errout)
	}
}

func TestWaveWatchTimesOut(t *testing.T) {
	serveLog(newHub(t), []string{"wave_started"}, []string{"running"})
	runWaveWatch(t, t.Context(), nil, "w1", "--timeout", "1s").want(t, 0, printed(1, "wave_started"), "the wave goes on")
	runWaveWatch(t, t.Context(), nil, "w1", "--timeout", "1s", "--exit-status").want(t, 7, "the wave goes on")
}

// full refuses to be written to.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWaveWatchTellsThatNobodyReads(t *testing.T) {
	serveLog(newHub(t), []string{"wave_started"}, []string{"running"})
	runWaveWatch(t, t.Context(), full{}, "w1").want(t, 1, "writing an event")
}

func TestWatchAndEvents(t *testing.T) {
	h := newHub(t)
	l := serveLog(h, []string{"wave_started", "milestone"}, []string{"running"})
	for _, x := range []struct {
		args  []string
		query string
	}{
		{[]string{"events", "--all"}, "all=true&follow=false"},
		{[]string{"events", "--wave", "w1", "--cursor", "0"}, "wave=w1&cursor=0&follow=false"},
		{[]string{"events", "--run", "run_01j8zq4h5n6p7r8s9t0v1w2x3y"}, "run=run_01j8zq4h5n6p7r8s9t0v1w2x3y&follow=false"},
		{[]string{"watch", "--wave", "w1", "--timeout", "1s"}, "wave=w1"},
		{[]string{"events", "--all", "--follow", "--timeout", "1s"}, "all=true"},
	} {
		r := wavehub(t, x.args...)
		if r.code != 0 || r.out != printed(1, "wave_started", "milestone") || r.errout != "" || h.last().query != x.query {
			t.Errorf("%q: %+v, asked %s", x.args, r, h.last().query)
		}
	}
	ctx, interrupt := context.WithCancel(t.Context())
	out := &reader{seen: func(line string) {
		if strings.Contains(line, "milestone") {
			l.add("warning")
		}
		if strings.Contains(line, "warning") {
			interrupt()
		}
	}}
	code := Main(ctx, BuildInfo{}, []string{"watch", "--all"}, strings.NewReader(""), out, io.Discard)
	if want := printed(1, "wave_started", "milestone", "warning"); code != 130 || out.String() != want {
		t.Errorf("exit %d\n%s", code, out.String())
	}
	asked := len(h.requests())
	for _, args := range [][]string{
		{"watch"}, {"events"}, {"watch", "--wave", "w1", "--all"}, {"events", "--wave", "w1", "--run", "run_1"}, {"watch", "--wave", ""},
		{"watch", "--all", "--cursor", "-1"}, {"watch", "--all", "--cursor", "x"}, {"watch", "--all", "x"}, {"events", "--all", "--timeout", "-1s"},
	} {
		wavehub(t, args...).want(t, 2, "invalid_argument")
	}
	if n := len(h.requests()); n != asked {
		t.Errorf("%d requests were sent for bad command lines", n-asked)
	}
}

func TestEventLinesForPeople(t *testing.T) {
	text := func(s string) *string { return &s }
	for want, e := range map[string]client.Event{
		"     7  12:00:00  w1 t1                     task_failed       error=no tests reason=exit": {WaveEvent: waveEvent(7, "task_failed", text("w1"), text("t1"), `{"reason":"exit","error":"no\ntests","none":null}`)},
		"     8  12:00:00  w1                        wave_completed":                               {WaveEvent: waveEvent(8, "wave_completed", text("w1"), nil, `{}`)},
		"     9  12:00:00  run_1                     milestone         n=1 name=␛]0;x␇":            {WaveEvent: waveEvent(9, "milestone", nil, nil, `{"name":"\u001b]0;x\u0007","n":1}`)},
		`    10  12:00:00  w\u202e1                  x                 [1]`:                        {WaveEvent: waveEvent(10, "x", text("w\u202e1"), nil, `[1]`)},
	} {
		e.At = "x"
		got := plainEvent(e)
		if got = strings.Replace(got, "  x  ", "  12:00:00  ", 1); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
	if got := plainEvent(client.Event{WaveEvent: waveEvent(1, "x", nil, nil, `{"a":"`+strings.Repeat("x", 5000)+`"}`)}); len(got) > 400 {
		t.Errorf("a line has %d bytes", len(got))
	}
}

func waveEvent(seq int64, kind string, wave, task *string, data string) client.WaveEvent {
	return client.WaveEvent{Seq: seq, At: "2030-01-01T00:00:00Z", Type: kind, RunId: "run_1", WaveId: wave, TaskId: task, Data: json.RawMessage(data)}
}
