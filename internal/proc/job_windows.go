package proc

import (
	"context"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// killedCode is the exit code of a process that was terminated.
const killedCode = 137

// Job holds a process tree: children join it, none can leave it, and when its
// last handle closes, all members end.
type Job struct{ handle windows.Handle }

// NewJob returns an empty Job.
func NewJob() (*Job, error) {
	h, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, fmt.Errorf("creating a job: %w", err)
	}
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(h, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err != nil {
		windows.CloseHandle(h)
		return nil, fmt.Errorf("limiting a job: %w", err)
	}
	return &Job{handle: h}, nil
}

// Adopt takes the process, which was created suspended, into the job and lets
// it run.
func (j *Job) Adopt(pid int) error {
	const rights = windows.PROCESS_SET_QUOTA | windows.PROCESS_TERMINATE | windows.PROCESS_SUSPEND_RESUME
	h, err := windows.OpenProcess(rights, false, uint32(pid))
	if err != nil {
		return fmt.Errorf("opening process %d: %w", pid, err)
	}
	defer windows.CloseHandle(h)
	if err := windows.AssignProcessToJobObject(j.handle, h); err != nil {
		return fmt.Errorf("taking process %d into a job: %w", pid, err)
	}
	if status, _, _ := ntResumeProcess.Call(uintptr(h)); status != 0 {
		return fmt.Errorf("resuming process %d: %w", pid, windows.NTStatus(status))
	}
	return nil
}

// accounting is JOBOBJECT_BASIC_ACCOUNTING_INFORMATION.
type accounting struct {
	userTime, kernelTime, periodUser, periodKernel int64
	faults, total, active, terminated              uint32
}

// Active returns how many processes the job has.
func (j *Job) Active() (int, error) {
	var a accounting
	err := windows.QueryInformationJobObject(j.handle, windows.JobObjectBasicAccountingInformation, uintptr(unsafe.Pointer(&a)), uint32(unsafe.Sizeof(a)), nil)
	if err != nil {
		return 0, fmt.Errorf("reading a job: %w", err)
	}
	return int(a.active), nil
}

// End asks the job's processes to end, waits for at most grace, and terminates
// what is left. Nil is the proof that the job is empty. When ctx ends, End
// returns its error and does nothing more.
func (j *Job) End(ctx context.Context, ask func() error, grace time.Duration) error {
	if grace > 0 {
		asked := ask() == nil // not asked: waiting gains nothing
		if empty, err := j.await(ctx, grace, asked); err != nil || empty {
			return err
		}
	}
	if err := windows.TerminateJobObject(j.handle, killedCode); err != nil {
		return fmt.Errorf("terminating a job: %w", err)
	}
	empty, err := j.await(ctx, killLimit, true)
	if err == nil && !empty {
		err = fmt.Errorf("processes survive the termination of their job")
	}
	return err
}

// await waits until the job is empty; with wait false it only looks.
func (j *Job) await(ctx context.Context, limit time.Duration, wait bool) (bool, error) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(limit); ; {
		n, err := j.Active()
		if err != nil || n == 0 {
			return err == nil, err
		}
		if !wait || time.Now().After(end) {
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-tick.C:
		}
	}
}

// Close releases the job, which ends the processes it still has.
func (j *Job) Close() error { return windows.CloseHandle(j.handle) }
