package terminal

import (
	"errors"
	"os/exec"

	"golang.org/x/sys/windows"
)

// startDetached starts what build describes. Where the job of this process
// forbids leaving it, the supervisor stays inside and ends with the job.
func startDetached(build func() *exec.Cmd) (*exec.Cmd, error) {
	cmd := build()
	err := cmd.Start()
	if errors.Is(err, windows.ERROR_ACCESS_DENIED) {
		cmd = build()
		cmd.SysProcAttr.CreationFlags &^= windows.CREATE_BREAKAWAY_FROM_JOB
		err = cmd.Start()
	}
	return cmd, err
}
