package cli

import (
	"os"
	"os/exec"
	"syscall"
)

// shellCommand runs a line of cmd, which parses it by itself.
func shellCommand(line string) *exec.Cmd {
	shell := os.Getenv("COMSPEC")
	if shell == "" {
		shell = "cmd.exe"
	}
	cmd := exec.Command(shell)
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: `"` + shell + `" /d /s /c "` + line + `"`}
	return cmd
}
