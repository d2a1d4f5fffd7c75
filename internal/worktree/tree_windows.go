package worktree

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// runTree runs the command in a Job object of its own, which is terminated as
// a whole when the command's context ends.
func runTree(cmd *exec.Cmd) error {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return fmt.Errorf("creating a job object: %w", err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{HideWindow: true, CreationFlags: windows.CREATE_NO_WINDOW}
	cmd.Cancel = func() error {
		return errors.Join(windows.TerminateJobObject(job, 1), cmd.Process.Kill())
	}
	return errors.Join(startInJob(cmd, job), windows.CloseHandle(job))
}

func startInJob(cmd *exec.Cmd, job windows.Handle) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	var assigned error
	err := cmd.Process.WithHandle(func(h uintptr) {
		assigned = windows.AssignProcessToJobObject(job, windows.Handle(h))
	})
	if err := errors.Join(err, assigned); err != nil && cmd.ProcessState == nil {
		return errors.Join(fmt.Errorf("joining the job object: %w", err), cmd.Process.Kill(), cmd.Wait())
	}
	return cmd.Wait()
}
