//go:build unix

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
)

// shown is how many of the things that are wrong are printed.
const shown = 100

// report prints the table and what is wrong; it fails if anything is.
func (s *soak) report(j *judgement) error {
	table := tabwriter.NewWriter(s.out, 2, 0, 3, ' ', 0)
	fmt.Fprintln(table)
	for _, r := range j.rows {
		text := make([]string, len(r.numbers))
		for i, n := range r.numbers {
			text[i] = fmt.Sprint(n)
		}
		fmt.Fprintf(table, "%s\t%s\n", r.names, strings.Join(text, " / "))
	}
	s.hub.weigh()
	fmt.Fprintf(table, "the hub's memory at most / without mapped files / its slowest start\t%d / %d MiB / %s\n",
		s.hub.most.resident>>10, s.hub.most.own>>10, s.hub.slowest.Round(time.Millisecond))
	fmt.Fprintf(table, "supervisors and shells at once / their memory\t%d / %d MiB\n", s.hub.crowd.processes, s.hub.crowd.kib>>10)
	files, bytes := s.hub.disk()
	fmt.Fprintf(table, "the hub's messages / files / their size\t%d / %d / %d MiB\n", j.messages, files, bytes>>20)
	fmt.Fprintf(table, "warnings / errors in the hub's log\t%d / %d\n", s.hub.logged("WARN"), s.hub.logged("ERROR"))
	fmt.Fprintf(table, "the whole took\t%s\n", time.Since(s.began).Round(100*time.Millisecond))
	if err := table.Flush(); err != nil {
		return err
	}
	s.list(j.found)
	if len(j.found) > 0 {
		return fmt.Errorf("%d promises did not hold (seed %d)", len(j.found), s.seed)
	}
	return nil
}

func (s *soak) list(wrong []string) {
	for i, w := range wrong {
		if i == shown {
			fmt.Fprintf(s.out, "and %d more\n", len(wrong)-shown)
			return
		}
		fmt.Fprintln(s.out, "wrong:", w)
	}
}

// logged counts the lines of a level that the hub logged.
func (h *hub) logged(level string) int {
	raw, err := os.ReadFile(h.home + ".log")
	if err != nil {
		return 0 // it never started
	}
	return strings.Count(string(raw), " level="+level+" ")
}

// disk counts the files of the hub's data and their bytes.
func (h *hub) disk() (files int, bytes int64) {
	// What is removed while it is counted does not count.
	_ = filepath.WalkDir(h.data(), func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		files++
		bytes += info.Size()
		return err
	})
	return files, bytes
}
