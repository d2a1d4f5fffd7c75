//go:build unix

package e2e

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Loop and hub are killed again and again, at any moment of their work. Every
// Dispatch ends, none has two turns, and one that succeeded had one.
func TestAttached_NoTurnTwiceWhateverIsKilled(t *testing.T) {
	t.Parallel()
	kills, seed := scaled(t, 6, 20, 100), uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	h := StartHub(t, "mac")
	run, w := h.NewRun("killed"), registered(t, h, "")
	witness := filepath.Join(t.TempDir(), "witness")
	l := w.attach(t, `sh -c "cat >/dev/null; echo \$WAVEHUB_DISPATCH_ID >> '`+witness+`'; sleep 0.0\$((\$\$ % 10))"`, "--parallel", "2")
	given := map[string]bool{}
	for i := range kills {
		for range 3 {
			given[run.give(t, "x", w).DispatchId] = true
		}
		pause(time.Duration(rng.IntN(150)) * time.Millisecond)
		if i%3 == 2 {
			h.Restart()
			continue
		}
		l.end(syscall.SIGKILL)
		l.start()
	}
	outcomes := map[string]string{}
	eventually(t, "every Dispatch has ended", 60*time.Second, func() bool {
		b := run.Check("--types", "worker_done")
		for _, m := range b.Messages {
			outcomes[reportOf(m).Dispatch] = reportOf(m).Outcome
			if reportOf(m).Outcome != "succeeded" && !strings.HasPrefix(m.Body, "attach_restarted") {
				t.Errorf("%s: %q", reportOf(m).Dispatch, m.Body)
			}
		}
		if b.DeliveryId != nil {
			run.CLI("check", "--ack", *b.DeliveryId)
		}
		return len(outcomes) == len(given)
	})
	raw, err := os.ReadFile(witness)
	must(t, err)
	turns := map[string]int{}
	for line := range strings.Lines(string(raw)) {
		turns[strings.TrimSpace(line)]++
	}
	cut := 0
	for d := range given {
		if turns[d] > 1 || outcomes[d] == "succeeded" && turns[d] != 1 {
			t.Errorf("%s %s with %d turns", d, outcomes[d], turns[d])
		}
		if outcomes[d] != "succeeded" {
			cut++
		}
	}
	t.Logf("%d kills, %d Dispatches, %d turns cut, none run twice", kills, len(given), cut)
}

// pause lets a random time pass before a kill.
func pause(d time.Duration) { <-time.After(d) }
