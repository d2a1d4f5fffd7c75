//go:build unix

package main

import (
	"os/exec"
	"os/signal"
	"syscall"
)

func ignoreTerm(yes bool) {
	if yes {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		return
	}
	signal.Reset(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
}

func ownSession(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
