package terminal

import (
	"fmt"
	"os"
)

// descriptorDir lists the descriptors of the process that reads it.
const descriptorDir = "/proc/self/fd"

// startWithin starts a process in a cgroup from its first moment. Where that
// fails it starts it outside: with an error no program has run.
func startWithin(cgroup string, argv []string, attr *os.ProcAttr) (*os.Process, error) {
	if cgroup == "" {
		return os.StartProcess(argv[0], argv, attr)
	}
	dir, err := os.Open(cgroup)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(dir.Fd())
	started, err := os.StartProcess(argv[0], argv, attr)
	if err != nil {
		attr.Sys.UseCgroupFD = false
		cause := err
		if started, err = os.StartProcess(argv[0], argv, attr); err == nil {
			fmt.Fprintln(os.Stderr, "the process is not in its cgroup:", cause)
		}
	}
	return started, err
}
