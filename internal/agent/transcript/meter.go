package transcript

import (
	"context"
	"io"

	"github.com/wavehub/wavehub/internal/hub"
)

// maxMetered is how many ids a Meter remembers, so that what is told again is
// not counted again: as many as the smallest messages that one record holds.
const maxMetered = 16 << 10

// Meter adds up the usage that a transcript tells, as the file grows. It
// belongs to one goroutine and one file; after a restart of the hub a new one
// reads the file from its beginning.
type Meter struct {
	provider string
	at       Position
	again    bool // it is a document: what is in it may have changed
	sum      figures
}

// NewMeter returns a Meter at the beginning of a file. An unknown provider is
// invalid_argument.
func NewMeter(provider string) (*Meter, error) {
	if err := checkProvider(provider); err != nil {
		return nil, err
	}
	return &Meter{provider: provider}, nil
}

// Read goes on from where the last call came to, by at most MaxScan bytes. More
// says that there is more to be read at once. Errors are those of Read; after
// one the figures are not to be used: go on with a new Meter.
func (m *Meter) Read(ctx context.Context, src io.ReaderAt, size int64) (more bool, err error) {
	return m.read(ctx, src, size, standard(0))
}

func (m *Meter) read(ctx context.Context, src io.ReaderAt, size int64, b bounds) (more bool, err error) {
	if m.again {
		*m = Meter{provider: m.provider}
	}
	end, err := scan(ctx, src, size, m.provider, m.at, b, func(d decoded, _ status) (int, bool) {
		for _, t := range d.tallies {
			m.sum.add(t)
		}
		return len(d.messages), true
	})
	if err != nil {
		return false, err
	}
	m.at, m.again = end.at, end.document
	return !end.atEnd, nil
}

// Usage is what was told so far. Without any figure its source is unknown.
func (m *Meter) Usage() hub.Usage { return m.sum.usage() }

// Sum is the usage that a whole file tells, read in one go. Errors are those of
// Read.
func Sum(ctx context.Context, src io.ReaderAt, size int64, provider string) (hub.Usage, error) {
	m, err := NewMeter(provider)
	for more := true; more && err == nil; {
		more, err = m.Read(ctx, src, size)
	}
	if err != nil {
		return hub.Usage{Source: hub.UsageUnknown}, err
	}
	return m.Usage(), nil
}

// figures are the totals so far.
type figures struct {
	total hub.Usage            // the last one of the whole session
	byID  map[string]hub.Usage // what each id told last
	order []string             // of byID, the oldest first
	past  hub.Usage            // of the ids that are forgotten and of what has none
}

func (f *figures) add(t tally) {
	switch {
	case t.total:
		f.total = t.usage
		return
	case t.id == "":
		f.past = add(f.past, t.usage)
		return
	case f.byID == nil:
		f.byID = map[string]hub.Usage{}
	}
	id := label(t.id)
	if _, known := f.byID[id]; !known {
		f.order = append(f.order, id)
	}
	f.byID[id] = t.usage
	if len(f.order) > maxMetered {
		f.forget()
	}
}

// forget keeps the oldest id's usage and lets the id go.
func (f *figures) forget() {
	id := f.order[0]
	f.order[0], f.order = "", f.order[1:]
	f.past = add(f.past, f.byID[id])
	delete(f.byID, id)
}

func (f *figures) usage() hub.Usage {
	if given(f.total) {
		return *shown(f.total)
	}
	sum := f.past
	for _, id := range f.order {
		sum = add(sum, f.byID[id])
	}
	if !given(sum) {
		return hub.Usage{Source: hub.UsageUnknown}
	}
	return *shown(sum)
}
