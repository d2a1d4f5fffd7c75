package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/wavehub/wavehub/internal/id"
	"github.com/wavehub/wavehub/internal/keystore"
	"github.com/wavehub/wavehub/openapi/api"
)

// fake serves the handler over TLS on loopback and returns a client of it.
func fake(t *testing.T, h http.HandlerFunc) (*Client, *httptest.Server) {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return dial(t, srv, Config{}), srv
}

func dial(t *testing.T, srv *httptest.Server, cfg Config) *Client {
	t.Helper()
	cfg.URL = srv.URL
	if cfg.Fingerprint == "" {
		cfg.Fingerprint = keystore.FingerprintOf(srv.Certificate())
	}
	if cfg.Token == "" {
		cfg.Token = "whu_secret"
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func answer(w http.ResponseWriter, status int, body string) {
	kind := "application/json"
	if status >= 400 {
		kind = "application/problem+json"
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

func asError(t *testing.T, err error, code Code, exit int) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Code != code || e.ExitCode() != exit {
		t.Fatalf("got %v, want %s with exit code %d", err, code, exit)
	}
	return e
}

const boundRun = `{"run":{"run_id":"run_1","objective":"o","generation":1,"parent_run_id":null,"created_at":"t"},"binding":null,"mutation":{"request_id":"r","replayed":false}}`

func TestMutationSendsCredentialsAndKey(t *testing.T) {
	var head http.Header
	var body map[string]any
	_, srv := fake(t, func(w http.ResponseWriter, r *http.Request) {
		head = r.Header.Clone()
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		answer(w, 201, boundRun)
	})
	c := dial(t, srv, Config{Context: "tty:1", Consumer: "whc_x"})
	var raw json.RawMessage
	var status int
	got, err := c.CreateRun(t.Context(), api.RunCreate{Objective: "o"}, WithBody(&raw), WithStatus(&status))
	if err != nil {
		t.Fatal(err)
	}
	if got.Run.RunId != "run_1" || string(raw) != boundRun || status != 201 || body["objective"] != "o" {
		t.Errorf("got %+v, raw %s, status %d, sent %v", got, raw, status, body)
	}
	if head.Get("Authorization") != "Bearer whu_secret" || head.Get("Wavehub-Context") != "tty:1" || head.Get("Wavehub-Consumer") != "whc_x" {
		t.Errorf("headers are %v", head)
	}
	if !id.Valid("req_", head.Get("Idempotency-Key")) {
		t.Errorf("the key is %q", head.Get("Idempotency-Key"))
	}
	if _, err := c.CreateRun(t.Context(), api.RunCreate{Objective: "o"}, WithRequestID("req_mine")); err != nil || head.Get("Idempotency-Key") != "req_mine" {
		t.Errorf("the key is %q: %v", head.Get("Idempotency-Key"), err)
	}
}

func TestUnsetParametersAreNotSent(t *testing.T) {
	var query string
	c, _ := fake(t, func(w http.ResponseWriter, r *http.Request) {
		query = r.URL.RawQuery
		answer(w, 200, `{"dispatches":[],"next_cursor":null}`)
	})
	if _, err := c.Dispatches(t.Context(), DispatchFilter{}, Page{}); err != nil || query != "" {
		t.Errorf("query %q: %v", query, err)
	}
	if _, err := c.Dispatches(t.Context(), DispatchFilter{Run: "run_1", Live: true}, Page{Limit: 5}); err != nil || query != "run=run_1&live=true&limit=5" {
		t.Errorf("query %q: %v", query, err)
	}
	if _, err := c.History(t.Context(), "run:run_1", "peek", []string{"status", "question"}, Page{}); err != nil || query != "mode=peek&types=status,question" {
		t.Errorf("query %q: %v", query, err)
	}
}

func TestPinMismatchSendsNothing(t *testing.T) {
	var requests atomic.Int32
	_, srv := fake(t, func(w http.ResponseWriter, _ *http.Request) { requests.Add(1) })
	c := dial(t, srv, Config{Fingerprint: "another"})
	_, err := c.CreateRun(t.Context(), api.RunCreate{Objective: "o"})
	asError(t, err, CodeHubIdentityMismatch, 4)
	_, err = c.Status(t.Context())
	asError(t, err, CodeHubIdentityMismatch, 4)
	if n := requests.Load(); n != 0 {
		t.Errorf("%d requests reached the stranger", n)
	}
}

func TestOldTLSIsRefused(t *testing.T) {
	c, srv := fake(t, func(w http.ResponseWriter, _ *http.Request) { answer(w, 200, "{}") })
	srv.TLS.MaxVersion = 0x0303
	_, err := c.Status(t.Context())
	asError(t, err, CodeHubUnreachable, 6)
}

func TestRedirectIsNotFollowed(t *testing.T) {
	var requests atomic.Int32
	c, _ := fake(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	_, err := c.Status(t.Context())
	asError(t, err, CodeInternal, 1)
	if requests.Load() != 1 {
		t.Errorf("%d requests", requests.Load())
	}
}

func TestProblem(t *testing.T) {
	c, _ := fake(t, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 409, `{"code":"already_bound","title":"T","detail":"D","hint":"H","status":409,"retry":"never","next_commands":[["wavehub","run","use","run_1"]]}`)
	})
	_, err := c.CreateRun(t.Context(), api.RunCreate{Objective: "o"}, WithRequestID("req_mine"))
	e := asError(t, err, CodeAlreadyBound, 5)
	if e.Detail != "D" || e.Hint != "H" || e.RequestID != "req_mine" || len(e.Next) != 1 || e.Retry != RetryNever {
		t.Errorf("got %+v", e)
	}
	if !errors.Is(err, &Error{Code: CodeAlreadyBound}) {
		t.Error("errors.Is does not match by code")
	}
}

func TestUnknownCodeCountsByStatus(t *testing.T) {
	for status, exit := range map[int]int{400: 2, 403: 4, 404: 3, 409: 5, 429: 6, 500: 1, 503: 6} {
		e := &Error{Code: "of_the_future", Status: status}
		if e.ExitCode() != exit {
			t.Errorf("%d gives exit code %d, want %d", status, e.ExitCode(), exit)
		}
	}
}

func checkBody(timedOut bool) string {
	return fmt.Sprintf(`{"run_id":"run_1","delivery_id":null,"messages":[],"count":0,"replayed":false,"waiting_behind":0,"acknowledged":"delivery_1","timed_out":%v,"cancelled":false,"connection_lost":false,"mutation":{"request_id":"r","replayed":false}}`, timedOut)
}

func TestKeepAliveWhiteSpace(t *testing.T) {
	var sent api.Check
	_, srv := fake(t, func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			t.Error(err)
		}
		for range 5 { // together longer than the client's patience
			_, _ = io.WriteString(w, " \n")
			w.(http.Flusher).Flush()
			select {
			case <-time.After(100 * time.Millisecond):
			case <-r.Context().Done():
				return
			}
		}
		_, _ = io.WriteString(w, checkBody(true)+"\n")
	})
	c := dial(t, srv, Config{Timeout: 300 * time.Millisecond})
	var raw json.RawMessage
	got, err := c.Check(t.Context(), "run:run_1", CheckOptions{Ack: "delivery_1", Wait: time.Millisecond, Types: []string{"worker_done"}}, WithBody(&raw))
	if err != nil {
		t.Fatal(err)
	}
	if !got.TimedOut || *got.Acknowledged != "delivery_1" || string(raw) != checkBody(true) {
		t.Errorf("got %+v, raw %q", got, raw)
	}
	if sent.Ack != "delivery_1" || sent.WaitMs != 1 || sent.Types[0] != "worker_done" {
		t.Errorf("sent %+v", sent)
	}
}

