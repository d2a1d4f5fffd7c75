package proc

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
)

// ppidStale: a parent pid may name a process that took the pid later.
const ppidStale = true

// timeOfDay is SYSTEM_TIMEOFDAY_INFORMATION.
type timeOfDay struct {
	bootTime, currentTime, zoneBias int64
	zoneID, reserved                uint32
	bootTimeBias, sleepTimeBias     uint64
}

// BootID names this boot of the machine: a hash of the time it booted, without
// later steps of the clock, and the machine's GUID.
var BootID = sync.OnceValues(func() (string, error) {
	var t timeOfDay
	err := windows.NtQuerySystemInformation(windows.SystemTimeOfDayInformation, unsafe.Pointer(&t), uint32(unsafe.Sizeof(t)), nil)
	if err != nil {
		return "", fmt.Errorf("reading the boot time: %w", err)
	}
	guid, err := machineGUID()
	if err != nil {
		return "", fmt.Errorf("reading the machine GUID: %w", err)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s", t.bootTime-int64(t.bootTimeBias), guid))
	return hex.EncodeToString(sum[:16]), nil
})

func machineGUID() (string, error) {
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, `SOFTWARE\Microsoft\Cryptography`, registry.QUERY_VALUE|registry.WOW64_64KEY)
	if err != nil {
		return "", err
	}
	defer key.Close()
	guid, _, err := key.GetStringValue("MachineGuid")
	return guid, err
}

const queryRights = windows.PROCESS_QUERY_LIMITED_INFORMATION | windows.SYNCHRONIZE

func open(pid int, rights uint32) (windows.Handle, error) {
	h, err := windows.OpenProcess(rights, false, uint32(pid))
	if errors.Is(err, windows.ERROR_INVALID_PARAMETER) {
		return 0, ErrGone
	}
	return h, err
}

func read(pid int) (process, error) {
	h, err := open(pid, queryRights)
	if err != nil {
		return process{}, err
	}
	defer windows.CloseHandle(h)
	return inspect(h, pid)
}

func inspect(h windows.Handle, pid int) (process, error) {
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(h, &created, &exited, &kernel, &user); err != nil {
		return process{}, fmt.Errorf("times of process %d: %w", pid, err)
	}
	state, err := windows.WaitForSingleObject(h, 0)
	if err != nil {
		return process{}, fmt.Errorf("state of process %d: %w", pid, err)
	}
	started := int64(created.HighDateTime)<<32 | int64(created.LowDateTime)
	return process{pid: pid, ppid: parentOf(h), started: started, ended: state == windows.WAIT_OBJECT_0}, nil
}

// parentOf is the pid that started the process, 0 if the system does not say.
func parentOf(h windows.Handle) int {
	var info windows.PROCESS_BASIC_INFORMATION
	err := windows.NtQueryInformationProcess(h, windows.ProcessBasicInformation, unsafe.Pointer(&info), uint32(unsafe.Sizeof(info)), nil)
	if err != nil {
		return 0
	}
	return int(info.InheritedFromUniqueProcessId)
}

// all returns the processes that this user may open.
func all() ([]process, error) {
	snap, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return nil, err
	}
	defer windows.CloseHandle(snap)
	entry := windows.ProcessEntry32{Size: uint32(unsafe.Sizeof(windows.ProcessEntry32{}))}
	var table []process
	for err = windows.Process32First(snap, &entry); err == nil; err = windows.Process32Next(snap, &entry) {
		if p, err := read(int(entry.ProcessID)); err == nil {
			p.ppid = int(entry.ParentProcessID)
			table = append(table, p)
		}
	}
	if !errors.Is(err, windows.ERROR_NO_MORE_FILES) {
		return nil, err
	}
	return table, nil
}

// Signal ends the process that id is, and no other: SIGKILL terminates it,
// SIGTERM sends CTRL_BREAK to the process group it leads. ErrGone when it is
// over.
func Signal(id Identity, sig syscall.Signal) error {
	h, err := open(id.PID, queryRights|windows.PROCESS_TERMINATE)
	if err != nil {
		return fmt.Errorf("opening process %d: %w", id.PID, err)
	}
	defer windows.CloseHandle(h)
	if err := confirm(id); err != nil { // the open handle keeps the pid
		return err
	}
	switch sig {
	case syscall.SIGKILL:
		err = windows.TerminateProcess(h, killedCode)
	case syscall.SIGTERM:
		err = breakGroup(uint32(id.PID))
	default:
		err = errors.ErrUnsupported
	}
	if err != nil {
		return fmt.Errorf("signalling process %d: %w", id.PID, err)
	}
	return nil
}

// BecomeSubreaper does nothing: a Job holds the tree together.
func BecomeSubreaper() error { return nil }

// FindByEnv finds nothing: a Job holds the tree together, and the system keeps
// no environment of a process that others may read.
func FindByEnv(string, string) ([]Identity, error) { return nil, nil }

// Detach makes cmd, not yet started, survive this process: it gets a process
// group of its own, no console, and leaves the Job of this process. Where that
// Job forbids leaving it, the start fails with ERROR_ACCESS_DENIED.
func Detach(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.CreationFlags |= windows.CREATE_NEW_PROCESS_GROUP | windows.DETACHED_PROCESS | windows.CREATE_BREAKAWAY_FROM_JOB
}
