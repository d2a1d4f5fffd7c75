package worktree

import (
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// runTree runs the command in a Job object of its own, which is terminated as
// a whole when the command's context ends, and when this process does.
func runTree(cmd *exec.Cmd) error {
	job, err := newJob()
	if err != nil {
		return err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{HideWindow: true, CreationFlags: windows.CREATE_NO_WINDOW}
	cmd.Cancel = func() error {
		return errors.Join(windows.TerminateJobObject(job, 1), cmd.Process.Kill())
	}
	return errors.Join(startInJob(cmd, job), windows.CloseHandle(job))
}

func newJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, fmt.Errorf("creating a job object: %w", err)
	}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{LimitFlags: windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE},
	}
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err != nil {
		return 0, errors.Join(fmt.Errorf("limiting a job object: %w", err), windows.CloseHandle(job))
	}
	return job, nil
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

// notFolder is the error of a path with a file where a folder should be.
const notFolder = syscall.ERROR_PATH_NOT_FOUND
