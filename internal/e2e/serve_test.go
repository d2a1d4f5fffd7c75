//go:build unix

package e2e

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// serve runs serve on the hub's home to its end, which has to come by itself.
func (h *Hub) serve(args ...string) Result {
	h.t.Helper()
	return h.Caller().CLI(append([]string{"serve", "--json"}, args...)...)
}

func TestServe_ASecondHubOnOneHomeIsLocked(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	h.serve("--listen", "127.0.0.1:0").problem(t, "data_dir_locked")
	h.NewRun("the first one still works")
}

func TestServe_KeysMissing(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"key.pem", "token.key"} {
		h := StartHub(t, "mac")
		h.Stop()
		must(t, os.Rename(h.Data(file), h.Data(file+".away")))
		h.serve("--listen", "127.0.0.1:0").problem(t, "identity_missing")
		must(t, os.Rename(h.Data(file+".away"), h.Data(file)))
		h.Start()
	}
}

func TestServe_APortInUse(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	NewHub(t, "mac").serve("--listen", l.Addr().String()).problem(t, "listen_failed")
}

func TestServe_DataDirectoriesThatAreNotItsOwn(t *testing.T) {
	t.Parallel()
	h := NewHub(t, "mac")
	must(t, os.Mkdir(h.Data(), 0o777))
	must(t, os.Chmod(h.Data(), 0o777))
	h.serve("--listen", "127.0.0.1:0").problem(t, "data_dir_invalid")
	foreign := StartHub(t, "mac")
	foreign.Stop()
	must(t, os.WriteFile(foreign.Data("wavehub.db"), []byte(strings.Repeat("this is no database ", 500)), 0o600))
	foreign.serve("--listen", "127.0.0.1:0").problem(t, "data_dir_invalid")
}

func TestServe_ConfigurationErrors(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"nonsense: 1\n", "listen: nowhere\n", "agents: {x: {command: []}}\n", "limits: {workers: -1}\n", "a: b: c\n"} {
		h := NewHub(t, "mac", withConfig(text))
		h.serve().problem(t, "config_invalid")
	}
}

func TestServe_PortAndIdentityAreKept(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	before := h.Endpoint()
	h.Restart()
	if after := h.Endpoint(); after != before {
		t.Errorf("after kill -9: %+v, before %+v", after, before)
	}
	h.Stop()
	h.Start()
	if after := h.Endpoint(); after != before {
		t.Errorf("after a clean stop: %+v, before %+v", after, before)
	}
	for _, private := range []string{"token", "key.pem", "wavehub.db", "endpoint"} {
		info, err := os.Stat(h.Data(private))
		must(t, err)
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", private, info.Mode())
		}
	}
}

func TestServe_AStopWaitsForNobody(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("waits")
	cmd, wait := run.startWaiting(t, "check", "--wait", "--timeout", "5m", "--json")
	began := time.Now()
	h.Stop()
	wait()
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the stop took %s", took)
	}
	if code := cmd.ProcessState.ExitCode(); code != exitOf(t, "hub_draining") && code != exitOf(t, "outcome_unknown") {
		t.Errorf("the waiter ended with %d", code)
	}
	if !exists(filepath.Join(h.Home, "data", "endpoint")) {
		t.Error("the endpoint file is gone: the port is forgotten")
	}
}

// TestServe_TheFirstStartSaysWhere: what the first start makes is named once.
func TestServe_TheFirstStartSaysWhere(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	said := func() int { return strings.Count(h.log.String(), "first start") }
	if said() != 1 || !strings.Contains(h.log.String(), h.Data("token")) {
		t.Errorf("the first start says:\n%s", h.log.String())
	}
	h.Restart()
	if said() != 1 {
		t.Errorf("the second start says it again:\n%s", h.log.String())
	}
}
