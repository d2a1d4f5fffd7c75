package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

const (
	exitWrong = 3
	// grandchildArg makes this program a process that only waits.
	grandchildArg  = "-grandchild"
	grandchildLife = 5 * time.Minute
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == grandchildArg {
		time.Sleep(grandchildLife)
		return
	}
	code, err := start(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "fakeagent:", err)
		code = exitWrong
	}
	os.Exit(code)
}

func start(args []string) (int, error) {
	if len(args) == 0 {
		return 0, errors.New("usage: fakeagent SCRIPT.json|- [ARG...]")
	}
	steps, err := load(args[0])
	if err != nil {
		return 0, err
	}
	a := &actor{stdout: os.Stdout, stderr: os.Stderr, vars: map[string]string{}, lookup: os.LookupEnv}
	err = a.play(steps)
	if exit, ok := errors.AsType[exitError](err); ok {
		return int(exit), nil
	}
	return 0, err
}

func load(path string) ([]step, error) {
	if path == "-" {
		return parse(os.Stdin)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	steps, err := parse(io.Reader(f))
	return steps, errors.Join(err, f.Close())
}
