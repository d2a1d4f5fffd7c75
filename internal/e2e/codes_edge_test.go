//go:build unix

package e2e

import (
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wavehub/wavehub/openapi/api"
)

// edgeCodes are those of requests that no client of ours sends: each is a
// sound one that is spoilt on its way.
var edgeCodes = map[string]scenario{
	"invalid_json": spoiling(func(r *http.Request) {
		text := `{"objective":"x","objective":"y"}`
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	}),
	"origin_forbidden":       spoiling(func(r *http.Request) { r.Header.Set("Origin", "https://page.example") }),
	"not_found":              spoiling(func(r *http.Request) { r.URL.Path = "/v2/runs" }),
	"method_not_allowed":     spoiling(func(r *http.Request) { r.Method = http.MethodPut }),
	"unsupported_media_type": spoiling(func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }),
	"host_forbidden":         spoiling(func(r *http.Request) { r.Host = "rebound.example" }),
	"already_bound": func(t *testing.T, s *stage) Result {
		c := s.solo().spoilt(t, inTerminal7)
		get[api.RunBound](t, c, "run", "create", "--objective", "one", "--bind")
		return c.json("run", "create", "--objective", "two")
	},
}

func spoiling(spoil func(*http.Request)) scenario {
	return func(t *testing.T, s *stage) Result {
		return s.solo().spoilt(t, spoil).json("run", "create", "--objective", "x", "--no-bind")
	}
}

// inTerminal7 makes requests come from a terminal.
func inTerminal7(r *http.Request) { r.Header.Set("Wavehub-Context", "tty:7") }

// startCodes are those of hubs that cannot start or be reached.
var startCodes = map[string]scenario{
	"hub_unreachable": func(t *testing.T, _ *stage) Result { return NewHub(t, "none").Caller().json("status") },
	"hub_identity_mismatch": func(t *testing.T, s *stage) Result {
		e := s.solo().Endpoint()
		e.Fingerprint = madeUp("another", "", "").Fingerprint
		return s.solo().at(t, e, s.solo().Token()).json("status")
	},
	"identity_missing": func(t *testing.T, _ *stage) Result {
		h := NewHub(t, "keyless")
		must(t, os.Mkdir(h.Data(), 0o700))
		must(t, os.WriteFile(h.Data("wavehub.db"), nil, 0o600))
		return h.serve("--listen", "127.0.0.1:0")
	},
	"data_dir_invalid": func(t *testing.T, _ *stage) Result {
		h := NewHub(t, "open to all")
		must(t, os.Mkdir(h.Data(), 0o700))
		must(t, os.Chmod(h.Data(), 0o777))
		return h.serve("--listen", "127.0.0.1:0")
	},
	"data_dir_locked": func(_ *testing.T, s *stage) Result { return s.solo().serve("--listen", "127.0.0.1:0") },
	"config_invalid": func(t *testing.T, _ *stage) Result {
		return NewHub(t, "misconfigured", withConfig("nonsense: 1\n")).serve()
	},
	"listen_failed": func(t *testing.T, _ *stage) Result {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		t.Cleanup(func() { l.Close() })
		return NewHub(t, "late").serve("--listen", l.Addr().String())
	},
}

// outcomeUnknown stops a worker whose supervisor does not answer.
func outcomeUnknown(t *testing.T, s *stage) Result {
	h := StartHub(t, "mute")
	run := h.NewRun("unknown")
	w := run.heldWorker(t, h)
	must(t, syscall.Kill(h.spawns()[0].Supervisor.PID, syscall.SIGSTOP))
	return run.json("worker", "stop", w.DispatchId, "--timeout", "100ms")
}

// hubDraining stops the hub while the consumer waits for mail.
func hubDraining(t *testing.T, _ *stage) Result {
	h := StartHub(t, "stops")
	run := h.NewRun("drained")
	check := begin(t, func() (Result, error) { return run.json("check", "--wait", "--timeout", "60s"), nil })
	eventually(t, "the consumer waits", 20*time.Second, h.waits)
	h.Stop()
	return check.get(t, 20*time.Second).value
}