func TestProblemAfterFirstByte(t *testing.T) {
	c, _ := fake(t, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, "  \n {\"problem\":{\"code\":\"consumer_fenced\",\"title\":\"T\",\"status\":409,\"retry\":\"never\"}}")
	})
	_, err := c.Check(t.Context(), "run:run_1", CheckOptions{Wait: time.Second})
	if e := asError(t, err, CodeConsumerFenced, 5); e.Status != 409 || e.RequestID == "" {
		t.Errorf("got %+v", e)
	}
}

func TestLostAnswer(t *testing.T) {
	cut := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"run":`)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	silent := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}
	garbage := func(w http.ResponseWriter, _ *http.Request) { answer(w, 201, `{"run":`) }
	for name, h := range map[string]http.HandlerFunc{"cut": cut, "silent": silent, "garbage": garbage} {
		t.Run(name, func(t *testing.T) {
			_, srv := fake(t, h)
			c := dial(t, srv, Config{Timeout: 200 * time.Millisecond})
			_, err := c.CreateRun(t.Context(), api.RunCreate{Objective: "o"})
			e := asError(t, err, CodeOutcomeUnknown, 10)
			if !id.Valid("req_", e.RequestID) || !strings.Contains(e.Hint, e.RequestID) || e.Retry != RetryInspect {
				t.Errorf("got %+v", e)
			}
			_, err = c.Status(t.Context())
			asError(t, err, CodeHubUnreachable, 6)
		})
	}
}

func TestReplayUsesTheSameKey(t *testing.T) {
	var keys []string
	c, _ := fake(t, func(w http.ResponseWriter, r *http.Request) {
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		if len(keys) == 1 {
			w.WriteHeader(201)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		answer(w, 201, strings.Replace(boundRun, `"replayed":false`, `"replayed":true`, 1))
	})
	_, err := c.CreateRun(t.Context(), api.RunCreate{Objective: "o"})
	e := asError(t, err, CodeOutcomeUnknown, 10)
	got, err := c.CreateRun(t.Context(), api.RunCreate{Objective: "o"}, WithRequestID(e.RequestID))
	if err != nil || !got.Mutation.Replayed {
		t.Fatalf("got %+v, %v", got, err)
	}
	if len(keys) != 2 || keys[0] != keys[1] {
		t.Errorf("keys are %v", keys)
	}
}

func TestNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{URL: "https://" + address, Fingerprint: "f"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.CreateRun(t.Context(), api.RunCreate{Objective: "o"})
	if e := asError(t, err, CodeHubUnreachable, 6); e.Retry != RetrySameRequest || e.RequestID == "" {
		t.Errorf("got %+v", e)
	}
}

func TestCancelled(t *testing.T) {
	arrived := make(chan struct{}, 2)
	c, _ := fake(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		arrived <- struct{}{}
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	_, err := c.Status(ctx)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a read gives %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	_, err = c.Check(ctx, "run:run_1", CheckOptions{Wait: time.Minute})
	if e := asError(t, err, CodeOutcomeUnknown, 10); !errors.Is(e, context.Canceled) {
		t.Errorf("a mutation gives %v", err)
	}
}

func TestAskSaysHowToResumeBeforeItWaits(t *testing.T) {
	var asked atomic.Bool
	c, _ := fake(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			answer(w, 201, `{"message":{"message_id":"msg_1","seq":1},"state":"accepted","verdict":null,"mutation":{"request_id":"r","replayed":false}}`)
			return
		}
		if !asked.Load() {
			t.Error("the wait began before the caller knew the message id")
		}
		if got := r.URL.Query().Get("wait_ms"); got != "1500" {
			t.Errorf("wait_ms is %q", got)
		}
		answer(w, 200, `{"message_id":"msg_1","thread_id":"msg_1","answer":"Yes","answer_message_id":"msg_2","timed_out":false}`)
	})
	got, err := c.Ask(t.Context(), Question{Body: "Q", Options: []string{"a"}, Wait: 1500 * time.Millisecond, Asked: func(s api.SendResult) {
		asked.Store(s.Message.MessageId == "msg_1")
	}})
	if err != nil || *got.Answer != "Yes" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestLongWaitIsMadeOfParts(t *testing.T) {
	var waits []string
	c, _ := fake(t, func(w http.ResponseWriter, r *http.Request) {
		waits = append(waits, r.URL.Query().Get("wait_ms"))
		answer(w, 200, `{"message_id":"msg_1","thread_id":"msg_1","answer":null,"answer_message_id":null,"timed_out":true}`)
	})
	got, err := c.Answer(t.Context(), "msg_1", 25*time.Minute)
	if err != nil || !got.TimedOut || strings.Join(waits, " ") != "600000 600000 300000" {
		t.Errorf("got %+v, %v; waits %v", got, err, waits)
	}
	_, err = c.Check(t.Context(), "run:run_1", CheckOptions{Wait: MaxWait + 1})
	asError(t, err, CodeInvalidArgument, 2)
}

func TestSecretDoesNotPrint(t *testing.T) {
	s := Secret("whu_secret")
	raw, err := json.Marshal(Config{Token: s})
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "token", s)
	for _, text := range []string{fmt.Sprint(s), fmt.Sprintf("%#v %q %s", s, s, s), fmt.Sprintf("%+v", Config{Token: s}), string(raw), log.String()} {
		if strings.Contains(text, "whu_") {
			t.Errorf("the secret shows in %q", text)
		}
	}
	if s.Reveal() != "whu_secret" {
		t.Error("Reveal does not reveal")
	}
}

func TestNewRefuses(t *testing.T) {
	for _, cfg := range []Config{
		{URL: "http://127.0.0.1:1", Fingerprint: "f"}, {URL: "https://", Fingerprint: "f"},
		{URL: "https://user@host:1", Fingerprint: "f"}, {URL: "https://host:1/path", Fingerprint: "f"}, {URL: "https://host:1"},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
}
