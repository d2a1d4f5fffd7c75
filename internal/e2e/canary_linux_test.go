package e2e

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wavehub/wavehub/openapi/api"
)

// canaries are the secrets of a running hub with a worker, by name.
func canaries(t *testing.T, h *Hub, run Coordinator, w Worker, code string) map[string]string {
	t.Helper()
	keys := map[string]string{"operator": h.Token(), "consumer": run.Token, "capability": w.Cap.Token, "pairing code": code}
	raw, err := os.ReadFile(h.Data("token.key"))
	must(t, err)
	keys["token key"] = strings.TrimSpace(string(raw))
	for name, secret := range keys {
		if len(secret) < 12 {
			t.Fatalf("the %s secret is %q", name, secret)
		}
	}
	return keys
}

func TestAcceptance_W18_NoSecretLeaks(t *testing.T) {
	t.Parallel()
	h := StartHub(t, "mac", withDebugLog)
	run := h.NewRun("canaries")
	code := *get[api.InviteResult](t, h.Caller(), "peer", "invite", "--allow-repo", t.TempDir(), "--ttl", "10m").Invite.Code
	w := run.heldWorker(t, h)
	get[api.SendResult](t, w.Caller(), "send", "--type", "status", "--subject", "s", "--body", "b")
	secrets := canaries(t, h, run, w, code)
	talker := run.Work(`cat "$WAVEHUB_DISPATCH_FILE"; env`) // its output is its result
	result := run.Done(talker.DispatchId)
	read := h.CLI("worker", "read", talker.DispatchId, "--json")
	for where, text := range map[string]string{"worker read": read.Stdout, "the result": result.Body + string(result.Payload)} {
		if !strings.Contains(text, "fingerprint") || !strings.Contains(text, "WAVEHUB_BIN") {
			t.Fatalf("%s lacks what the worker printed: %s", where, text)
		}
		for _, kind := range []string{"whd_", "whu_", "whc_"} {
			if strings.Contains(text, kind) {
				t.Errorf("%s shows a token %s…: %s", where, kind, text)
			}
		}
	}
	found := processes(t, secrets)
	found = append(found, files(t, h, secrets)...)
	for name, secret := range secrets {
		if strings.Contains(h.log.String(), secret) {
			found = append(found, "the hub's log: "+name)
		}
	}
	for _, f := range found {
		t.Error(f)
	}
}

func withDebugLog(t testing.TB, h *Hub) {
	t.Helper()
	withConfig("log_level: debug\n")(t, h)
}

// processes searches the command lines and environments of all processes.
func processes(t *testing.T, secrets map[string]string) (found []string) {
	t.Helper()
	looked := 0
	for _, name := range []string{"cmdline", "environ"} {
		paths, err := filepath.Glob("/proc/[0-9]*/" + name)
		must(t, err)
		for _, path := range paths {
			raw, err := os.ReadFile(path)
			if err != nil || len(raw) == 0 {
				continue // it has ended, or is another user's
			}
			looked++
			found = append(found, matches(path+" of "+string(bytes.ReplaceAll(raw[:min(len(raw), 80)], []byte{0}, []byte{' '})), raw, secrets)...)
		}
	}
	if looked < 4 {
		t.Fatalf("only %d could be read", looked)
	}
	return found
}

// mayHold says which files are there to hold which secret.
func mayHold(path, which string) bool {
	switch name := filepath.Base(path); which {
	case "operator":
		return name == "token"
	case "token key":
		return name == "token.key"
	case "capability":
		return strings.Contains(path, "/dispatches/")
	}
	return false
}

// files searches everything that the hub keeps; the database too, for it holds
// hashes only.
func files(t *testing.T, h *Hub, secrets map[string]string) (found []string) {
	t.Helper()
	must(t, filepath.WalkDir(h.Home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rest := map[string]string{}
		for name, secret := range secrets {
			if !mayHold(path, name) {
				rest[name] = secret
			}
		}
		found = append(found, matches(path, raw, rest)...)
		return nil
	}))
	return found
}

func matches(where string, raw []byte, secrets map[string]string) (found []string) {
	for name, secret := range secrets {
		if bytes.Contains(raw, []byte(secret)) {
			found = append(found, where+": "+name)
		}
	}
	return found
}
