//go:build unix

package main

import "testing"

func TestIgnoreTerm(t *testing.T) {
	const killParent = `{"run":["sh","-c","kill -TERM $PPID"]},{"print":"survived"},{"exit":5}]`
	cmd, out := agent(t, `[{"ignore_term":true},`+killParent)
	_ = cmd.Run() // the exit code is what is compared
	if cmd.ProcessState.ExitCode() != 5 || out.String() != "survived\n" {
		t.Errorf("%v: %s", cmd.ProcessState, out)
	}
	cmd, out = agent(t, `[`+killParent)
	_ = cmd.Run()
	if cmd.ProcessState.ExitCode() != -1 {
		t.Errorf("without it: %v: %s", cmd.ProcessState, out)
	}
}
