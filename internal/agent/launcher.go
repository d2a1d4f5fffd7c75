package agent

import (
	"time"
)

// Deliver is how the first task reaches the process.
type Deliver string

// The ways of handing over. None of them types into a terminal.
const (
	DeliverStdin Deliver = "stdin" // written to standard input, then closed
	DeliverArgv  Deliver = "argv"  // the last argument
	DeliverFile  Deliver = "file"  // a file whose path is the last argument
)

// Completion is what ends an attempt if no report came before.
type Completion string

// The kinds of completion. A report counts first for all of them.
const (
	CompleteByReport Completion = "report" // an exit without a report is a failure
	CompleteByResult Completion = "result" // the terminal record of the output stream
	CompleteByExit   Completion = "exit"   // exit 0 succeeded, any other code failed
)

// DefaultGrace is the time between the request to end and the kill.
const DefaultGrace = 5 * time.Second

// Definition is a launcher as the user's configuration states it.
type Definition struct {
	// Command is the program, a bare name for PATH or an absolute path, and
	// its fixed arguments.
	Command []string `mapstructure:"command"`
	// Deliver defaults to stdin, Completion to report, Grace to DefaultGrace.
	Deliver    Deliver           `mapstructure:"deliver"`
	Completion Completion        `mapstructure:"completion"`
	Env        map[string]string `mapstructure:"env"`
	Grace      time.Duration     `mapstructure:"grace"`
	// Bare hands over the Task's text alone, without the preamble.
	Bare bool `mapstructure:"bare"`
}

// Launcher is a configured agent whose program has been found.
type Launcher struct {
	Name       string
	Command    []string // Command[0] is absolute
	Deliver    Deliver
	Completion Completion
	Env        map[string]string // for Environment's extra; not to be changed
	Grace      time.Duration
	Bare       bool
}
