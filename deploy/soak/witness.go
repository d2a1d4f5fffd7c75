//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// script is the Task of every worker. Its effect is one line in the witness
// file: its Dispatch, its pid, its capability file. Then it does nothing until
// its end is ordered through a fifo that is named after the Dispatch.
func script(dir, witness string) string {
	return `read -r cap < "$WAVEHUB_DISPATCH_FILE"
id=${cap#*'"dispatch_id":"'}
id=${id%%'"'*}
mkfifo ` + quote(dir) + `/"$id"
echo "$id $$ $WAVEHUB_DISPATCH_FILE" >> ` + quote(witness) + `
read -r code < ` + quote(dir) + `/"$id"
exit "$code"
`
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// endScript ends a script with the code. The script may not have come to its fifo
// yet, or be gone.
func endScript(ctx context.Context, fifo string, code int) error {
	for range 1000 {
		f, err := os.OpenFile(fifo, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err == nil {
			_, err = fmt.Fprintln(f, code)
			return errors.Join(err, f.Close())
		}
		if !errors.Is(err, syscall.ENXIO) || !pause(ctx, 10*time.Millisecond, nil) {
			return err
		}
	}
	return fmt.Errorf("nobody reads %s", fifo)
}

// effect is one line of the witness file.
type effect struct {
	dispatch, capability string
	pid                  int
}

// witness follows the file that the workers write. It is safe for concurrent
// use.
type witness struct {
	path string

	mu    sync.Mutex
	seen  map[string]effect // guarded by mu: the first of each Dispatch
	woken chan struct{}     // guarded by mu: closed when there is more
	count map[string]int    // guarded by mu: lines of each Dispatch
}

func newWitness(path string) *witness {
	return &witness{path: path, seen: map[string]effect{}, count: map[string]int{}, woken: make(chan struct{})}
}

// follow reads what is written until stop is closed, and then all that is left.
func (w *witness) follow(ctx context.Context, stop <-chan struct{}) error {
	f, err := os.OpenFile(w.path, os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	lines, part := bufio.NewReader(f), ""
	for last := false; ; {
		text, err := lines.ReadString('\n')
		part += text
		switch {
		case err == nil:
			if err := w.note(strings.Fields(part)); err != nil {
				return err
			}
			part = ""
		case !errors.Is(err, io.EOF):
			return err
		case last || ctx.Err() != nil:
			return nil
		default:
			last = !pause(ctx, 10*time.Millisecond, stop)
		}
	}
}

func (w *witness) note(fields []string) error {
	if len(fields) != 3 {
		return fmt.Errorf("the witness file has the line %q", fields)
	}
	pid, err := strconv.Atoi(fields[1])
	if err != nil {
		return fmt.Errorf("the witness file has the line %q", fields)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	e := effect{dispatch: fields[0], pid: pid, capability: fields[2]}
	if w.count[e.dispatch]++; w.count[e.dispatch] == 1 {
		w.seen[e.dispatch] = e
	}
	close(w.woken)
	w.woken = make(chan struct{})
	return nil
}

// await returns the effect of the Dispatch.
func (w *witness) await(ctx context.Context, dispatch string) (effect, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("%s is ready, and had no effect within %s", dispatch, patience))
	defer cancel()
	for {
		w.mu.Lock()
		e, ok := w.seen[dispatch]
		woken := w.woken
		w.mu.Unlock()
		if ok {
			return e, nil
		}
		select {
		case <-woken:
		case <-ctx.Done():
			return e, context.Cause(ctx)
		}
	}
}

// effects counts the lines of each Dispatch.
func (w *witness) effects() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make(map[string]int, len(w.count))
	for id, n := range w.count {
		out[id] = n
	}
	return out
}
