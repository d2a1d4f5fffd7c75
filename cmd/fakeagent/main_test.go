package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// asAgent makes the test binary behave as fakeagent itself.
const asAgent = "FAKEAGENT_TEST_AS_AGENT"

func TestMain(m *testing.M) {
	if os.Getenv(asAgent) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func agent(t *testing.T, script string, env ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-")
	cmd.Env = append(append(os.Environ(), asAgent+"=1", "WAVEHUB_BIN="+self), env...)
	cmd.Stdin = strings.NewReader(script)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	return cmd, &out
}

func TestScripts(t *testing.T) {
	cases := map[string]struct {
		script, out string
		code        int
	}{
		"empty":     {`[]`, "", 0},
		"print":     {`[{"print":"a ${WHO} $$1 $x"}]`, "a bob $1 $x\n", 0},
		"object":    {`{"steps":[{"complain":"c"},{"exit":7},{"print":"never"}]}`, "c\n", 7},
		"repeat":    {`[{"repeat":2,"steps":[{"print":"${i}"},{"repeat":2,"steps":[{"print":"-${i}"}]},{"print":"${i}"}]}]`, "0\n-0\n-1\n0\n1\n-0\n-1\n1\n", 0},
		"sleep":     {`[{"sleep_ms":1},{"print":"up"}]`, "up\n", 0},
		"run":       {`[{"run":["wavehub","-"],"input":"[{\"print\":\"inner $${WHO}\"},{\"exit\":4}]","want_exit":4}]`, "inner bob\n", 0},
		"run fails": {`[{"run":["wavehub","-"],"input":"[{\"exit\":4}]"}]`, "ended with 4, want 0", 3},
		"no such":   {`[{"run":["/no/such/program"]}]`, "running", 3},
		"unset":     {`[{"print":"${NOT_SET_ANYWHERE}"}]`, "${NOT_SET_ANYWHERE} is not set", 3},
		"unknown":   {`[{"prnt":"a"}]`, "unknown field", 3},
		"two":       {`[{"print":"a","exit":0}]`, "2 actions", 3},
		"stray key": {`[{"print":"a","input":"b"}]`, "does not belong", 3},
		"rest":      {`[] []`, "more after", 3},
		"rubbish":   {`nope`, "parsing the script", 3},
		"negative":  {`[{"repeat":-1,"steps":[]}]`, "negative", 3},
	}
	for name, c := range cases {
		cmd, out := agent(t, c.script, "WHO=bob")
		_ = cmd.Run() // the exit code is what is compared
		if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != c.code {
			t.Errorf("%s: %v, want exit %d: %s", name, cmd.ProcessState, c.code, out)
		}
		if c.code != exitWrong && out.String() != c.out || !strings.Contains(out.String(), c.out) {
			t.Errorf("%s: said %q, want %q", name, out, c.out)
		}
	}
}

func TestScriptFileAndWrite(t *testing.T) {
	dir := t.TempDir()
	script, target := filepath.Join(dir, "s.json"), filepath.Join(dir, "out")
	if err := os.WriteFile(script, []byte(`[{"write":"${TARGET}","text":"done"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, out := agent(t, "", "TARGET="+target)
	cmd.Args = []string{cmd.Args[0], script, "a prompt"}
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if text, err := os.ReadFile(target); err != nil || string(text) != "done" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestGrandchildHoldsThePipe(t *testing.T) {
	cmd, out := agent(t, `[{"spawn_grandchild":true}]`)
	cmd.WaitDelay = 200 * time.Millisecond
	err := cmd.Run()
	var pid int
	if _, scanErr := fmt.Sscanf(out.String(), "grandchild %d", &pid); scanErr != nil {
		t.Fatalf("said %q: %v", out, scanErr)
	}
	if err != exec.ErrWaitDelay {
		t.Errorf("the pipe was not held: %v", err)
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Errorf("ending the grandchild: %v", err)
	}
}
