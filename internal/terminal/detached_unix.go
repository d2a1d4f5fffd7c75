//go:build unix

package terminal

import "os/exec"

// startDetached starts what build describes.
func startDetached(build func() *exec.Cmd) (*exec.Cmd, error) {
	cmd := build()
	return cmd, cmd.Start()
}
