package sim

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/testkit"
)

// book is what was promised for one Dispatch: what its hubs have accepted.
type book struct {
	id      hub.DispatchID
	task    hub.TaskID
	at      int // the worker hub
	said    []hub.MessageID
	texts   map[hub.MessageID]string // of what was said
	guided  []string
	asked   []hub.MessageID
	reports []hub.MessageID
	first   hub.Outcome // of the first accepted report
	given   bool        // stopped or abandoned by the home
	exited  bool
	n       int // numbers what is said
	pending *call

	// Its owner's files were put back: what is loose may have come home or not.
	// An orphan was begun after the copy was made: its owner does not know it.
	orphan bool
	loose  map[string]bool
}

// call is an operation whose answer was lost: it is repeated under its request
// id before anything else is done for the Dispatch.
type call struct {
	on   *host
	do   func(*process) error
	note func()
}

// totals add up over all seeds.
type totals struct {
	mu                                                              sync.Mutex
	seeds, crashes, weathers, clocks, restores, dispatches          int
	accepted, delivered, late, lost, duplicated, reordered, unequal int
	faults                                                          testkit.Faults
}

func (t *totals) add(o *totals) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seeds += o.seeds
	t.crashes += o.crashes
	t.weathers += o.weathers
	t.clocks += o.clocks
	t.restores += o.restores
	t.dispatches += o.dispatches
	t.accepted += o.accepted
	t.delivered += o.delivered
	t.late += o.late
	t.lost += o.lost
	t.duplicated += o.duplicated
	t.reordered += o.reordered
	t.unequal += o.unequal
	t.faults.Cut += o.faults.Cut
	t.faults.Truncate += o.faults.Truncate
	t.faults.Drop += o.faults.Drop
	t.faults.Duplicate += o.faults.Duplicate
	t.faults.Reorder += o.faults.Reorder
	t.faults.Delay += o.faults.Delay
}

// print writes the table.
func (t *totals) print(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	f := t.faults
	fmt.Fprintln(tw, "seeds\tdispatches\tcrashes\tclocks\trestores\tweathers\tframes cut\ttruncated\tdropped\tdoubled\tswapped\tdelayed\t")
	fmt.Fprintf(tw, "%d\t%d\t%d\t%d\t%d\t%d\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t\n", t.seeds, t.dispatches, t.crashes, t.clocks, t.restores, t.weathers, f.Cut, f.Truncate, f.Drop, f.Duplicate, f.Reorder, f.Delay)
	fmt.Fprintln(tw, "accepted\tdelivered\tlate, said so\tlost\tduplicated\treordered\thubs disagree\t\t\t\t\t\t")
	fmt.Fprintf(tw, "%d\t%d\t%d\t%d\t%d\t%d\t%d\t\t\t\t\t\t\n", t.accepted, t.delivered, t.late, t.lost, t.duplicated, t.reordered, t.unequal)
	return tw.Flush()
}

// compare counts what became of accepted messages, in order; those that are loose
// may be missing. Texts are numbered in the order in which they were given.
func (t *totals) compare(want []string, loose map[string]bool, got []string) {
	t.accepted += len(want)
	due := map[string]bool{}
	for _, s := range want {
		due[s] = true
	}
	seen := map[string]bool{}
	last := 0
	for _, s := range got {
		switch n := numberOf(s); {
		case seen[s]:
			t.duplicated++
		case !due[s] && !loose[s]:
			t.unequal++ // nobody accepted it
		case n < last:
			t.reordered++
		default:
			last = n
			if due[s] {
				t.delivered++
			}
		}
		seen[s] = true
	}
	for _, s := range want {
		if !seen[s] {
			t.lost++
		}
	}
}

// numberOf is the number of a text of world.number.
func numberOf(text string) int {
	n, err := strconv.Atoi(text[strings.LastIndexByte(text, '/')+1:])
	if err != nil {
		panic(err)
	}
	return n
}

// bad is the number of broken promises.
func (t *totals) bad() int { return t.lost + t.duplicated + t.reordered + t.unequal }
