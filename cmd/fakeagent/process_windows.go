package main

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

func ignoreTerm(yes bool) {
	if yes {
		signal.Ignore(os.Interrupt, syscall.SIGTERM)
		return
	}
	signal.Reset(os.Interrupt, syscall.SIGTERM)
}

func ownSession(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
