//go:build unix

package e2e

import (
	"os"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/client"
	"github.com/wavehub/wavehub/openapi/api"
)

// TestTheReaderTokenReads: the token in the file that config path names reads
// everything that the operator's does, and changes nothing.
func TestTheReaderTokenReads(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	run := h.NewRun("read")
	send(t, run, "status", "one")
	file := strings.TrimSpace(h.CLI("config", "path", "reader-token").Stdout)
	if file != h.Data("reader-token") {
		t.Errorf("the file is %s", file)
	}
	info, err := os.Stat(file)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v", info.Mode())
	}
	raw, err := os.ReadFile(file)
	must(t, err)
	token, e := strings.TrimSpace(string(raw)), h.Endpoint()
	reader := h.newClient(client.Config{URL: e.URL, Fingerprint: e.Fingerprint, Token: client.Secret(token)})
	if runs, err := reader.Runs(t.Context(), client.Page{}); err != nil || len(runs.Runs) != 1 || runs.Runs[0].RunId != run.Run {
		t.Errorf("its list of Runs is %+v %v", runs, err)
	}
	if mail, err := reader.History(t.Context(), run.Box(), "all", nil, client.Page{}); err != nil || len(mail.Messages) != 1 {
		t.Errorf("its mail is %+v %v", mail, err)
	}
	for name, change := range map[string]func() error{
		"run create":  func() error { _, err := reader.CreateRun(t.Context(), api.RunCreate{Objective: "x"}); return err },
		"run use":     func() error { _, err := reader.BindRun(t.Context(), run.Run); return err },
		"task create": func() error { _, err := reader.CreateTask(t.Context(), run.Run, api.TaskCreate{Spec: "x"}); return err },
		"send":        func() error { _, err := reader.Send(t.Context(), message(run, "status", "x")); return err },
		"check":       func() error { _, err := reader.Check(t.Context(), run.Box(), client.CheckOptions{}); return err },
	} {
		if err := change(); !isCode(err, client.CodeOutOfScope) {
			t.Errorf("%s: %v", name, err)
		}
	}
	status := get[api.HubStatus](t, h.Caller(), "status")
	if status.Counts.Runs != 1 || status.Counts.Tasks != 0 || status.Counts.Messages != 1 {
		t.Errorf("the hub holds %+v", status.Counts)
	}
}

// TestAReleasedRunsTokenProvesNothing: when its terminal has taken another Run,
// a Run has no consumer. Its former token is refused, also after the Run has
// been used again, and the new one consumes.
func TestAReleasedRunsTokenProvesNothing(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac")
	term := NewTerminal(t, h)
	bound := inTerminal[api.RunBound](t, term, "run", "create", "--objective", "released")
	run, former := bound.Run.RunId, h.Client(*bound.Binding.ConsumerToken)
	send(t, Coordinator{Caller: h.Caller(), Run: run}, "status", "waits")
	check := func(c *client.Client, in client.CheckOptions) (*api.CheckResult, error) {
		return c.Check(t.Context(), "run:"+run, in)
	}
	held, err := check(former, client.CheckOptions{})
	must(t, err)
	refused := func(when string, code client.Code) {
		t.Helper()
		for _, in := range []client.CheckOptions{{}, {Ack: *held.DeliveryId}} {
			if got, err := check(former, in); !isCode(err, code) {
				t.Errorf("%s: %+v %v", when, got, err)
			}
		}
	}
	inTerminal[api.RunBound](t, term, "run", "create", "--objective", "another", "--bind")
	refused("released", client.CodeConsumerRequired)
	term.Run("check", "--run", run, "--json").problem(t, "consumer_required")
	again, err := h.Client("").BindRun(t.Context(), run)
	must(t, err)
	got, err := check(h.Client(*again.Binding.ConsumerToken), client.CheckOptions{})
	if err != nil || got.Count != 1 || got.Messages[0].Body != "waits" || *got.DeliveryId == *held.DeliveryId {
		t.Errorf("used again it has %+v %v", got, err)
	}
	refused("used again", client.CodeConsumerFenced)
}
