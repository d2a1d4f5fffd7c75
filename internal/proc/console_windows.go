package proc

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"unsafe"

	"golang.org/x/sys/windows"
)

var (
	kernel32              = windows.NewLazySystemDLL("kernel32.dll")
	ntdll                 = windows.NewLazySystemDLL("ntdll.dll")
	attachConsole         = kernel32.NewProc("AttachConsole")
	freeConsole           = kernel32.NewProc("FreeConsole")
	getConsoleWindow      = kernel32.NewProc("GetConsoleWindow")
	getConsoleProcessList = kernel32.NewProc("GetConsoleProcessList")
	ntResumeProcess       = ntdll.NewProc("NtResumeProcess")
)

// consoleMu orders the use of the one console a process can have.
var consoleMu sync.Mutex

// breakGroup sends CTRL_BREAK to the group that pid leads. A console event
// reaches only processes of the sender's console: a caller without one joins
// that of pid meanwhile.
func breakGroup(pid uint32) error {
	consoleMu.Lock()
	defer consoleMu.Unlock()
	if joined, _, _ := attachConsole.Call(uintptr(pid)); joined != 0 {
		defer freeConsole.Call()
	}
	return windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, pid)
}

// CallerContext returns the text that names the console this process was
// called from: that of its nearest ancestor with one, itself first. It is "tty:"
// and a hash of boot, and pid and start time of the console's owner. Without such
// an ancestor it is "": a directory is never a context.
func CallerContext() (string, error) {
	device, pid := consoleOwner()
	if pid == 0 {
		device, pid = consoleAbove()
	}
	if pid == 0 {
		return "", nil
	}
	owner, err := Lookup(int(pid))
	if errors.Is(err, ErrGone) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("finding the terminal context: %w", err)
	}
	return contextText(owner.BootID, device, owner), nil
}

// consoleAbove is consoleOwner of the nearest ancestor that has a console, which
// is joined meanwhile; pid is 0 if none has.
func consoleAbove() (device string, pid uint32) {
	consoleMu.Lock()
	defer consoleMu.Unlock()
	err := walkUp(func(p process) (bool, error) {
		if joined, _, _ := attachConsole.Call(uintptr(p.pid)); joined == 0 {
			return true, nil
		}
		defer freeConsole.Call()
		device, pid = consoleOwner()
		return pid == 0, nil
	})
	if err != nil {
		return "", 0 // no ancestor can be proven
	}
	return device, pid
}

// consoleOwner returns the owner of the console's window or, for a console
// without one, the process that joined the console first.
func consoleOwner() (device string, pid uint32) {
	if window, _, _ := getConsoleWindow.Call(); window != 0 {
		if _, err := windows.GetWindowThreadProcessId(windows.HWND(window), &pid); err == nil && pid != 0 {
			return "window " + strconv.FormatUint(uint64(window), 16), pid
		}
	}
	list := make([]uint32, 256)
	n, _, _ := getConsoleProcessList.Call(uintptr(unsafe.Pointer(&list[0])), uintptr(len(list)))
	if n == 0 || int(n) > len(list) {
		return "", 0
	}
	return "console", list[n-1]
}
