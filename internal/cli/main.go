package cli

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"
)

// BuildInfo says which build this is.
type BuildInfo struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Date    string `json:"date"`
}

// exitInterrupted is the exit code after SIGINT.
const exitInterrupted = 130

// Main runs one command line (args without the program's name) and returns the
// process exit code. Cancelling ctx interrupts the command. The environment
// and the working directory are those of the process.
func Main(ctx context.Context, build BuildInfo, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{build: build, argv: slices.Clone(args), stdin: stdin, stdout: stdout, stderr: stderr}
	root := a.root()
	root.SetArgs(append([]string{}, args...))
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return a.exit(ctx, root.ExecuteContext(ctx))
}

// app is one run of the program.
type app struct {
	build          BuildInfo
	argv           []string
	stdin          io.Reader
	stdout, stderr io.Writer
	flags          globals
	usedStdin      bool // a part of the request was read from there
	makesConsumer  bool // the verb makes the consumer that the environment may name
}

// globals are the flags that every command has.
type globals struct {
	json, quiet, noColor    bool
	hub, run, retryRequest  string
	timeout, connectTimeout time.Duration
	timed                   bool // --timeout was given
}

// exitCode ends the program with a code and without a message: the answer that
// was printed says it all.
type exitCode int

func (exitCode) Error() string { return "" }

func (a *app) exit(ctx context.Context, err error) int {
	if err == nil {
		return 0
	}
	if code, ok := errors.AsType[exitCode](err); ok {
		return int(code)
	}
	code := a.report(err)
	if ctx.Err() != nil {
		return exitInterrupted
	}
	return code
}
