package cli

import (
	"fmt"
	"sync"
	"time"
)

// progress shows label and the elapsed time on a terminal's stderr from the
// second second on, until the returned function is called. It ends with that
// call and leaves the line empty.
func (a *app) progress(label string) (stop func()) {
	if label == "" || a.flags.quiet || !isTerminal(a.stderr) {
		return func() {}
	}
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { a.spin(label, done) })
	return func() {
		close(done)
		running.Wait()
	}
}

func (a *app) spin(label string, done <-chan struct{}) {
	started, shown := time.Now(), false
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			if shown {
				_, _ = fmt.Fprint(a.stderr, "\r\x1b[K")
			}
			return
		case now := <-ticker.C:
			shown = true
			_, _ = fmt.Fprintf(a.stderr, "\r\x1b[K%s %s", label, now.Sub(started).Round(time.Second))
		}
	}
}
