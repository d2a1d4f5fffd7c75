package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
)

// tally compares what workers saw accepted with what the coordinator got.
type tally struct{ accepted, delivered, lost, duplicated, reordered int }

// report prints the table and the tally; it fails unless everything that was
// accepted came exactly once and in order.
func (d *demo) report(w io.Writer, took time.Duration) error {
	table := tabwriter.NewWriter(w, 2, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\nTASK\tHUB\tOUTCOME\tDURATION\tMESSAGES")
	var sum tally
	for _, t := range d.tasks {
		accepted, err := lines(d.witness(t))
		if err != nil {
			return err
		}
		got := d.got(t)
		sum.add(accepted, got)
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\n", t.name, t.on, t.outcome, t.settled.Sub(t.started).Round(time.Millisecond), len(got))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\naccepted %d, delivered %d, lost %d, duplicated %d, reordered %d\n", sum.accepted, sum.delivered, sum.lost, sum.duplicated, sum.reordered)
	fmt.Fprintf(w, "the whole took %s\n", took.Round(100*time.Millisecond))
	if want := len(d.tasks) * (says + 1); sum != (tally{accepted: want, delivered: want}) {
		return fmt.Errorf("the promises did not hold: %d messages should have been accepted and delivered", want)
	}
	return nil
}

func lines(path string) ([]string, error) {
	raw, err := os.ReadFile(path)
	return strings.Split(strings.TrimSpace(string(raw)), "\n"), err
}

func (d *demo) got(t *task) (got []string) {
	for _, m := range d.delivered {
		if m.from == "dispatch:"+t.dispatch {
			got = append(got, m.what)
		}
	}
	return got
}

func (s *tally) add(accepted, got []string) {
	s.accepted += len(accepted)
	s.delivered += len(got)
	times := map[string]int{}
	for _, m := range got {
		times[m]++
	}
	at := 0
	for _, m := range accepted {
		switch n := times[m]; {
		case n == 0:
			s.lost++
			continue
		case n > 1:
			s.duplicated += n - 1
		}
		if at >= len(got) || got[at] != m {
			s.reordered++
		}
		at++
	}
}

// cleanUp stops the hubs, and removes worktrees, branches and folders.
func (d *demo) cleanUp(keep bool) error {
	err := errors.Join(d.mac.stop(), d.windows.stop())
	if keep {
		fmt.Println("kept:", d.dir)
		return err
	}
	for _, t := range d.tasks {
		if t.dispatch != "" {
			err = errors.Join(err, d.removeWorktree(t))
		}
	}
	return errors.Join(err, os.RemoveAll(d.dir))
}

func (d *demo) removeWorktree(t *task) error {
	found, err := filepath.Glob(filepath.Join(d.dir, t.on, "data", "worktrees", "*", t.worktree(d)))
	if err != nil {
		return err
	}
	for _, path := range found {
		err = errors.Join(err, d.git("worktree", "remove", "--force", "--force", path))
	}
	return errors.Join(err, d.git("branch", "-q", "-D", "wavehub/"+t.worktree(d)))
}

func (d *demo) git(args ...string) error {
	if out, err := exec.Command("git", append([]string{"-C", d.repo}, args...)...).CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}
