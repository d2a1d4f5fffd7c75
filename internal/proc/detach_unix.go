//go:build unix

package proc

import (
	"os/exec"
	"syscall"
)

// Detach makes cmd, not yet started, survive this process: it gets a session
// and process group of its own and no controlling terminal.
func Detach(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid = true
}
