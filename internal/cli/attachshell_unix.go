//go:build unix

package cli

import "os/exec"

// shellCommand runs a line of sh.
func shellCommand(line string) *exec.Cmd { return exec.Command("sh", "-c", line) }
