package peer

import (
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A peer that says something in time is waited for, whatever it says; one that
// does not is given up, and that is why.
func TestSilenceEndsACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quiet := newSilence(t.Context(), forwardSilence)
		defer quiet.end()
		from, to := io.Pipe()
		read := heard{from, quiet}
		go func() {
			speaks := time.NewTicker(forwardSilence - time.Second)
			defer speaks.Stop()
			for range 5 {
				<-speaks.C
				_, _ = io.WriteString(to, " ") // the reader takes it
			}
		}()
		for range 5 {
			if _, err := read.Read(make([]byte, 1)); err != nil || quiet.ctx.Err() != nil {
				t.Fatalf("%v, %v", err, quiet.ctx.Err())
			}
		}
		begun := time.Now()
		<-quiet.ctx.Done()
		if took := time.Since(begun); took != forwardSilence || !strings.Contains(quiet.cause(io.EOF).Error(), "said nothing") {
			t.Errorf("after %s: %v", took, quiet.cause(io.EOF))
		}
	})
}
