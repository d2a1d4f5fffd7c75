package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// exitError ends the script with a code.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit %d", int(e)) }

// actor plays scripts. It is not safe for concurrent use.
type actor struct {
	stdout, stderr io.Writer
	vars           map[string]string // of the loops around the present step
	lookup         func(string) (string, bool)
}

func (a *actor) play(steps []step) error {
	for i, s := range steps {
		if err := a.do(s); err != nil {
			if _, ok := errors.AsType[exitError](err); ok {
				return err
			}
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

func (a *actor) do(s step) error {
	switch {
	case s.Print != nil:
		return a.say(a.stdout, *s.Print)
	case s.Complain != nil:
		return a.say(a.stderr, *s.Complain)
	case s.SleepMS != nil:
		time.Sleep(time.Duration(*s.SleepMS) * time.Millisecond)
		return nil
	case s.Run != nil:
		return a.run(s)
	case s.Write != nil:
		return a.write(*s.Write, s.Text)
	case s.Exit != nil:
		return exitError(*s.Exit)
	case s.IgnoreTerm != nil:
		ignoreTerm(*s.IgnoreTerm)
		return nil
	case s.SpawnGrandchild != nil:
		return a.spawn(*s.SpawnGrandchild)
	}
	return a.repeat(*s.Repeat, s.Steps)
}

func (a *actor) say(w io.Writer, text string) error {
	text, err := a.expand(text)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, text)
	return err
}

func (a *actor) write(path, text string) error {
	path, err := a.expand(path)
	if err != nil {
		return err
	}
	if text, err = a.expand(text); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

func (a *actor) run(s step) error {
	argv := make([]string, len(s.Run))
	var err error
	for i, arg := range s.Run {
		if argv[i], err = a.expand(arg); err != nil {
			return err
		}
	}
	if argv[0] == "wavehub" {
		if argv[0], err = a.expand("${WAVEHUB_BIN}"); err != nil {
			return err
		}
	}
	input, err := a.expand(s.Input)
	if err != nil {
		return err
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), a.stdout, a.stderr
	err = cmd.Run()
	if cmd.ProcessState == nil {
		return fmt.Errorf("running %q: %w", argv, err)
	}
	if code := cmd.ProcessState.ExitCode(); code != s.WantExit {
		return fmt.Errorf("%q ended with %d, want %d", argv, code, s.WantExit)
	}
	return nil
}

func (a *actor) spawn(yes bool) error {
	if !yes {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, grandchildArg)
	cmd.Stdout, cmd.Stderr = a.stdout, a.stderr
	ownSession(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the grandchild: %w", err)
	}
	if _, err = fmt.Fprintln(a.stdout, "grandchild", cmd.Process.Pid); err != nil {
		return err
	}
	return cmd.Process.Release()
}

func (a *actor) repeat(n int, steps []step) error {
	outer, nested := a.vars["i"]
	for i := range n {
		a.vars["i"] = strconv.Itoa(i)
		if err := a.play(steps); err != nil {
			return err
		}
	}
	delete(a.vars, "i")
	if nested {
		a.vars["i"] = outer
	}
	return nil
}

// expand replaces ${NAME} and $$; any other dollar sign stays.
func (a *actor) expand(text string) (string, error) {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "$")
		out.WriteString(before)
		switch {
		case !found:
			return out.String(), nil
		case strings.HasPrefix(rest, "$"):
			out.WriteByte('$')
			text = rest[1:]
		case strings.HasPrefix(rest, "{"):
			name, after, ok := strings.Cut(rest[1:], "}")
			value, set := a.value(name)
			if !ok || !set {
				return "", fmt.Errorf("${%s} is not set", name)
			}
			out.WriteString(value)
			text = after
		default:
			out.WriteByte('$')
			text = rest
		}
	}
}

func (a *actor) value(name string) (string, bool) {
	if value, ok := a.vars[name]; ok {
		return value, true
	}
	return a.lookup(name)
}
