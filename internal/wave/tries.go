package wave

import (
	"slices"

	"github.com/wavehub/wavehub/internal/hub"
	"github.com/wavehub/wavehub/internal/store"
)

// tries is what the latest Dispatch alone does not tell of the attempts of this
// iteration: how many failed and count as such, and those that were replaced before
// the log had them, the oldest first.
type tries struct {
	failures int
	missed   []hub.Dispatch
}

// triesOf looks at the attempts if there is something to be told.
func triesOf(rx store.DispatchReader, r hub.WaveRow) (x tries, err error) {
	if r.EndedAs != "" || !begun(r) || r.Dispatch.State != hub.Failed && !replaced(r) {
		return x, nil
	}
	p, logged := store.Page{Limit: 50}, false
	for {
		ds, next, err := rx.DispatchList(store.DispatchFilter{Task: r.Task}, p)
		if err != nil {
			return x, err
		}
		for _, d := range ds {
			if d.ID == r.Base {
				return x, nil
			}
			if d.State == hub.Failed && !uncounted(d) {
				x.failures++
			}
			if logged = logged || d.ID == r.Noted; !logged && d.ID != r.Dispatch.ID {
				x.missed = slices.Insert(x.missed, 0, d)
			}
		}
		if p.Before = next; next == 0 {
			return x, nil
		}
	}
}

// replaced reports whether the latest Dispatch came in the place of one that the log
// does not have.
func replaced(r hub.WaveRow) bool {
	d := r.Dispatch
	return d.ID != r.Noted && d.RetryOf != r.Noted && d.RetryOf != r.Base
}
