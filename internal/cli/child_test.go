package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/internal/capfile"
)

// enterChief makes the capability of a worker that may coordinate the credential.
func (h *fakeHub) enterChief() {
	h.t.Helper()
	raw, err := capfile.Encode(capfile.File{
		URL: h.srv.URL, Fingerprint: h.fingerprint(), Token: "whd_capability", MayCoordinate: true,
		RunID: "run_0", TaskID: "task_1", DispatchID: "dispatch_1",
	})
	if err != nil {
		h.t.Fatal(err)
	}
	path := filepath.Join(h.t.TempDir(), "dispatch")
	h.write(path, string(raw), 0o600)
	h.t.Setenv(envDispatchFile, path)
}

// TestVerbsOfAWorkerThatCoordinates mean its child Run, once there is one; of its
// two mailboxes it says which.
func TestVerbsOfAWorkerThatCoordinates(t *testing.T) {
	h := newHub(t)
	h.enterChief()
	h.fail("GET /v1/binding", 400, "run_required")
	h.on("POST /v1/mailboxes/dispatch:dispatch_1/check", 200, timedOut)
	wavehub(t, "task", "list").want(t, 2, "(run_required)", "try: wavehub run create --objective 'Describe the goal'")
	wavehub(t, "check").want(t, 0)
	h.on("POST /v1/runs", 201, strings.Replace(runDoc, `"consumer_token":"whc_token"`, `"consumer_token":null,"secret_state":"withheld"`, 1))
	wavehub(t, "run", "create", "--objective", "o", "--consumer-file", "x").want(t, 2, "(invalid_argument)")
	wavehub(t, "run", "create", "--objective", "o").want(t, 0, "consumer generation 1")

	h.on("GET /v1/binding", 200, bindingDoc)
	h.on("GET /v1/runs/run_1/tasks", 200, `{"tasks":[],"next_cursor":null}`)
	h.on("POST /v1/mailboxes/run:run_1/check", 200, timedOut)
	wavehub(t, "task", "list").want(t, 0)
	for _, look := range [][]string{{}, {"--wait"}, {"--peek"}, {"--all"}, {"--ack", "delivery_1"}} {
		r := wavehub(t, append([]string{"check"}, look...)...)
		r.want(t, 2, "(mailbox_ambiguous)", "try: wavehub check --mailbox dispatch\n", "try: wavehub check --mailbox run\n")
	}
	wavehub(t, "check", "--mailbox", "dispatch").want(t, 0)
	wavehub(t, "check", "--mailbox", "run").want(t, 0)
	wavehub(t, "check", "--run", "run_1").want(t, 0)
	if got := h.last(); got.route != "POST /v1/mailboxes/run:run_1/check" || got.head.Get("Wavehub-Context") != "" {
		t.Errorf("%+v", got)
	}
	h.fail("GET /v1/binding", 409, "dispatch_inactive")
	wavehub(t, "check").want(t, 5, "(dispatch_inactive)")
}
